/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_LOCK_LEASE_H
#define DLOCK_LOCK_LEASE_H
#include <stdbool.h>
#include <stdint.h>

struct lease; /* see service.h */

/*
 * Lease arithmetic, as in the description of Redlock.
 *
 * A lease of length ttl counts from the instant at which its request was sent.  The holder may rely on it for a
 * shorter time, the validity.  The difference is the drift: 1 % for clocks that run at different speeds, and 2 ms for
 * the precision of the expiry at the service.
 */

enum {
	TTL_MIN_MS = 10 /* a shorter lease has almost no validity */
};

/* The most that clocks may drift apart during a lease. */
int64_t lease_drift_us(int64_t ttl_us);

/* The end of validity for a request sent at sent_us. */
int64_t lease_valid_until(int64_t sent_us, int64_t ttl_us);

/* The default timeout of one round over all nodes: 1/10 of the lease, at least 50 ms and at most 2 s. */
int64_t lease_node_timeout_ms(int64_t ttl_ms);

/* The time between the first signal and SIGKILL before a lease ends: kill_after_us, but at most 1/3 of the lease. */
int64_t lease_kill_margin_us(int64_t ttl_us, int64_t kill_after_us);

/*
 * The renew schedule of a holder: when to renew a lease, and how long the lease can be relied on.
 *
 * A lease is renewed after 3/10 of its length, slightly before a third.  If a server goes down at that moment and
 * stays down for half of the lease, it is back when the first signal to the command is due, 1/6 of the lease before
 * validity ends.  The first renewal is sent soon if not all nodes had granted the lease.  A failed round is retried at
 * once, though not in a busy loop, until validity has ended.  After that there are no retries, since another client may
 * hold the lock.
 *
 * Validity changes only when a majority confirms a round.  It is computed from the instant at which that round was
 * sent, and never moves back.
 */
struct lease_schedule {
	int64_t ttl_us;
	int64_t sent_us; /* of the last renewal that succeeded */
	int64_t valid_until_us;
	int64_t renew_at_us; /* CLOCK_NEVER: no more renewals, the lease is lost or about to end */
	bool lost;
};

/*
 * The lock was granted.  If not all nodes granted it, only a majority, the first round is due soon.  That round
 * restores the lock on the other nodes: without a spare node, the failure of one node would lose the majority.
 */
void lease_start(struct lease_schedule *, const struct lease *);

/* The renewal that was sent at sent_us succeeded: the lease can be relied on until valid_until_us. */
void lease_renewed(struct lease_schedule *, int64_t sent_us, int64_t valid_until_us);

/* Something may have happened to the lock, or will at at_us: renew then, though not in a busy loop. */
void lease_hasten(struct lease_schedule *, int64_t at_us);

/*
 * The round that was sent at sent_us had no majority, neither for nor against.  The next one is sent at most 1/100 of
 * the lease and at most 50 ms after it.  A round that ended by timeout has taken longer than this, so the next one is
 * sent at once.  A round that failed at once must not be repeated in a busy loop.  `random` has 32 random bits.
 */
void lease_failed(struct lease_schedule *, int64_t sent_us, uint32_t random);

/* A majority reported that the lock is not ours. */
void lease_lost(struct lease_schedule *);

/* Has validity ended?  Then no further renewal may be sent. */
bool lease_over(const struct lease_schedule *, int64_t now_us);

/*
 * Delays before the next attempt to acquire a lock, in microseconds.  All delays are random, so that clients that
 * failed at the same time don't retry at the same time.  `tries` is the number of failures so far, from 1.
 */

/* While another client holds the lock: 50 to 250 ms, growing to at most 1 s. */
int64_t lease_wait_held_us(unsigned int tries, uint32_t random);

/*
 * While another client holds the lock and its release wakes us: until its lease ends, but at most 2 to 10 s.  For the
 * first two waiters it is at most 2 to 3 s, since a client that hangs may have received the wake-up.  If the lease ends
 * without a release, the waiters try one after the other: `before` is the number of waiters before us.  left_ms is the
 * rest of the lease; < 0: it never ends.
 */
int64_t lease_wait_queued_us(int64_t left_ms, int64_t before, uint32_t random);

/* After a split vote: up to a few times the duration of an attempt, growing, at most 1 s. */
int64_t lease_wait_split_us(unsigned int tries, uint32_t random, int64_t attempt_us);

#endif
