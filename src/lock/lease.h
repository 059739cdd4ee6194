/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_LOCK_LEASE_H
#define DLOCK_LOCK_LEASE_H
#include <stdint.h>

/*
 * Lease arithmetic, as in the Redlock description (redis.io, "Distributed Locks with Redis").
 *
 * A lease of length ttl counts from the instant at which its request was sent.  The holder may rely on it for a
 * shorter time, the validity.  The difference is the drift: 1 % for clocks that run at different speeds, and 2 ms for
 * the precision of the expiry in Redis.
 */

enum {
	TTL_MIN_MS = 10 /* a shorter lease has almost no validity */
};

/* How far clocks may drift apart during a lease. */
int64_t lease_drift_us(int64_t ttl_us);

/* The end of validity for a request sent at sent_us. */
int64_t lease_valid_until(int64_t sent_us, int64_t ttl_us);

/* The default timeout of one round over all nodes: 1/10 of the lease, at least 50 ms and at most 2 s. */
int64_t lease_node_timeout_ms(int64_t ttl_ms);

/* The time between the first signal and SIGKILL before a lease ends: kill_after_us, but at most 1/3 of the lease. */
int64_t lease_kill_margin_us(int64_t ttl_us, int64_t kill_after_us);

#endif
