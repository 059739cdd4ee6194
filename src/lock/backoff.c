/* SPDX-License-Identifier: MIT */
#include "lock/backoff.h"

#define MOST_US 1000000
#define QUEUED_LEAST_US 2000000
#define QUEUED_MOST_US 10000000
#define FRONT 2		      /* this many waiters at the head of the queue ... */
#define FRONT_MOST_US 3000000 /* ... check the lock more often: a client that hangs may have the handoff token */
#define TURN_US 15000	      /* the time that a waiter has before the next one tries */
#define GRAIN_US 1000	      /* services report milliseconds */
#define RENEWAL_MOST_US 50000

/* A random value between the two. */
static int64_t
between(int64_t least_us, int64_t most_us, uint32_t random)
{
	return least_us + (int64_t)((uint64_t)(most_us - least_us) * random >> 32);
}

static int64_t
doubled(int64_t us, unsigned int times, int64_t most_us)
{
	while (times-- > 0 && us < most_us)
		us *= 2;
	return us < most_us ? us : most_us;
}

int64_t
backoff_held_us(unsigned int tries, uint32_t random)
{
	return between(50000, doubled(250000, tries / 4, MOST_US), random);
}

int64_t
backoff_queued_us(int64_t left_ms, int64_t before, uint32_t random)
{
	const int64_t most = between(QUEUED_LEAST_US, before < FRONT ? FRONT_MOST_US : QUEUED_MOST_US, random);
	int64_t turn;

	if (left_ms < 0 || left_ms > QUEUED_MOST_US / 1000)
		return most;
	turn = before < MOST_US / TURN_US ? before * TURN_US : MOST_US;
	turn += left_ms * 1000 + GRAIN_US;
	return turn < most ? turn : most;
}

int64_t
backoff_split_us(unsigned int tries, uint32_t random, int64_t attempt_us)
{
	int64_t grain = attempt_us < 1000 ? 1000 : attempt_us;

	return between(0, doubled(grain * 2, tries, MOST_US), random);
}

int64_t
backoff_renewal_us(uint32_t random, int64_t ttl_us)
{
	const int64_t most = ttl_us / 100 < RENEWAL_MOST_US ? ttl_us / 100 : RENEWAL_MOST_US;

	return between(most / 10, most, random);
}
