/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "base/clock.h"
#include "base/random.h"
#include "lock/backoff.h"
#include "redis/try.h"

static void
fill_lease(const struct try *t, struct lease *lease)
{
	int i;

	memset(lease, 0, sizeof(*lease));
	lease->key = t->claim->key;
	lease->owner = t->claim->owner;
	lease->label = t->claim->label;
	memcpy(lease->token, t->token, sizeof(lease->token));
	lease->ttl_ms = t->claim->ttl_ms;
	lease->sent_us = t->attempt.started_us;
	lease->valid_until_us = t->attempt.valid_until_us;
	lease->fence = t->attempt.fence;
	lease->nodes = t->service->fleet.nodes;
	for (i = 0; i < lease->nodes; i++)
		lease->granted += t->attempt.grants.vote[i] == VOTE_YES;
}

/* Does a node refuse only because it has started too recently? */
static bool
is_guarded(const struct try *t)
{
	int i;

	for (i = 0; i < t->service->fleet.nodes; i++) {
		if (t->fault[i].is && t->fault[i].guarded)
			return true;
	}
	return false;
}

/*
 * May there be another attempt?  Nodes that can't be reached end a claim at once, but not once it has been waiting: a
 * server that restarts must not throw its waiters out.  A split vote is tried again even without a wait, for the
 * length of a round, or else of two hosts that start together none might run.
 */
static bool
tries_again(const struct try *t, enum attempt_step step, int64_t began_us, bool waiting)
{
	const int64_t now = clock_now_us();

	if (step == ATTEMPT_SPLIT && now - began_us < t->service->fleet.round_us)
		return true;
	if (step == ATTEMPT_NO_QUORUM && !waiting && !is_guarded(t))
		return false;
	return now < t->claim->wait_until_us;
}

static int64_t
pause_length(const struct try *t, enum attempt_step step, unsigned int tries)
{
	const struct holder *holder = attempt_holder(&t->attempt);
	int64_t pause, left_us;

	if (step == ATTEMPT_SPLIT || step == ATTEMPT_TOO_SLOW)
		return backoff_split_us(tries, random_u32(), clock_now_us() - t->attempt.started_us);
	pause = backoff_held_us(tries, random_u32());
	if (step != ATTEMPT_HELD || holder == NULL || holder->left_ms < 0)
		return pause;
	left_us = holder->left_ms * 1000 + 1000;
	return left_us < pause ? left_us : pause;
}

static enum fleet_event
sleep_until(struct try *t, int64_t until_us, int interrupt_fd)
{
	enum fleet_event event;

	do
		event = fleet_turn(&t->service->fleet, until_us, interrupt_fd, try_deliver, t);
	while (event == FLEET_ANSWERED);
	return event;
}

enum status
redis_acquire(struct service *service, const struct claim *claim, int interrupt_fd, struct lease *lease,
    struct err *err)
{
	struct try t = { .service = (struct redis_service *)service, .claim = claim };
	const int64_t began = clock_now_us();
	enum attempt_step step = ATTEMPT_WAIT;
	enum status status;
	int64_t now, wake;
	unsigned int tries;

	names_of(claim->key, &t.names);
	for (tries = 1;; tries++) {
		status = try_once(&t, interrupt_fd, &step, err);
		if (status == ST_OK) {
			fill_lease(&t, lease);
			err->text[0] = '\0';
			return ST_OK;
		}
		if ((status != ST_HELD && status != ST_NO_QUORUM) || !tries_again(&t, step, began, tries > 1))
			return status;
		now = clock_now_us();
		wake = clock_add(now, pause_length(&t, step, tries));
		if (wake > claim->wait_until_us && now < claim->wait_until_us)
			wake = claim->wait_until_us;
		trace_say(&t.service->fleet.trace, "%s; next try in %d ms", err->text, (int)((wake - now) / 1000));
		if (claim->waiting != NULL)
			claim->waiting(claim->context, attempt_holder(&t.attempt));
		if (sleep_until(&t, wake, interrupt_fd) == FLEET_INTERRUPTED)
			return err_set(err, ST_INTERRUPTED, "interrupted");
	}
}
