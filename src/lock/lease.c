/* SPDX-License-Identifier: MIT */
#include "lock/lease.h"

#include "base/clock.h"

#define NODE_TIMEOUT_MIN_MS 50
#define NODE_TIMEOUT_MAX_MS 2000

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
	int64_t timeout = ttl_ms / 10;

	if (timeout < NODE_TIMEOUT_MIN_MS)
		return NODE_TIMEOUT_MIN_MS;
	return timeout > NODE_TIMEOUT_MAX_MS ? NODE_TIMEOUT_MAX_MS : timeout;
}

int64_t
lease_kill_margin_us(int64_t ttl_us, int64_t kill_after_us)
{
	return kill_after_us < ttl_us / 3 ? kill_after_us : ttl_us / 3;
}
