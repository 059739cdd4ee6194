/* SPDX-License-Identifier: MIT */
#include "lock/lease.h"

#include "base/clock.h"
#include "tap.h"

#define MS INT64_C(1000)
#define S (1000 * MS)
#define DAY (86400 * S)

static const struct {
	int64_t ttl_us;
	int64_t drift_us;
} drifts[] = {
	{ TTL_MIN_MS * MS, 2100 },
	{ 100 * MS, 3 * MS },
	{ S, 12 * MS },
	{ 30 * S, 302 * MS },
	{ 3600 * S, 36 * S + 2 * MS },
	{ 36525 * DAY, 36525 * DAY / 100 + 2 * MS },
};

static void
test_drift(void)
{
	size_t i;

	for (i = 0; i < COUNT(drifts); i++) {
		is_int(lease_drift_us(drifts[i].ttl_us), drifts[i].drift_us, "drift of %" PRId64 " us",
		    drifts[i].ttl_us);
		is_int(lease_valid_until(7 * S, drifts[i].ttl_us), 7 * S + drifts[i].ttl_us - drifts[i].drift_us,
		    "validity of %" PRId64 " us", drifts[i].ttl_us);
	}
	ok(lease_valid_until(0, TTL_MIN_MS * MS) > 0, "the shortest lease is valid for a while");
}

static void
test_bounds(void)
{
	int64_t ttl, kill_after, margin;
	int i;

	for (i = 0; i < 20000; i++) {
		ttl = TTL_MIN_MS * MS + below(INT64_C(1) << (below(50) + 1));
		kill_after = below(INT64_C(1) << (below(50) + 1));
		margin = lease_kill_margin_us(ttl, kill_after);
		each(lease_valid_until(5, ttl) < 5 + ttl, "ttl %" PRId64, ttl);
		each(margin <= ttl / 3 && margin <= kill_after && margin >= 0, "ttl %" PRId64, ttl);
		each(margin == ttl / 3 || margin == kill_after, "ttl %" PRId64, ttl);
	}
	each_ok("validity is shorter than the lease, the margin at most a third of it");
	is_int(lease_valid_until(CLOCK_NEVER - 5, DAY), CLOCK_NEVER, "nothing overflows");
}

static const struct {
	int64_t ttl_ms;
	int64_t timeout_ms;
} timeouts[] = {
	{ TTL_MIN_MS, 50 },
	{ 499, 50 },
	{ 500, 50 },
	{ 600, 60 },
	{ 10000, 1000 },
	{ 20000, 2000 },
	{ 20010, 2000 },
	{ 30000, 2000 },
	{ INT64_MAX, 2000 },
};

static const struct {
	int64_t ttl_us;
	int64_t kill_after_us;
	int64_t margin_us;
} margins[] = {
	{ 30 * S, 5 * S, 5 * S },
	{ 30 * S, 10 * S, 10 * S },
	{ 30 * S, 11 * S, 10 * S },
	{ 3 * S, 5 * S, S },
	{ 30 * S, 0, 0 },
	{ 30 * S, INT64_MAX, 10 * S },
};

static void
test_tables(void)
{
	size_t i;

	for (i = 0; i < COUNT(timeouts); i++)
		is_int(lease_node_timeout_ms(timeouts[i].ttl_ms), timeouts[i].timeout_ms,
		    "time for the nodes of a lease of %" PRId64 " ms", timeouts[i].ttl_ms);
	for (i = 0; i < COUNT(margins); i++)
		is_int(lease_kill_margin_us(margins[i].ttl_us, margins[i].kill_after_us), margins[i].margin_us,
		    "margin of %" PRId64 " us in %" PRId64, margins[i].kill_after_us, margins[i].ttl_us);
}

int
main(void)
{
	test_drift();
	test_bounds();
	test_tables();
	return tap_end();
}
