/* SPDX-License-Identifier: MIT */
#include "redis/try.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "redis/undo.h"

/* The last attempts of a wait may end this much after it: a node that answers at all does so by then. */
#define OVERTIME_US 100000

/* A waiter tries again after 10 s at the latest. */
#define NOTE_US 15000000

/* See check_distinct(). */
#define LISTEN_US 100
#define LISTEN_MOST_US 1000
#define LISTEN_LONG_US 20000

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
	}
}

/*
 * The node has our token: it granted the lock when the same was sent before, and the answer was lost.  Of several nodes it
 * might be another one by a second name, which counts once.
 */
static void
heed_own_token(struct try *t, int node, struct attempt_answer *answer)
{
	if (t->service->fleet.nodes == 1 && answer->holder.fence > 0) {
		*answer = (struct attempt_answer){ .vote = VOTE_YES, .fence = answer->holder.fence };
		return;
	}
	*answer = (struct attempt_answer){ .vote = VOTE_FAULT };
	fault_set(&t->fault[node], false, "the connection was closed before it answered");
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
		if (d->again && answer.vote == VOTE_NO && strcmp(answer.holder.token, t->token) == 0)
			heed_own_token(t, node, &answer);
		attempt_answer(&t->attempt, node, &answer);
		if (answer.vote == VOTE_NO) {
			t->ticket[node] = answer.ticket;
			t->before[node] = answer.before;
		}
		trace_answer(t, node, &answer);
		(void)snprintf(t->run_id[node], sizeof(t->run_id[node]), "%s", answer_run_id(d));
	} else if (t->raise_tag != 0 && d->tag == t->raise_tag) {
		number = answer_number(d, &told, &t->fault[node]);
		attempt_raised(&t->attempt, node, number == 1 ? VOTE_YES : number == -2 ? VOTE_FAULT : VOTE_NO);
	}
}

int64_t
redis_guard_s(const struct claim *claim)
{
	return claim->restart_guard_ms > 0 ? (claim->restart_guard_ms + 999) / 1000 + 1 : 0;
}

/* How long a node shall remember that we wait: until the next try at the latest, and not beyond the wait. */
static int64_t
note_ms(const struct claim *claim)
{
	const int64_t left_us = claim->wait_until_us == 0 ? 0 : claim->wait_until_us - clock_now_us();

	return left_us > NOTE_US ? NOTE_US / 1000 : left_us > 0 ? (left_us + 999) / 1000 : 0;
}

static void
send_acquire_to(struct try *t, int node)
{
	const struct fleet *f = &t->service->fleet;
	const int64_t note = note_ms(t->claim);
	struct request request;

	request_eval(&request, SCRIPT_ACQUIRE, &t->names);
	request_add(&request, t->token);
	request_add_number(&request, t->claim->ttl_ms);
	request_add_number(&request, t->candidate_us);
	request_add(&request, t->claim->owner);
	request_add(&request, t->claim->label);
	request_add_number(&request, redis_guard_s(t->claim));
	request_add(&request, f->nodes > 1 && !t->service->distinct ? "1" : "0");
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

/* A node that went silent while we waited must not make the wait longer. */
static int64_t
round_length(const struct try *t)
{
	const int64_t round = t->service->fleet.round_us;
	const int64_t least = 4 * t->took_us > OVERTIME_US ? 4 * t->took_us : OVERTIME_US;
	int64_t left;

	if (t->claim->wait_until_us == 0 || t->took_us == 0)
		return round;
	left = t->claim->wait_until_us - clock_now_us();
	left = left > least ? left : least;
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
	memset(t->run_id, 0, sizeof(t->run_id));
	t->raise_tag = 0;
	attempt_start(&t->attempt, &terms, clock_now_us());
	trace_say(&f->trace, f->nodes == 1 ? "asking %d node for the lock" : "asking %d nodes for the lock", f->nodes);
	send_acquire(t);
	return true;
}

static enum status
explain(const struct try *t, enum attempt_step step, struct err *err)
{
	const struct fleet *f = &t->service->fleet;
	const struct holder *holder = attempt_holder(&t->attempt);
	const struct ballot *ballot = t->attempt.raising ? &t->attempt.raises : &t->attempt.grants;

	switch (step) {
	case ATTEMPT_HELD:
		if (holder != NULL)
			return answer_held(holder, err);
		break;
	case ATTEMPT_SPLIT:
		return err_set(err, ST_HELD, "contended: none of several contenders has a majority of the %d nodes",
		    f->nodes);
	case ATTEMPT_TOO_SLOW:
		return err_set(err, ST_NO_QUORUM,
		    "too slow: the lock was granted when its lease was as good as over; use a longer --ttl");
	case ATTEMPT_WAIT:
	case ATTEMPT_AGAIN:
	case ATTEMPT_RAISE:
	case ATTEMPT_GRANTED:
	case ATTEMPT_NO_QUORUM:
		break;
	}
	return fault_no_quorum(f, ballot->vote, t->fault, ballot->closed, err);
}

/* -- Distinct nodes --------------------------------------------------------- */

static bool
all_told(const struct try *t)
{
	int i;

	for (i = 0; i < t->service->fleet.nodes; i++) {
		if (t->attempt.grants.vote[i] == VOTE_PENDING)
			return false;
	}
	return true;
}

/* Is a node still to answer that takes longer than others? */
static bool
takes_long(const struct try *t)
{
	int i;

	for (i = 0; i < t->service->fleet.nodes; i++) {
		if (t->attempt.grants.vote[i] == VOTE_PENDING && node_takes_long(t->service->fleet.node[i]))
			return true;
	}
	return false;
}

/*
 * A quorum counts servers, not names.  Answers that don't matter any more are listened for a little, so that twins are
 * seen whenever they answer about as fast as the others, and a hung node costs next to nothing.
 */
static enum status
check_distinct(struct try *t, struct err *err)
{
	struct fleet *f = &t->service->fleet;
	int64_t now = clock_now_us(), until;
	const int64_t took = now - t->attempt.started_us;
	const int64_t long_until = clock_add(now, LISTEN_LONG_US);

	if (f->nodes == 1 || t->service->distinct)
		return ST_OK;
	until = clock_add(now, LISTEN_US + (took / 4 < LISTEN_MOST_US ? took / 4 : LISTEN_MOST_US));
	for (; !all_told(t); now = clock_now_us()) {
		if (now < long_until && takes_long(t))
			until = clock_add(now, LISTEN_MOST_US);
		if (now >= until)
			break;
		(void)fleet_turn(f, until, -1, try_deliver, t);
	}
	if (fleet_has_twins(f, t->run_id, err))
		return ST_USAGE;
	t->service->distinct = all_told(t);
	return ST_OK;
}

/* -- The whole -------------------------------------------------------------- */

enum status
try_once(struct try *t, int interrupt_fd, enum attempt_step *step, struct err *err)
{
	const struct undo undo = { &t->service->fleet, &t->service->debts, &t->names, &t->attempt, t->token };
	enum status status;
	bool interrupted = false;

	*step = ATTEMPT_WAIT;
	if (!start(t))
		return err_set(err, ST_SYSTEM, "the kernel has no random numbers for a token");
	*step = drive(t, interrupt_fd, &interrupted);
	if (!interrupted && !t->attempt.grants.closed)
		t->took_us = clock_now_us() - t->attempt.started_us;
	status = check_distinct(t, err);
	if (*step == ATTEMPT_GRANTED && clock_now_us() >= t->attempt.valid_until_us)
		*step = ATTEMPT_TOO_SLOW; /* listening took time */
	if (status == ST_OK && *step == ATTEMPT_GRANTED) {
		trace_say(&t->service->fleet.trace, "the lock is ours, fence %" PRId64 ", for %d ms", t->attempt.fence,
		    (int)((t->attempt.valid_until_us - clock_now_us()) / 1000));
		return ST_OK;
	}
	remember_silence(t);
	undo_attempt(&undo, t->took_us > 0 ? t->took_us : clock_now_us() - t->attempt.started_us, *step == ATTEMPT_HELD,
	    try_deliver, t);
	if (status != ST_OK)
		return status;
	return interrupted ? err_set(err, ST_INTERRUPTED, "interrupted") : explain(t, *step, err);
}
