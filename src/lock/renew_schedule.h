/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_LOCK_RENEW_SCHEDULE_H
#define DLOCK_LOCK_RENEW_SCHEDULE_H
#include <stdbool.h>
#include <stdint.h>

/*
 * The holder's clockwork: when to renew a lease, and how long it can be relied on.
 *
 * A lease is renewed at every third of its length, a little before it: at three tenths.  A server that went away just then and
 * stays away for half of the lease is back when the first signal to the command is due, a sixth of the lease before validity
 * ends.  The first renewal comes soon where not all nodes had granted the lease.  A round that failed is tried again at once
 * until validity has ended; after that never again, since somebody else may hold the lock.
 * Only a majority's answer moves validity, to what the instant of sending that round allows, and never back.
 */
struct renew_schedule {
	int64_t ttl_us;
	int64_t valid_until_us;
	int64_t renew_at_us; /* CLOCK_NEVER once it is pointless */
	bool lost;
};

/*
 * A lock was granted by requests sent at sent_us, everywhere or by a majority only.  Then the first round is due soon: it
 * heals the nodes that lack the lock, since a majority without a spare node is lost with one.
 */
void renew_schedule_start(struct renew_schedule *, int64_t sent_us, int64_t ttl_us, int64_t valid_until_us,
    bool everywhere);

/* A round sent at sent_us was confirmed by a majority. */
void renew_schedule_renewed(struct renew_schedule *, int64_t sent_us);

/* A round sent at sent_us reached no majority either way. */
void renew_schedule_failed(struct renew_schedule *, int64_t sent_us, uint32_t random);

/* A majority said that the lock is not ours. */
void renew_schedule_lost(struct renew_schedule *);

/* Has validity ended?  Then no renewal may be sent any more. */
bool renew_schedule_over(const struct renew_schedule *, int64_t now_us);

#endif
