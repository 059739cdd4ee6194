/* SPDX-License-Identifier: MIT */
#include "lock/lease.h"

#include "base/clock.h"
#include "lock/service.h"
#include "tap.h"

#define MS INT64_C(1000)
#define S (1000 * MS)
#define DAY (86400 * S)

static const struct {
	int64_t ttl_us, drift_us;
} drifts[] = {
	{ TTL_MIN_MS * MS, 2100 },
	{ 100 * MS, 3 * MS },
	{ S, 12 * MS },
	{ 30 * S, 302 * MS },
	{ 3600 * S, 36 * S + 2 * MS },
	{ 36525 * DAY, 36525 * DAY / 100 + 2 * MS },
};

TEST(drift)
{
	for (size_t i = 0; i < COUNT(drifts); i++) {
		is_int(lease_drift_us(drifts[i].ttl_us), drifts[i].drift_us, "drift of %" PRId64 " us",
		    drifts[i].ttl_us);
		is_int(lease_valid_until(7 * S, drifts[i].ttl_us), 7 * S + drifts[i].ttl_us - drifts[i].drift_us,
		    "validity of %" PRId64 " us", drifts[i].ttl_us);
	}
	ok(lease_valid_until(0, TTL_MIN_MS * MS) > 0, "the shortest lease is valid for a while");
}

TEST(bounds)
{
	int64_t ttl, kill_after, margin;

	for (int i = 0; i < 20000; i++) {
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
	int64_t ttl_ms, timeout_ms;
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
	int64_t ttl_us, kill_after_us, margin_us;
} margins[] = {
	{ 30 * S, 5 * S, 5 * S },
	{ 30 * S, 10 * S, 10 * S },
	{ 30 * S, 11 * S, 10 * S },
	{ 3 * S, 5 * S, S },
	{ 30 * S, 0, 0 },
	{ 30 * S, INT64_MAX, 10 * S },
};

TEST(tables)
{
	for (size_t i = 0; i < COUNT(timeouts); i++)
		is_int(lease_node_timeout_ms(timeouts[i].ttl_ms), timeouts[i].timeout_ms,
		    "time for the nodes of a lease of %" PRId64 " ms", timeouts[i].ttl_ms);
	for (size_t i = 0; i < COUNT(margins); i++)
		is_int(lease_kill_margin_us(margins[i].ttl_us, margins[i].kill_after_us), margins[i].margin_us,
		    "margin of %" PRId64 " us in %" PRId64, margins[i].kill_after_us, margins[i].ttl_us);
}

/* -- The schedule of renewals ------------------------------------------------ */

static struct lease_schedule k;

/* What the Redlock description grants a request of that instant. */
static int64_t
granted_until(int64_t sent_us, int64_t ttl_us)
{
	return sent_us + ttl_us - ttl_us / 100 - 2 * MS;
}

static void
start(int64_t sent_us, int64_t ttl_us, int64_t valid_until_us, bool everywhere)
{
	lease_start(&k,
	    &(struct lease){ .sent_us = sent_us,
		.ttl_ms = ttl_us / MS,
		.valid_until_us = valid_until_us,
		.nodes = 3,
		.granted = everywhere ? 3 : 2 });
}

TEST(start)
{
	memset(&k, 0xa5, sizeof(k));
	start(100 * S, 30 * S, 129 * S, true);
	is_int(k.valid_until_us, 129 * S, "validity is as granted");
	is_int(k.renew_at_us, 109 * S, "the first renewal is due after three tenths of the lease");
	ok(!k.lost, "nothing has gone wrong yet");
	start(100 * S, 30 * S, 129 * S, false);
	is_int(k.renew_at_us, 100 * S + 100 * MS, "where a node lacks the lock it is due after 100 ms");
	start(100 * S, 150 * MS, 101 * S, false);
	is_int(k.renew_at_us, 100 * S + 45 * MS, "or after three tenths of a lease that is short");
	lease_hasten(&k, 101 * S);
	is_int(k.renew_at_us, 100 * S + 45 * MS, "what is due later hastens nothing");
	start(100 * S, 30 * S, 129 * S, true);
	lease_hasten(&k, 105 * S);
	is_int(k.renew_at_us, 105 * S, "a renewal can be due earlier");
	start(100 * S, 30 * S, 129 * S, true);
	ok(!lease_over(&k, 129 * S - 1), "valid until the last microsecond");
	ok(lease_over(&k, 129 * S), "not valid after that");
}

TEST(renewed)
{
	start(100 * S, 30 * S, granted_until(100 * S, 30 * S), true);
	lease_failed(&k, 110 * S, 5);
	lease_failed(&k, 111 * S, 5);
	lease_renewed(&k, 112 * S, granted_until(112 * S, k.ttl_us));
	is_int(k.valid_until_us, granted_until(112 * S, 30 * S), "a renewal counts from when it was sent");
	is_int(k.renew_at_us, 121 * S, "the next one is due three tenths of the lease after that");
	lease_renewed(&k, 105 * S, granted_until(105 * S, k.ttl_us));
	is_int(k.valid_until_us, granted_until(112 * S, 30 * S), "a late answer to an older round takes nothing back");

	start(100 * S, 30 * S, 200 * S, true);
	lease_renewed(&k, 110 * S, granted_until(110 * S, k.ttl_us));
	is_int(k.valid_until_us, 200 * S, "a renewal does not make a longer validity shorter");
}

TEST(failed)
{
	start(100 * S, 30 * S, 129 * S, true);
	lease_failed(&k, 112 * S, UINT32_MAX);
	ok(k.renew_at_us > 112 * S && k.renew_at_us <= 112 * S + 50 * MS,
	    "the next round is sent 50 ms behind it at most");
	is_int(k.valid_until_us, 129 * S, "a failure changes nothing about validity");
	lease_failed(&k, 114 * S, 0);
	is_int(k.renew_at_us, 114 * S + 5 * MS, "the next round is sent after 5 ms at least");
	ok(!k.lost, "a failure is no loss");
	lease_failed(&k, 129 * S - 4 * MS, 0);
	ok(k.renew_at_us == CLOCK_NEVER, "no further round if validity ends first");
	start(100 * S, 30 * S, 129 * S, true);
	lease_failed(&k, 129 * S, 0);
	ok(k.renew_at_us == CLOCK_NEVER, "no further round when validity has ended");
}

TEST(lost)
{
	start(100 * S, 30 * S, 129 * S, true);
	lease_lost(&k);
	ok(k.lost && k.renew_at_us == CLOCK_NEVER, "a lost lock is not renewed");
	is_int(k.valid_until_us, 129 * S, "validity does not grow by it");
	lease_renewed(&k, 111 * S, granted_until(111 * S, k.ttl_us));
	ok(k.lost, "lost stays lost after a renewal");
	lease_failed(&k, 112 * S, 0);
	ok(k.lost, "lost stays lost after a failure");
	lease_hasten(&k, 0);
	ok(k.renew_at_us == CLOCK_NEVER, "no event brings another renewal");
}

/*
 * A server goes away just when a renewal is due, and for half of the lease: it is back, and has answered, before the command
 * gets its first signal by the default --kill-after.  What is left for the answer is 2% of the lease.
 */
TEST(outage)
{
	static const int64_t ttls[] = { S, 2 * S, 3 * S, 10 * S, 30 * S, 60 * S, 3600 * S };
	int64_t back, margin, signal_at;

	for (size_t i = 0; i < COUNT(ttls); i++) {
		margin = ttls[i] / 6 < 5 * S ? ttls[i] / 6 : 5 * S;
		start(0, ttls[i], granted_until(0, ttls[i]), true);
		signal_at = k.valid_until_us - lease_kill_margin_us(ttls[i], margin);
		back = k.renew_at_us + ttls[i] / 2;
		ok(back + ttls[i] / 50 <= signal_at,
		    "a lease of %" PRId64 " s outlives a server that is away for half of it", ttls[i] / S);
	}
}
