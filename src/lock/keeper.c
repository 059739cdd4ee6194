/* SPDX-License-Identifier: MIT */
#include "lock/keeper.h"

#include "base/clock.h"
#include "lock/backoff.h"
#include "lock/lease.h"

/* The first round where the lock is on a majority only: a contender's attempt has mostly been undone by then. */
#define SOON_US 100000

/* When the renewal after this one is due. */
static int64_t
next_renewal(const struct keeper *k, int64_t sent_us)
{
	return clock_add(sent_us, k->ttl_us / 10 * 3);
}

void
keeper_start(struct keeper *k, int64_t sent_us, int64_t ttl_us, int64_t valid_until_us, bool everywhere)
{
	k->ttl_us = ttl_us;
	k->valid_until_us = valid_until_us;
	k->renew_at_us = next_renewal(k, sent_us);
	if (!everywhere)
		k->renew_at_us = clock_sooner(k->renew_at_us, clock_add(sent_us, SOON_US));
	k->lost = false;
}

void
keeper_renewed(struct keeper *k, int64_t sent_us)
{
	const int64_t until = lease_valid_until(sent_us, k->ttl_us);

	if (k->lost)
		return;
	if (until > k->valid_until_us)
		k->valid_until_us = until;
	k->renew_at_us = next_renewal(k, sent_us);
}

void
keeper_failed(struct keeper *k, int64_t sent_us, uint32_t random)
{
	if (k->lost)
		return;
	k->renew_at_us = clock_add(sent_us, backoff_renewal_us(random, k->ttl_us));
	if (k->renew_at_us >= k->valid_until_us)
		k->renew_at_us = CLOCK_NEVER;
}

void
keeper_lost(struct keeper *k)
{
	k->lost = true;
	k->renew_at_us = CLOCK_NEVER;
}

bool
keeper_over(const struct keeper *k, int64_t now_us)
{
	return now_us >= k->valid_until_us;
}
