/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_LOCK_BACKOFF_H
#define DLOCK_LOCK_BACKOFF_H
#include <stdint.h>

/*
 * Delays before a retry, in microseconds.  All delays are random, so that clients that failed at the same time don't
 * retry at the same time.  `tries` is the number of failures so far, from 1.  `random` has 32 random bits.
 */

/* While another client holds the lock: 50 to 250 ms, growing to at most 1 s. */
int64_t backoff_held_us(unsigned int tries, uint32_t random);

/*
 * While another client holds the lock and its release wakes us: until its lease ends, but at most 2 to 10 s.  For the
 * first two waiters it is at most 2 to 3 s, since a client that hangs may have received the wake-up.  If the lease ends
 * without a release, the waiters try one after the other: `before` is the number of waiters before us.  left_ms is the
 * rest of the lease; < 0: it never ends.
 */
int64_t backoff_queued_us(int64_t left_ms, int64_t before, uint32_t random);

/* After a split vote: up to a few times the duration of an attempt, growing, at most 1 s. */
int64_t backoff_split_us(unsigned int tries, uint32_t random, int64_t attempt_us);

/*
 * From the sending of a renewal that reached no majority to the next one: at most 1/100 of the lease and at most 50 ms.
 * A round that ended by timeout has taken longer than this, so the next one is sent at once.  A round that failed
 * at once must not be repeated in a busy loop.
 */
int64_t backoff_renewal_us(uint32_t random, int64_t ttl_us);

#endif
