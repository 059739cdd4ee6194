/* SPDX-License-Identifier: MIT */
#include "redis/try.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "redis/undo.h"

/* The last attempts of a wait may end this much after it: a node that answers at all does so by then. */
#define OVERTIME_US 100000

/* See hear_the_rest(). */
#define LISTEN_US 100
#define LISTEN_MOST_US 1000
#define LISTEN_LONG_US 20000

/* A waiter tries again after 10 s at the latest. */
#define NOTE_US 15000000

static void
trace_answer(const struct try *t, int node, const struct attempt_answer *answer)
{
	const struct trace *trace = &t->service->fleet.trace;
	const char *name = node_name(t->service->fleet.node[node]);
	struct err err;

	if (answer->vote == VOTE_YES)
		trace_say(trace, "%s: granted, fence %" PRId64, name, answer->fence);
	else if (answer->vote == VOTE_NO) {
		(void)answer_held(&answer->holder, &err);
		trace_say(trace, "%s: %s", name, err.text);
	} else if (t->fault[node].twin != 0)
		trace_say(trace, "%s: %s", name, t->fault[node].err.text);
}

void
try_deliver(void *context, int node, const struct delivery *d)
{
	struct try *t = context;
	struct attempt_answer answer;
	struct told told;
	int number;

	if (debts_delivered(&t->service->debts, node, d) || queue_delivered(&t->queue, node, d))
		return;
	if (d->tag == t->acquire_tag) {
		answer = answer_acquire(d, t->claim, &t->fault[node]);
		attempt_answer(&t->attempt, node, &answer);
		if (answer.vote == VOTE_NO) {
			t->ticket[node] = answer.ticket;
			t->before[node] = answer.before;
		}
		trace_answer(t, node, &answer);
	} else if (t->raise_tag != 0 && d->tag == t->raise_tag) {
		number = answer_number(d, &told, &t->fault[node]);
		if (number == 2)
			attempt_refused_fence(&t->attempt, node);
		else
			attempt_raised(&t->attempt, node, number == 1 ? VOTE_YES : number == -2 ? VOTE_FAULT : VOTE_NO);
	}
}

/*
 * How long a node shall remember that we wait: until the next try at the latest, and not beyond the wait.  Nothing is
 * handed over to who can't be woken.
 */
static int64_t
note_ms(const struct try *t)
{
	const int64_t end = t->claim->wait_until_us;
	const int64_t left_us = end == 0 || t->queue.refused ? 0 : end - clock_now_us();

	return left_us > NOTE_US ? NOTE_US / 1000 : left_us > 0 ? (left_us + 999) / 1000 : 0;
}

static void
send_acquire_to(struct try *t, int node)
{
	const int64_t note = note_ms(t);
	struct request request;

	request_eval(&request, SCRIPT_ACQUIRE, &t->names);
	request_add(&request, t->token);
	request_add_number(&request, t->claim->ttl_ms);
	request_add_number(&request, t->candidate_us);
	request_add(&request, t->claim->owner);
	request_add(&request, t->claim->label);
	request_add_number(&request, answer_guard_s(t->claim));
	request_add_number(&request, node + 1);
	request_add(&request, t->baton);
	request_add(&request, t->claim->wait_until_us != 0 ? t->queue.waiter : "");
	request_add_number(&request, note);
	request_add_number(&request, t->ticket[node]);
	fleet_send(&t->service->fleet, node, t->acquire_tag, &request);
}

static void
send_acquire(struct try *t)
{
	struct fleet *f = &t->service->fleet;
	int i;

	t->candidate_us = clock_wall_us();
	t->acquire_tag = fleet_new_round(f, try_deliver, t);
	for (i = 0; i < f->nodes; i++) {
		(void)debts_send(&t->service->debts, f, i, &t->names);
		send_acquire_to(t, i);
	}
}

static void
send_again(struct try *t)
{
	int i;

	for (i = 0; i < t->service->fleet.nodes; i++) {
		if (attempt_early(&t->attempt, i))
			send_acquire_to(t, i);
	}
	attempt_asked_again(&t->attempt);
}

static void
send_raise(struct try *t)
{
	struct fleet *f = &t->service->fleet;
	struct request request;
	int i;

	request_eval(&request, SCRIPT_FENCE, &t->names);
	request_add(&request, t->token);
	request_add_number(&request, t->attempt.fence);
	t->raise_tag = fleet_new_tag(f);
	for (i = 0; i < f->nodes; i++) {
		if (attempt_lags(&t->attempt, i))
			fleet_send(f, i, t->raise_tag, &request);
	}
}

/* -- One attempt ------------------------------------------------------------ */

static void
remember_silence(struct try *t)
{
	int i;

	for (i = 0; i < t->service->fleet.nodes; i++) {
		if (t->attempt.grants.vote[i] == VOTE_PENDING && t->attempt.grants.closed)
			t->service->fleet.suspect[i] = true;
	}
}

static enum attempt_step
drive(struct try *t, int interrupt_fd, bool *interrupted)
{
	enum attempt_step step;

	for (;;) {
		step = attempt_next(&t->attempt, clock_now_us());
		if (step == ATTEMPT_RAISE) {
			trace_say(&t->service->fleet.trace, "raising the fence on a majority of the nodes");
			send_raise(t);
		} else if (step == ATTEMPT_AGAIN)
			send_again(t);
		else if (step != ATTEMPT_WAIT)
			return step;
		if (fleet_turn(&t->service->fleet, attempt_wake_us(&t->attempt), interrupt_fd, try_deliver, t) ==
		    FLEET_INTERRUPTED) {
			*interrupted = true;
			return ATTEMPT_NO_QUORUM;
		}
	}
}

/*
 * A node that went silent while we waited must not make the wait longer, and what follows a failed attempt has to be done
 * before the claim is over.
 */
static int64_t
round_length(const struct try *t)
{
	const int64_t least = 4 * t->took_us > OVERTIME_US ? 4 * t->took_us : OVERTIME_US;
	const int64_t now = clock_now_us();
	int64_t round = t->service->fleet.round_us, left = t->claim->wait_until_us - now;

	if (t->claim->wait_until_us != 0 && t->took_us != 0) {
		left = left > least ? left : least;
		round = left < round ? left : round;
	}
	left = t->over_us - 2 * t->room_us - now;
	left = left > t->room_us ? left : t->room_us;
	return left < round ? left : round;
}

static bool
start(struct try *t)
{
	struct fleet *f = &t->service->fleet;
	struct attempt_terms terms = {
		.nodes = f->nodes,
		.ttl_us = t->claim->ttl_ms * 1000,
		.round_us = round_length(t),
		.baton = t->baton,
	};

	if (!token_new(t->token))
		return false;
	memcpy(t->baton, t->queue.baton, sizeof(t->baton));
	t->queue.baton[0] = '\0';
	memcpy(terms.suspect, f->suspect, sizeof(terms.suspect));
	fault_clear(t->fault, f->nodes);
	t->acquire_tag = 0;
	t->raise_tag = 0;
	attempt_start(&t->attempt, &terms, clock_now_us());
	trace_say(&f->trace, f->nodes == 1 ? "asking %d node for the lock" : "asking %d nodes for the lock", f->nodes);
	send_acquire(t);
	return true;
}

/* Has a node no vote because it is the same server as another one?  Waiting does not change that. */
static bool
explain_twins(const struct try *t, struct err *err)
{
	const struct fleet *f = &t->service->fleet;
	int i, twin;

	for (i = 0; i < f->nodes; i++) {
		twin = t->fault[i].is ? t->fault[i].twin : 0;
		if (twin < 1 || twin > f->nodes || twin == i + 1)
			continue;
		(void)err_set(err, ST_USAGE, "%s and %s are the same server; a quorum needs independent nodes",
		    node_name(f->node[twin - 1]), node_name(f->node[i]));
		return true;
	}
	return false;
}

static void
blame_fences(struct try *t)
{
	int i;

	for (i = 0; i < t->service->fleet.nodes; i++) {
		if (attempt_barred(&t->attempt, i))
			fault_set(&t->fault[i], false,
			    "its fence for this lock is more than a day ahead of the clocks of other nodes; delete the key that "
			    "dlock keeps beside KEY");
	}
}

static enum status
explain(struct try *t, enum attempt_step step, struct err *err)
{
	const struct fleet *f = &t->service->fleet;
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
		    f->nodes);
		fault_add_guarded(f, t->fault, err);
		return ST_HELD;
	case ATTEMPT_TOO_SLOW:
		return err_set(err, ST_NO_QUORUM,
		    "too slow: the lock was granted when its lease was as good as over; use a longer --ttl");
	case ATTEMPT_NO_QUORUM:
		if (explain_twins(t, err))
			return ST_USAGE;
		break;
	case ATTEMPT_WAIT:
	case ATTEMPT_AGAIN:
	case ATTEMPT_RAISE:
	case ATTEMPT_GRANTED:
		break;
	}
	return fault_no_quorum(f, ballot->vote, t->fault, ballot->closed, err);
}

/* -- Beyond a majority ------------------------------------------------------ */

/* Is a node still to answer, of which that is expected; and one that takes longer than others? */
static bool
lacks_answers(const struct try *t, bool *takes_long)
{
	const struct fleet *f = &t->service->fleet;
	bool any = false;
	int i;

	*takes_long = false;
	for (i = 0; i < f->nodes; i++) {
		if (t->attempt.grants.vote[i] != VOTE_PENDING || f->suspect[i])
			continue;
		any = true;
		*takes_long = *takes_long || node_takes_long(f->node[i]);
	}
	return any;
}

/*
 * It is certain, yes or no.  Nodes that are about as fast as those that have decided get the time to answer, too: a bare
 * majority doesn't survive the loss of one node, and who is refused is told of all of them.  A hung one costs next to
 * nothing.
 */
static void
hear_the_rest(struct try *t)
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
		(void)fleet_turn(&t->service->fleet, until, -1, try_deliver, t);
	}
}

/* -- The whole -------------------------------------------------------------- */

enum status
try_once(struct try *t, int interrupt_fd, enum attempt_step *step, struct err *err)
{
	struct undo undo = { &t->service->fleet, &t->service->debts, &t->names, &t->attempt, t->token, 0 };
	bool interrupted = false;

	*step = ATTEMPT_WAIT;
	if (!start(t))
		return err_set(err, ST_SYSTEM, "the kernel has no random numbers for a token");
	*step = drive(t, interrupt_fd, &interrupted);
	if (!interrupted && !t->attempt.grants.closed)
		t->took_us = clock_now_us() - t->attempt.started_us;
	if (*step == ATTEMPT_GRANTED || (*step == ATTEMPT_NO_QUORUM && !interrupted && !t->attempt.grants.closed))
		hear_the_rest(t);
	if (*step == ATTEMPT_GRANTED && clock_now_us() >= t->attempt.valid_until_us)
		*step = ATTEMPT_TOO_SLOW; /* listening took time */
	if (*step == ATTEMPT_GRANTED) {
		trace_say(&t->service->fleet.trace, "the lock is ours, fence %" PRId64 ", for %d ms", t->attempt.fence,
		    (int)((t->attempt.valid_until_us - clock_now_us()) / 1000));
		return ST_OK;
	}
	remember_silence(t);
	undo.until_us = clock_add(clock_now_us(), t->room_us);
	if (undo.until_us < t->over_us - t->room_us)
		undo.until_us = t->over_us - t->room_us;
	undo_attempt(&undo, t->took_us > 0 ? t->took_us : clock_now_us() - t->attempt.started_us, *step == ATTEMPT_HELD,
	    try_deliver, t);
	return interrupted ? err_set(err, ST_INTERRUPTED, "interrupted") : explain(t, *step, err);
}
