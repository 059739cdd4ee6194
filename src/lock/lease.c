/* SPDX-License-Identifier: MIT */
#include "lock/lease.h"

#include "base/clock.h"
#include "lock/service.h"

#define NODE_TIMEOUT_MIN_MS 50
#define NODE_TIMEOUT_MAX_MS 2000

/*
 * Delay of the first round if only a majority granted the lock.  A contender has usually rolled back by then.  Also the
 * least time between a renewal and another one that something has hastened.
 */
#define SOON_US 100000

/* Delays before a retry.  A waiter in a queue is woken: it tries itself only in case that its turn was lost. */
#define MOST_US 1000000
#define QUEUED_LEAST_US 2000000
#define QUEUED_MOST_US 10000000
#define FRONT 2		      /* this many waiters at the head of the queue ... */
#define FRONT_MOST_US 3000000 /* ... check the lock more often: a client that hangs may have the handoff token */
#define TURN_US 15000	      /* the time that a waiter has before the next one tries */
#define GRAIN_US 1000	      /* services report milliseconds */
#define RENEWAL_MOST_US 50000 /* of a renewal that failed */

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
	return clock_sooner(kill_after_us, ttl_us / 3);
}

/* -- Renewals --------------------------------------------------------------- */

/* A random value between the two. */
static int64_t
between(int64_t least_us, int64_t most_us, uint32_t random)
{
	return least_us + (int64_t)((uint64_t)(most_us - least_us) * random >> 32);
}

void
lease_start(struct lease_schedule *k, const struct lease *lease)
{
	*k = (struct lease_schedule){ .ttl_us = lease->ttl_ms * 1000 };
	lease_renewed(k, lease->sent_us, lease->valid_until_us);
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
	k->renew_at_us = clock_add(sent_us, k->ttl_us / 10 * 3);
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
	const int64_t most = clock_sooner(k->ttl_us / 100, RENEWAL_MOST_US);

	if (k->lost)
		return;
	k->renew_at_us = clock_add(sent_us, between(most / 10, most, random));
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

/* -- Waiting for a lock ----------------------------------------------------- */

static int64_t
doubled(int64_t us, unsigned int times)
{
	while (times-- > 0 && us < MOST_US)
		us *= 2;
	return clock_sooner(us, MOST_US);
}

int64_t
lease_wait_held_us(unsigned int tries, uint32_t random)
{
	return between(50000, doubled(250000, tries / 4), random);
}

int64_t
lease_wait_queued_us(int64_t left_ms, int64_t before, uint32_t random)
{
	const int64_t most = between(QUEUED_LEAST_US, before < FRONT ? FRONT_MOST_US : QUEUED_MOST_US, random);
	const int64_t turn = before < MOST_US / TURN_US ? before * TURN_US : MOST_US;

	if (left_ms < 0 || left_ms > QUEUED_MOST_US / 1000)
		return most;
	return clock_sooner(left_ms * 1000 + GRAIN_US + turn, most);
}

int64_t
lease_wait_split_us(unsigned int tries, uint32_t random, int64_t attempt_us)
{
	return between(0, doubled(attempt_us < 1000 ? 2000 : attempt_us * 2, tries), random);
}
