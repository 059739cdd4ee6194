/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_LOCK_RENEW_SCHEDULE_H
#define DLOCK_LOCK_RENEW_SCHEDULE_H
#include <stdbool.h>
#include <stdint.h>

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
struct renew_schedule {
	int64_t ttl_us;
	int64_t valid_until_us;
	int64_t renew_at_us; /* CLOCK_NEVER: no more renewals, the lease is lost or about to end */
	bool lost;
};

/*
 * A lock was granted by requests sent at sent_us.  everywhere: all nodes granted it; otherwise only a majority did, and
 * the first round is due soon.  That round restores the lock on the other nodes: without a spare node, the failure of
 * one node would lose the majority.
 */
void renew_schedule_start(struct renew_schedule *, int64_t sent_us, int64_t ttl_us, int64_t valid_until_us,
    bool everywhere);

/* The renewal that was sent at sent_us succeeded: the lease can be relied on until valid_until_us. */
void renew_schedule_renewed(struct renew_schedule *, int64_t sent_us, int64_t valid_until_us);

/*
 * Something may have happened to the lock, or will at at_us: renew then, though not in a busy loop after the last
 * renewal, which was sent at sent_us.
 */
void renew_schedule_hasten(struct renew_schedule *, int64_t sent_us, int64_t at_us);

/* The round that was sent at sent_us had no majority, neither for nor against.  `random` has 32 random bits. */
void renew_schedule_failed(struct renew_schedule *, int64_t sent_us, uint32_t random);

/* A majority reported that the lock is not ours. */
void renew_schedule_lost(struct renew_schedule *);

/* Has validity ended?  Then no further renewal may be sent. */
bool renew_schedule_over(const struct renew_schedule *, int64_t now_us);

#endif
