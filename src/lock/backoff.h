/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_LOCK_BACKOFF_H
#define DLOCK_LOCK_BACKOFF_H
#include <stdint.h>

/*
 * How long to wait before asking again.  All delays are random, so that contenders that failed together don't
 * come back together.  `tries` counts the failures so far, from 1; `random` is 32 random bits.
 */

/* While another holds the lock: 50 to 250 ms, growing to at most 1 s. */
int64_t backoff_held_us(unsigned int tries, uint32_t random);

/*
 * While another holds the lock, and a release would wake us: until its lease ends, or 2 to 10 s, 2 to 3 s for
 * the first two: the wake-up may have gone to one that hangs.  When the lease ends
 * with nobody to release it, those who wait try one behind the other: `before` is how many come before us.
 * left_ms < 0: the lease has no end.
 */
int64_t backoff_queued_us(int64_t left_ms, int64_t before, uint32_t random);

/* After a split vote: up to a few times what an attempt took, growing, at most 1 s. */
int64_t backoff_split_us(unsigned int tries, uint32_t random, int64_t attempt_us);

/*
 * From the sending of a renewal that reached no majority to the next one: a hundredth of the lease at most, and 50 ms.  A
 * round that waited in vain has lasted longer than that; one that failed at once must not be sent in a busy loop.
 */
int64_t backoff_renewal_us(uint32_t random, int64_t ttl_us);

#endif
