/* SPDX-License-Identifier: MIT */
#include "lock/lease.h"

#include "base/clock.h"
#include "lock/backoff.h"
#include "lock/service.h"

#define NODE_TIMEOUT_MIN_MS 50
#define NODE_TIMEOUT_MAX_MS 2000

/*
 * Delay of the first round if only a majority granted the lock.  A contender has usually rolled back by then.  Also the
 * least time between a renewal and another one that something has hastened.
 */
#define SOON_US 100000

int64_t
lease_drift_us(int64_t ttl_us)
{
	return ttl_us / 100 + 2000;
}

int64_t
lease_valid_until(int64_t sent_us, int64_t ttl_us)
{
	return clock_add(sent_us, ttl_us - lease_drift_us(ttl_us));
}

int64_t
lease_node_timeout_ms(int64_t ttl_ms)
{
	return clock_sooner(ttl_ms / 10 > NODE_TIMEOUT_MIN_MS ? ttl_ms / 10 : NODE_TIMEOUT_MIN_MS, NODE_TIMEOUT_MAX_MS);
}

int64_t
lease_kill_margin_us(int64_t ttl_us, int64_t kill_after_us)
{
	return kill_after_us < ttl_us / 3 ? kill_after_us : ttl_us / 3;
}

/* When the renewal after the last one is due. */
static int64_t
next_renewal(const struct lease_schedule *k)
{
	return clock_add(k->sent_us, k->ttl_us / 10 * 3);
}

void
lease_start(struct lease_schedule *k, const struct lease *lease)
{
	*k = (struct lease_schedule){ .ttl_us = lease->ttl_ms * 1000,
		.sent_us = lease->sent_us,
		.valid_until_us = lease->valid_until_us };
	k->renew_at_us = next_renewal(k);
	if (lease->granted < lease->nodes)
		lease_hasten(k, 0);
}

void
lease_renewed(struct lease_schedule *k, int64_t sent_us, int64_t valid_until_us)
{
	if (k->lost)
		return;
	if (valid_until_us > k->valid_until_us)
		k->valid_until_us = valid_until_us;
	k->sent_us = sent_us;
	k->renew_at_us = next_renewal(k);
}

void
lease_hasten(struct lease_schedule *k, int64_t at_us)
{
	const int64_t soon = clock_add(k->sent_us, SOON_US);

	if (!k->lost)
		k->renew_at_us = clock_sooner(k->renew_at_us, at_us > soon ? at_us : soon);
}

void
lease_failed(struct lease_schedule *k, int64_t sent_us, uint32_t random)
{
	if (k->lost)
		return;
	k->renew_at_us = clock_add(sent_us, backoff_renewal_us(random, k->ttl_us));
	if (k->renew_at_us >= k->valid_until_us)
		k->renew_at_us = CLOCK_NEVER;
}

void
lease_lost(struct lease_schedule *k)
{
	k->lost = true;
	k->renew_at_us = CLOCK_NEVER;
}

bool
lease_over(const struct lease_schedule *k, int64_t now_us)
{
	return now_us >= k->valid_until_us;
}
