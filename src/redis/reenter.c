/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "base/clock.h"
#include "lock/lease.h"
#include "redis/operations.h"

/* Did some node enter us again, as far as it may have got the request? */
static bool
perhaps_entered(const struct round *r)
{
	int i;

	for (i = 0; i < r->ballot.nodes; i++) {
		if (r->ballot.vote[i] != VOTE_NO)
			return true;
	}
	return false;
}

/* The fence that a majority has recorded; 0 if there is none. */
static int64_t
common_fence(const struct round *r)
{
	int i, j, same;

	for (i = 0; i < r->ballot.nodes; i++) {
		for (j = 0, same = 0; j < r->ballot.nodes; j++)
			same += r->ballot.vote[j] == VOTE_YES && r->fence[j] == r->fence[i];
		if (r->ballot.vote[i] == VOTE_YES && same >= quorum_majority(r->ballot.nodes))
			return r->fence[i];
	}
	return 0;
}

static void
fill_lease(const struct redis_service *s, const struct claim *claim, int64_t sent_us, struct lease *lease)
{
	const struct round *r = &s->renewal.round;
	int i;

	lease->sent_us = sent_us;
	lease->valid_until_us = lease_valid_until(sent_us, claim->ttl_ms * 1000);
	if (lease->fence == 0)
		lease->fence = common_fence(r);
	lease->nodes = s->fleet.nodes;
	for (i = 0; i < lease->nodes; i++)
		lease->granted += r->ballot.vote[i] == VOTE_YES;
}

/*
 * Entering again is a renewal of a further hold: it creates no lock, and a majority must know it as ours.  A failed one is
 * given back like an attempt, so that no hold is left that nobody ends.
 */
enum status
redis_reenter(struct service *service, const struct claim *claim, int interrupt_fd, struct lease *lease,
    struct err *err)
{
	struct redis_service *s = (struct redis_service *)service;
	enum ownership ownership;
	struct err ignored;
	enum status status;
	int64_t sent = 0;

	memset(lease, 0, sizeof(*lease));
	lease->key = claim->key;
	lease->owner = claim->owner;
	lease->label = claim->label;
	lease->ttl_ms = claim->ttl_ms;
	lease->fence = claim->fence;
	if (!hold_new(claim->token, lease->token))
		return err_set(err, ST_SYSTEM, "the kernel has no random numbers for a token");
	trace_say(&s->fleet.trace, "entering the lock again");
	status = redis_renew(service, lease, CLOCK_NEVER, interrupt_fd, &sent, &ownership, err);
	if (status == ST_OK) {
		fill_lease(s, claim, sent, lease);
		if (clock_now_us() < lease->valid_until_us)
			return ST_OK;
		status = err_set(err, ST_NO_QUORUM, "too slow: the lease was as good as over; use a longer --ttl");
	}
	if (perhaps_entered(&s->renewal.round))
		(void)redis_release(service, lease, 0, &ownership, &ignored);
	return status;
}
