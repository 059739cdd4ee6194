/* SPDX-License-Identifier: MIT */
#include "redis/acquire_attempt.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "redis/rollback.h"

/* The last attempts may end this much after the wait: a node that replies at all has done so by then. */
#define OVERTIME_US 100000

/* See collect_late_replies(). */
#define LISTEN_US 100
#define LISTEN_MOST_US 1000
#define LISTEN_LONG_US 20000

/* See reach_queue(). */
#define REACH_US 100000

/* How long a node keeps a waiter's entry; a waiter tries again after 10 s at the latest. */
#define NOTE_US 15000000

static void
log_answer(const struct acquire *t, int node, const struct attempt_answer *answer)
{
	const struct log *log = &t->backend->nodes.log;
	const char *name = node_name(t->backend->nodes.node[node]);
	struct err err;

	if (answer->vote == VOTE_YES)
		log_debug(log, "%s: granted, fence %" PRId64, name, answer->fence);
	else if (answer->vote == VOTE_NO) {
		(void)answer_held(&answer->holder, &err);
		log_debug(log, "%s: %s", name, err.text);
	} else if (t->error[node].duplicate != 0)
		log_debug(log, "%s: %s", name, t->error[node].reason.text);
}

static void
acquire_replied(void *context, int node, const struct result *d)
{
	struct acquire *const t = context;
	const struct attempt_answer answer = answer_acquire(d, t->args, &t->error[node]);

	attempt_answer(&t->attempt, node, &answer);
	if (answer.vote == VOTE_NO) {
		t->ticket[node] = answer.ticket;
		t->before[node] = answer.before;
	}
	log_answer(t, node, &answer);
}

static void
raise_replied(void *context, int node, const struct result *d)
{
	struct acquire *const t = ((const struct raise *)context)->attempt_of;
	struct lock_fields fields;
	const int number = answer_number(d, &fields, &t->error[node]);

	if (number == 2)
		attempt_refused_fence(&t->attempt, node);
	else
		attempt_raised(&t->attempt, node, number == 1 ? VOTE_YES : number == -2 ? VOTE_FAULT : VOTE_NO);
}

/*
 * How long the node should keep the entry of this waiter: until the next attempt at the latest, and not beyond the
 * wait.  0 if the waiter can't be woken, so that nothing is handed over to it.
 */
static int64_t
note_ms(const struct acquire *t)
{
	const int64_t end = t->args->wait_until_us;
	const int64_t left_us = end == 0 || t->queue.refused ? 0 : end - clock_now_us();

	return left_us > NOTE_US ? NOTE_US / 1000 : left_us > 0 ? (left_us + 999) / 1000 : 0;
}

static void
send_acquire_to(struct acquire *t, int node)
{
	const int64_t note = note_ms(t);
	struct command request;

	command_eval(&request, SCRIPT_ACQUIRE, &t->names);
	command_add(&request, t->token);
	command_add_number(&request, t->args->ttl_ms);
	command_add_number(&request, t->candidate_us);
	command_add(&request, t->args->owner);
	command_add(&request, t->args->label);
	command_add_number(&request, answer_guard_s(t->args));
	command_add_number(&request, node + 1);
	command_add(&request, t->handoff);
	command_add(&request, t->args->wait_until_us != 0 ? t->queue.waiter : "");
	command_add_number(&request, note);
	command_add_number(&request, t->ticket[node]);
	node_send(t->backend->nodes.node[node], &request, acquire_replied, t);
}

static void
send_acquire(struct acquire *t)
{
	struct nodes *f = &t->backend->nodes;
	int i;

	t->candidate_us = clock_wall_us();
	nodes_cancel(f, t); /* replies to an older attempt no longer matter */
	nodes_cancel(f, &t->raise);
	nodes_begin_round(f);
	for (i = 0; i < f->count; i++) {
		(void)rollback_send(&t->backend->rollbacks, i, &t->names);
		send_acquire_to(t, i);
	}
}

static void
send_again(struct acquire *t)
{
	int i;

	for (i = 0; i < t->backend->nodes.count; i++) {
		if (attempt_early(&t->attempt, i))
			send_acquire_to(t, i);
	}
	attempt_asked_again(&t->attempt);
}

static void
send_raise(struct acquire *t)
{
	struct nodes *f = &t->backend->nodes;
	struct command request;
	int i;

	command_eval(&request, SCRIPT_FENCE, &t->names);
	command_add(&request, t->token);
	command_add_number(&request, t->attempt.fence);
	nodes_cancel(f, &t->raise); /* replies about a greater fence that was given up */
	t->raise.attempt_of = t;
	for (i = 0; i < f->count; i++) {
		if (attempt_lags(&t->attempt, i))
			node_send(f->node[i], &request, raise_replied, &t->raise);
	}
}

/* -- One attempt ------------------------------------------------------------ */

static void
remember_silence(struct acquire *t)
{
	int i;

	for (i = 0; i < t->backend->nodes.count; i++) {
		if (t->attempt.grants.vote[i] == VOTE_PENDING && t->attempt.grants.closed)
			t->backend->nodes.unresponsive[i] = true;
	}
}

static enum attempt_step
drive(struct acquire *t, int interrupt_fd, bool *interrupted)
{
	enum attempt_step step;

	for (;;) {
		step = attempt_next(&t->attempt, clock_now_us());
		if (step == ATTEMPT_RAISE) {
			log_debug(&t->backend->nodes.log, "raising the fence on a majority of the nodes");
			send_raise(t);
		} else if (step == ATTEMPT_AGAIN)
			send_again(t);
		else if (step != ATTEMPT_WAIT)
			return step;
		if (loop_turn(&t->backend->nodes.loop, attempt_wake_us(&t->attempt), interrupt_fd) ==
		    LOOP_INTERRUPTED) {
			*interrupted = true;
			return ATTEMPT_NO_QUORUM;
		}
	}
}

/*
 * A node that stopped replying during the wait must not prolong it, and the cleanup after a failed attempt must finish
 * before the end of the operation.
 */
static int64_t
round_length(const struct acquire *t)
{
	const int64_t least = 4 * t->took_us > OVERTIME_US ? 4 * t->took_us : OVERTIME_US;
	const int64_t now = clock_now_us();
	int64_t round = t->backend->nodes.node_timeout_us, left = t->args->wait_until_us - now;

	if (t->args->wait_until_us != 0 && t->took_us != 0) {
		left = left > least ? left : least;
		round = left < round ? left : round;
	}
	left = t->over_us - 2 * t->room_us - now;
	left = left > t->room_us ? left : t->room_us;
	return left < round ? left : round;
}

static bool
start(struct acquire *t)
{
	struct nodes *f = &t->backend->nodes;
	struct attempt_terms terms = {
		.nodes = f->count,
		.ttl_us = t->args->ttl_ms * 1000,
		.round_us = round_length(t),
		.handoff = t->handoff,
	};

	if (!token_new(t->token))
		return false;
	memcpy(t->handoff, t->queue.handoff, sizeof(t->handoff));
	t->queue.handoff[0] = '\0';
	memcpy(terms.unresponsive, f->unresponsive, sizeof(terms.unresponsive));
	error_clear(t->error, f->count);
	attempt_start(&t->attempt, &terms, clock_now_us());
	log_debug(&f->log, f->count == 1 ? "asking %d node for the lock" : "asking %d nodes for the lock", f->count);
	send_acquire(t);
	return true;
}

/* Does a node have no vote because it is the same server as another one?  Waiting does not change that. */
static bool
explain_duplicates(const struct acquire *t, struct err *err)
{
	const struct nodes *f = &t->backend->nodes;
	int i, duplicate;

	for (i = 0; i < f->count; i++) {
		duplicate = t->error[i].is ? t->error[i].duplicate : 0;
		if (duplicate < 1 || duplicate > f->count || duplicate == i + 1)
			continue;
		(void)err_set(err, ST_USAGE, "%s and %s are the same server; a quorum needs independent nodes",
		    node_name(f->node[duplicate - 1]), node_name(f->node[i]));
		return true;
	}
	return false;
}

static void
blame_fences(struct acquire *t)
{
	int i;

	for (i = 0; i < t->backend->nodes.count; i++) {
		if (attempt_barred(&t->attempt, i))
			error_set(&t->error[i], false,
			    "its fence for this lock is more than a day ahead of the clocks of other nodes; delete the key that "
			    "dlock keeps beside KEY");
	}
}

static enum status
explain(struct acquire *t, enum attempt_step step, struct err *err)
{
	const struct nodes *f = &t->backend->nodes;
	const struct holder *holder = attempt_holder(&t->attempt);
	const struct ballot *ballot = t->attempt.raising ? &t->attempt.raises : &t->attempt.grants;

	blame_fences(t);
	switch (step) {
	case ATTEMPT_HELD:
		if (holder != NULL)
			return answer_held(holder, err);
		break;
	case ATTEMPT_SPLIT:
		(void)err_set(err, ST_HELD, "contended: none of several contenders has a majority of the %d nodes",
		    f->count);
		nodes_add_guarded(f, t->error, err);
		return ST_HELD;
	case ATTEMPT_TOO_SLOW:
		return err_set(err, ST_NO_QUORUM, "granted too late: the lease had nearly expired; use a longer --ttl");
	case ATTEMPT_NO_QUORUM:
		if (explain_duplicates(t, err))
			return ST_USAGE;
		break;
	case ATTEMPT_WAIT:
	case ATTEMPT_AGAIN:
	case ATTEMPT_RAISE:
	case ATTEMPT_GRANTED:
		break;
	}
	return nodes_no_quorum(f, ballot->vote, t->error, ballot->closed, err);
}

/* -- Beyond a majority ------------------------------------------------------ */

/* Is a reply pending that can be expected?  *takes_long: also from a node that takes longer than others. */
static bool
lacks_answers(const struct acquire *t, bool *takes_long)
{
	const struct nodes *f = &t->backend->nodes;
	bool any = false;
	int i;

	*takes_long = false;
	for (i = 0; i < f->count; i++) {
		if (t->attempt.grants.vote[i] != VOTE_PENDING || f->unresponsive[i])
			continue;
		any = true;
		*takes_long = *takes_long || node_takes_long(f->node[i]);
	}
	return any;
}

/*
 * The outcome is certain.  Wait for nodes that are about as fast as those that decided it: a bare majority does not
 * survive the loss of one node, and the error after a failure should cover all nodes.  A hung node costs almost
 * nothing.
 */
static void
collect_late_replies(struct acquire *t)
{
	int64_t now = clock_now_us(), until;
	const int64_t took = now - t->attempt.started_us;
	const int64_t long_until = clock_add(now, LISTEN_LONG_US);
	bool takes_long;

	until = clock_add(now, LISTEN_US + (took / 4 < LISTEN_MOST_US ? took / 4 : LISTEN_MOST_US));
	for (; lacks_answers(t, &takes_long); now = clock_now_us()) {
		if (now < long_until && takes_long)
			until = clock_add(now, LISTEN_MOST_US);
		if (now >= until)
			break;
		(void)loop_turn(&t->backend->nodes.loop, until, -1);
	}
}

/*
 * Other waiters are blocked at the node that sent the handoff token.  Without the request it keeps the released token
 * for the window, and does not wake them when this lock is released.  If it needs a new connection, wait until the
 * request has been written: dlock may be about to end.
 */
static void
reach_queue(struct acquire *t)
{
	const struct node *node = t->backend->nodes.node[t->queue.from];
	const int64_t until = clock_add(clock_now_us(), REACH_US);

	while (t->handoff[0] != '\0' && t->attempt.grants.vote[t->queue.from] == VOTE_PENDING &&
	    (!node_flushed(node) || node_resends(node)) && clock_now_us() < until)
		(void)loop_turn(&t->backend->nodes.loop, until, -1);
}

/* -- The attempt ------------------------------------------------------------ */

enum status
acquire_attempt(struct acquire *t, int interrupt_fd, enum attempt_step *step, struct err *err)
{
	struct failed_attempt failed = { .keys = &t->names, .attempt = &t->attempt, .token = t->token };
	bool interrupted = false;

	*step = ATTEMPT_WAIT;
	if (!start(t))
		return err_set(err, ST_SYSTEM, "the kernel has no random numbers for a token");
	*step = drive(t, interrupt_fd, &interrupted);
	if (!interrupted && !t->attempt.grants.closed)
		t->took_us = clock_now_us() - t->attempt.started_us;
	if (*step == ATTEMPT_GRANTED || (*step == ATTEMPT_NO_QUORUM && !interrupted && !t->attempt.grants.closed))
		collect_late_replies(t);
	if (*step == ATTEMPT_GRANTED)
		reach_queue(t);
	if (*step == ATTEMPT_GRANTED && clock_now_us() >= t->attempt.valid_until_us)
		*step = ATTEMPT_TOO_SLOW; /* waiting for more replies took time */
	if (*step == ATTEMPT_GRANTED) {
		log_debug(&t->backend->nodes.log, "the lock is ours, fence %" PRId64 ", for %d ms", t->attempt.fence,
		    (int)((t->attempt.valid_until_us - clock_now_us()) / 1000));
		return ST_OK;
	}
	remember_silence(t);
	failed.took_us = t->took_us > 0 ? t->took_us : clock_now_us() - t->attempt.started_us;
	failed.until_us = clock_add(clock_now_us(), t->room_us);
	if (failed.until_us < t->over_us - t->room_us)
		failed.until_us = t->over_us - t->room_us;
	failed.hear = *step == ATTEMPT_HELD;
	rollback_attempt(&t->backend->rollbacks, &failed);
	return interrupted ? err_set(err, ST_INTERRUPTED, "interrupted") : explain(t, *step, err);
}
