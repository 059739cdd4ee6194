/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "lock/lease.h"
#include "redis/operations.h"

static int
count_with_fence(const struct round *r, int64_t fence)
{
	int i, same = 0;

	for (i = 0; i < r->ballot.nodes; i++)
		same += r->ballot.vote[i] == VOTE_YES && r->fence[i] == fence;
	return same;
}

/*
 * The fence of the lock: the one that the caller gave, if a node confirms it, or the one that a majority has recorded;
 * 0 if there is none.  A node may have a greater fence from an attempt that failed.
 */
static int64_t
find_fence(const struct round *r, int64_t claimed)
{
	int i;

	if (claimed > 0 && count_with_fence(r, claimed) > 0)
		return claimed;
	for (i = 0; i < r->ballot.nodes; i++) {
		if (r->fence[i] > 0 && count_with_fence(r, r->fence[i]) >= quorum_majority(r->ballot.nodes))
			return r->fence[i];
	}
	return 0;
}

/* The state of an entry. */
struct entry {
	struct redis_backend *backend;
	const struct acquire_args *args;
	const struct hold *hold;
	int interrupt_fd;
	struct lease *lease;
	struct renewed renewed;
	bool perhaps; /* some node may know the hold */
};

/*
 * Determine the fence.  A majority decides the renewal; if its replies don't determine the fence, wait for the other
 * nodes.
 */
static enum status
learn_fence(struct entry *e, struct err *err)
{
	struct round *r = &e->backend->renewal->round;
	struct waiting w = { .nodes = r->nodes,
		.limit = { clock_add(e->renewed.sent_us, r->nodes->node_timeout_us), e->interrupt_fd },
		.patience = EVERYBODY };

	while ((e->lease->fence = find_fence(r, e->hold->fence)) == 0 && nodes_await(&w, nodes_round_standing(r)))
		;
	if (e->lease->fence != 0)
		return ST_OK;
	if (w.event == LOOP_INTERRUPTED)
		return err_set(err, ST_INTERRUPTED, "interrupted");
	return err_set(err, ST_NO_QUORUM, "the nodes that answered do not agree on the fence of the lock");
}

static void
fill_lease(const struct redis_backend *s, const struct acquire_args *args, int64_t sent_us, struct lease *lease)
{
	const struct round *r = &s->renewal->round;

	lease->sent_us = sent_us;
	lease->valid_until_us = lease_valid_until(sent_us, args->ttl_ms * 1000);
	lease->nodes = s->nodes.count;
	lease->granted = quorum_count(&r->ballot, VOTE_YES);
}

/*
 * Run two rounds, in each of which a majority must know the hold.  After one round, a node that replied early may have
 * lost the hold by the time of the last reply, and may have been healed by a client that did not know of it.  A node
 * that has just started has no vote: it may have been healed with the lock after it had granted it to another client.
 * A single node needs one round and no guard, because it is never healed.
 */
static enum status
enter_majority(struct entry *e, struct err *err)
{
	struct redis_backend *const s = e->backend;
	const struct renew_args args = { .limit = { CLOCK_NEVER, e->interrupt_fd },
		.guard_s = s->nodes.count > 1 ? answer_guard_s(e->args) : 0 };
	enum status status;
	int rounds = s->nodes.count > 1 ? 2 : 1;

	do {
		status = redis_renew_guarded(s, e->lease, &args, &e->renewed, err);
		e->perhaps = e->perhaps ||
		    (s->renewal != NULL && quorum_count(&s->renewal->round.ballot, VOTE_NO) < s->nodes.count);
	} while (status == ST_OK && --rounds > 0);
	return status;
}

/*
 * Enter the lock again.  This is a renewal with a new hold: it creates no lock, and a majority must know the lock as
 * ours.  A failed entry is released, like a failed attempt is rolled back, so that no hold remains that nobody ends.
 */
static enum status
enter(struct entry *e, struct err *err)
{
	struct lease *const lease = e->lease;
	enum ownership ownership;
	struct err ignored;
	enum status status;

	memset(lease, 0, sizeof(*lease));
	lease->key = e->args->key;
	lease->owner = e->args->owner;
	lease->label = e->args->label;
	lease->ttl_ms = e->args->ttl_ms;
	if (!hold_new(e->hold->token, lease->token))
		return err_set(err, ST_SYSTEM, "the kernel provides no random numbers for a token");
	text_keep_secret(SECRET_TOKEN, lease->token, HOLD_LENGTH);
	log_debug(&e->backend->nodes.log, "entering the lock again");
	status = enter_majority(e, err);
	if (status == ST_OK)
		status = learn_fence(e, err);
	if (status == ST_OK) {
		fill_lease(e->backend, e->args, e->renewed.sent_us, lease);
		if (clock_now_us() < lease->valid_until_us)
			return ST_OK;
		status = err_set(err, ST_NO_QUORUM,
		    "granted too late: the lease had nearly expired; use a longer --ttl");
	}
	if (e->perhaps)
		(void)redis_release(&e->backend->base, lease, 0, &ownership, &ignored);
	return status;
}

enum status
redis_reenter(struct redis_backend *s, const struct acquire_args *args, struct lease *lease, struct err *err)
{
	struct entry entry;
	enum status status = ST_NO;
	int i;

	for (i = 0; i < args->holds && status == ST_NO; i++) {
		entry = (struct entry){ .backend = s,
			.args = args,
			.hold = &args->hold[i],
			.interrupt_fd = args->wait.interrupt_fd,
			.lease = lease };
		status = enter(&entry, err);
	}
	return status;
}
