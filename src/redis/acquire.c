/* SPDX-License-Identifier: MIT */
#include "redis/operations.h"

#include <string.h>

#include "base/clock.h"
#include "base/random.h"
#include "lock/backoff.h"

/* Nodes whose answer didn't matter get at least this much time to take an undo off our hands. */
#define GRACE_US 10000
#define UNDO_RESENDS 2

/* One attempt under way: the decisions are attempt.c's, the traffic is here. */
struct
try {
	struct redis_service *service;
	const struct claim *claim;
	struct names names;
	char token[TOKEN_SIZE];
	struct attempt attempt;
	unsigned int acquire_tag;
	unsigned int raise_tag; /* 0: no second round */
	struct fault fault[NODES_MAX];
};

static void
deliver(void *context, int node, const struct delivery *d)
{
	struct try *t = context;
	struct attempt_answer answer;
	int number;

	if (debts_delivered(&t->service->debts, node, d))
		return;
	if (d->tag == t->acquire_tag) {
		answer = answer_acquire(d, &t->fault[node]);
		attempt_answer(&t->attempt, node, &answer);
		t->service->fleet.suspect[node] = false;
	} else if (t->raise_tag != 0 && d->tag == t->raise_tag) {
		number = answer_number(d, &t->fault[node]);
		attempt_raised(&t->attempt, node, number == 1 ? VOTE_YES : number == -2 ? VOTE_FAULT : VOTE_NO);
	}
}

static void
send_acquire(struct try *t)
{
	struct fleet *f = &t->service->fleet;
	struct request request;
	int i;

	request_eval(&request, SCRIPT_ACQUIRE, &t->names);
	request_add(&request, t->token);
	request_add_number(&request, t->claim->ttl_ms);
	request_add_number(&request, clock_wall_us());
	request_add(&request, t->claim->owner);
	request_add(&request, t->claim->label);
	t->acquire_tag = fleet_new_tag(f);
	for (i = 0; i < f->nodes; i++) {
		(void)debts_send(&t->service->debts, f, i, &t->names);
		fleet_send(f, i, t->acquire_tag, &request);
	}
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

/* -- Giving back ------------------------------------------------------------ */

/* Is it worth waiting for this node's answer to an undo?  Not if it has been silent: once sent, the undo is on its way. */
static bool
awaits_undo(const struct try *t, int node)
{
	const bool silent = t->attempt.grants.vote[node] == VOTE_PENDING;

	if (!debts_under_way(&t->service->debts, node))
		return false;
	return !silent || (!t->service->fleet.suspect[node] && !node_flushed(t->service->fleet.node[node]));
}

static bool
undo_awaited(const struct try *t)
{
	int i;

	for (i = 0; i < t->service->fleet.nodes; i++) {
		if (awaits_undo(t, i))
			return true;
	}
	return false;
}

static bool
send_debts(struct try *t)
{
	bool any = false;
	int i;

	for (i = 0; i < t->service->fleet.nodes; i++)
		any = debts_send(&t->service->debts, &t->service->fleet, i, &t->names) || any;
	return any;
}

/*
 * Tell every node that may have granted the attempt to undo it, and see it done where the node answers at all.  A node
 * whose connection broke is told again on a new one.
 */
static void
give_back(struct try *t)
{
	struct fleet *f = &t->service->fleet;
	const int64_t until = clock_add(clock_now_us(), f->round_us > GRACE_US ? f->round_us : GRACE_US);
	int i, resends = UNDO_RESENDS;

	for (i = 0; i < f->nodes; i++) {
		if (attempt_perhaps_granted(&t->attempt, i))
			debts_note(&t->service->debts, i, t->token);
	}
	(void)send_debts(t);
	while (undo_awaited(t)) {
		if (fleet_turn(f, until, -1, deliver, t) == FLEET_TIME)
			break;
		if (resends > 0 && send_debts(t))
			resends--;
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
		} else if (step != ATTEMPT_WAIT)
			return step;
		if (fleet_turn(&t->service->fleet, t->attempt.deadline_us, interrupt_fd, deliver, t) ==
		    FLEET_INTERRUPTED) {
			*interrupted = true;
			return ATTEMPT_NO_QUORUM;
		}
	}
}

static bool
start(struct try *t)
{
	struct fleet *f = &t->service->fleet;
	struct attempt_terms terms = {
		.nodes = f->nodes,
		.ttl_us = t->claim->ttl_ms * 1000,
		.round_us = f->round_us,
	};

	if (!token_new(t->token))
		return false;
	memcpy(terms.suspect, f->suspect, sizeof(terms.suspect));
	memset(t->fault, 0, sizeof(t->fault));
	t->raise_tag = 0;
	attempt_start(&t->attempt, &terms, clock_now_us());
	send_acquire(t);
	return true;
}

static void
fill_lease(const struct try *t, struct lease *lease)
{
	int i;

	memset(lease, 0, sizeof(*lease));
	lease->key = t->claim->key;
	memcpy(lease->token, t->token, sizeof(lease->token));
	lease->ttl_ms = t->claim->ttl_ms;
	lease->sent_us = t->attempt.started_us;
	lease->valid_until_us = t->attempt.valid_until_us;
	lease->fence = t->attempt.fence;
	lease->nodes = t->service->fleet.nodes;
	for (i = 0; i < lease->nodes; i++)
		lease->granted += t->attempt.grants.vote[i] == VOTE_YES;
}

static enum status
explain(const struct try *t, enum attempt_step step, struct err *err)
{
	const struct fleet *f = &t->service->fleet;
	const struct holder *holder = attempt_holder(&t->attempt);

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
	case ATTEMPT_RAISE:
	case ATTEMPT_GRANTED:
	case ATTEMPT_NO_QUORUM:
		break;
	}
	return answer_no_quorum(f, t->attempt.grants.vote, t->fault, err);
}

/* ST_OK, or everything that was granted has been given back. */
static enum status
attempt_once(struct try *t, int interrupt_fd, enum attempt_step *step, struct err *err)
{
	enum status status;
	bool interrupted = false;

	if (!start(t))
		return err_set(err, ST_SYSTEM, "the kernel has no random numbers for a token");
	*step = drive(t, interrupt_fd, &interrupted);
	if (*step == ATTEMPT_GRANTED)
		return ST_OK;
	status = interrupted ? err_set(err, ST_INTERRUPTED, "interrupted") : explain(t, *step, err);
	remember_silence(t);
	give_back(t);
	return status;
}

/* -- Waiting ---------------------------------------------------------------- */

/*
 * How long to wait before the next attempt; -1: don't make one.  Nodes that can't be reached end a claim at once, but not
 * once it has been waiting: a server that restarts must not throw its waiters out.
 */
static int64_t
pause_length(const struct try *t, enum attempt_step step, unsigned int tries, bool waiting)
{
	const struct holder *holder = attempt_holder(&t->attempt);
	const int64_t took = clock_now_us() - t->attempt.started_us;
	int64_t pause;

	if (step == ATTEMPT_NO_QUORUM && !waiting)
		return -1;
	if (step == ATTEMPT_SPLIT || step == ATTEMPT_TOO_SLOW)
		return backoff_split_us(tries, random_u32(), took);
	pause = backoff_held_us(tries, random_u32());
	if (step == ATTEMPT_HELD && holder != NULL && holder->left_ms >= 0 && holder->left_ms * 1000 + 1000 < pause)
		pause = holder->left_ms * 1000 + 1000;
	return pause;
}

static enum fleet_event
sleep_until(struct try *t, int64_t until_us, int interrupt_fd)
{
	enum fleet_event event;

	do
		event = fleet_turn(&t->service->fleet, until_us, interrupt_fd, deliver, t);
	while (event == FLEET_ANSWERED);
	return event;
}

enum status
redis_acquire(struct service *service, const struct claim *claim, int interrupt_fd, struct lease *lease,
    struct err *err)
{
	struct try t = { .service = (struct redis_service *)service, .claim = claim };
	enum attempt_step step = ATTEMPT_WAIT;
	enum status status;
	int64_t now, pause, wake;
	unsigned int tries;

	names_of(claim->key, &t.names);
	for (tries = 1;; tries++) {
		status = attempt_once(&t, interrupt_fd, &step, err);
		if (status == ST_OK) {
			fill_lease(&t, lease);
			err->text[0] = '\0';
			return ST_OK;
		}
		if (status == ST_INTERRUPTED || status == ST_SYSTEM || status == ST_DENIED)
			return status;
		now = clock_now_us();
		pause = pause_length(&t, step, tries, tries > 1);
		if (pause < 0 || now >= claim->wait_until_us)
			return status;
		wake = clock_add(now, pause);
		if (wake > claim->wait_until_us)
			wake = claim->wait_until_us;
		trace_say(&t.service->fleet.trace, "%s; next try in %d ms", err->text, (int)((wake - now) / 1000));
		if (sleep_until(&t, wake, interrupt_fd) == FLEET_INTERRUPTED)
			return err_set(err, ST_INTERRUPTED, "interrupted");
	}
}
