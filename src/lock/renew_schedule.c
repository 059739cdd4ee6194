/* SPDX-License-Identifier: MIT */
#include "lock/renew_schedule.h"

#include "base/clock.h"
#include "lock/backoff.h"
#include "lock/lease.h"

/*
 * Delay of the first round if only a majority granted the lock.  A contender has usually rolled back by then.  Also the
 * least time between a renewal and another one that something has hastened.
 */
#define SOON_US 100000

/* When the renewal after this one is due. */
static int64_t
next_renewal(const struct renew_schedule *k, int64_t sent_us)
{
	return clock_add(sent_us, k->ttl_us / 10 * 3);
}

void
renew_schedule_start(struct renew_schedule *k, int64_t sent_us, int64_t ttl_us, int64_t valid_until_us, bool everywhere)
{
	k->ttl_us = ttl_us;
	k->valid_until_us = valid_until_us;
	k->renew_at_us = next_renewal(k, sent_us);
	if (!everywhere)
		k->renew_at_us = clock_sooner(k->renew_at_us, clock_add(sent_us, SOON_US));
	k->lost = false;
}

void
renew_schedule_renewed(struct renew_schedule *k, int64_t sent_us, int64_t valid_until_us)
{
	if (k->lost)
		return;
	if (valid_until_us > k->valid_until_us)
		k->valid_until_us = valid_until_us;
	k->renew_at_us = next_renewal(k, sent_us);
}

void
renew_schedule_hasten(struct renew_schedule *k, int64_t sent_us, int64_t at_us)
{
	const int64_t soon = clock_add(sent_us, SOON_US);

	if (!k->lost)
		k->renew_at_us = clock_sooner(k->renew_at_us, at_us > soon ? at_us : soon);
}

void
renew_schedule_failed(struct renew_schedule *k, int64_t sent_us, uint32_t random)
{
	if (k->lost)
		return;
	k->renew_at_us = clock_add(sent_us, backoff_renewal_us(random, k->ttl_us));
	if (k->renew_at_us >= k->valid_until_us)
		k->renew_at_us = CLOCK_NEVER;
}

void
renew_schedule_lost(struct renew_schedule *k)
{
	k->lost = true;
	k->renew_at_us = CLOCK_NEVER;
}

bool
renew_schedule_over(const struct renew_schedule *k, int64_t now_us)
{
	return now_us >= k->valid_until_us;
}
