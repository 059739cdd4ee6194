/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_LOCK_LEASE_H
#define DLOCK_LOCK_LEASE_H
#include <stdint.h>

/*
 * The arithmetic of a lease, after the Redlock description (redis.io, "Distributed Locks with Redis").
 *
 * A lease of length ttl counts from the instant at which its request was sent, and what its holder may rely on,
 * the validity, is shorter by the drift: clocks that run 1 % apart, and 2 ms for the grain of Redis's expiry.
 */

enum {
	TTL_MIN_MS = 10 /* a shorter lease has no validity to speak of */
};

/* What clocks may differ by during a lease. */
int64_t lease_drift_us(int64_t ttl_us);

/* The instant up to which the holder may act, for a request sent at sent_us. */
int64_t lease_valid_until(int64_t sent_us, int64_t ttl_us);

/* The default deadline of one round over all nodes: a tenth of the lease, 50 ms to 2 s. */
int64_t lease_node_timeout_ms(int64_t ttl_ms);

/* The most that may be asked as time between the first signal and SIGKILL before a lease ends: a third of it. */
int64_t lease_kill_margin_us(int64_t ttl_us, int64_t kill_after_us);

#endif
