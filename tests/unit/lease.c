/* SPDX-License-Identifier: MIT */
#include "lock/lease.h"

#include <limits.h>

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

/* -- Pauses ----------------------------------------------------------------- */

static const uint32_t randoms[] = { 0, 1, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff };
static const unsigned int many[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 16, 31, 32, 33, 63, 64, 65, 100, 1000,
	UINT_MAX / 2, UINT_MAX - 1, UINT_MAX };
static const int64_t attempts[] = { 0, 1, 100, 999, 1000, 5 * MS, 50 * MS, 499 * MS, 500 * MS, S, 2 * S, DAY };
static const int64_t ttls[] = { TTL_MIN_MS * MS, 11 * MS, 19 * MS, 20 * MS, 50 * MS, 100 * MS, S, 30 * S, 3600 * S,
	36525 * DAY };

/* Is a delay within bounds, and not smaller than that of fewer tries and of a smaller random number? */
struct order {
	int64_t before_tries[COUNT(randoms)];
	int64_t before_random;
};

static void
check(struct order *o, size_t try, size_t random, int64_t us, int64_t least, int64_t most)
{
	const unsigned int tries = many[try];

	each(us >= least && us <= most, "%u tries, random %" PRIu32 ": %" PRId64, tries, randoms[random], us);
	if (try > 0)
		each(us >= o->before_tries[random], "%u tries: smaller than before", tries);
	if (random > 0)
		each(us >= o->before_random, "%u tries: not from the random number", tries);
	o->before_tries[random] = us;
	o->before_random = us;
}

TEST(held)
{
	struct order o = { .before_random = 0 };

	for (size_t i = 0; i < COUNT(many); i++) {
		for (size_t j = 0; j < COUNT(randoms); j++)
			check(&o, i, j, lease_wait_held_us(many[i], randoms[j]), 50 * MS, many[i] == 1 ? 250 * MS : S);
	}
	each_ok("while another holds: from 50 to 250 ms, and never more than a second");
	is_int(lease_wait_held_us(1, 0), 50 * MS, "the shortest pause is 50 ms");
	ok(lease_wait_held_us(1, UINT32_MAX) > 249 * MS, "the longest first pause is 250 ms");
	ok(lease_wait_held_us(1000, UINT32_MAX) > 999 * MS, "pauses grow to a second");
	is_int(lease_wait_held_us(1000, 0), 50 * MS, "some pauses stay short");
}

TEST(split)
{
	for (size_t k = 0; k < COUNT(attempts); k++) {
		struct order o = { .before_random = 0 };

		for (size_t i = 0; i < COUNT(many); i++) {
			for (size_t j = 0; j < COUNT(randoms); j++)
				check(&o, i, j, lease_wait_split_us(many[i], randoms[j], attempts[k]), 0, S);
		}
	}
	each_ok("after a split vote: never more than a second");
	for (size_t k = 0; k < COUNT(attempts); k++) {
		const int64_t most = lease_wait_split_us(1, UINT32_MAX, attempts[k]);

		if (attempts[k] >= MS && attempts[k] <= 200 * MS)
			each(most > attempts[k] && most <= 5 * attempts[k], "%" PRId64 ": %" PRId64, attempts[k], most);
		else
			each(most >= MS, "%" PRId64 ": %" PRId64, attempts[k], most);
	}
	each_ok("contenders spread over a few times what an attempt took");
}

/* The time from a renewal that failed to the next one. */
static int64_t
after_failure(uint32_t random, int64_t ttl_us)
{
	struct lease_schedule k = { .ttl_us = ttl_us, .valid_until_us = 7 * S + ttl_us };

	lease_failed(&k, 7 * S, random);
	return k.renew_at_us - 7 * S;
}

TEST(renewal)
{
	for (size_t k = 0; k < COUNT(ttls); k++) {
		for (size_t j = 0; j < COUNT(randoms); j++) {
			const int64_t us = after_failure(randoms[j], ttls[k]);

			each(us > 0 && us <= ttls[k] / 100 && us <= 50 * MS, "ttl %" PRId64 ": %" PRId64, ttls[k], us);
		}
		each(after_failure(UINT32_MAX, ttls[k]) > after_failure(0, ttls[k]), "not random");
	}
	each_ok("after a failed renewal: soon, and never more than a hundredth of the lease");
	is_int(after_failure(0, 30 * S), 5 * MS, "after a failed renewal: 5 ms at least");
}

/* Those who wait for the end of a lease try one behind the other; those who can't know it, now and then. */
TEST(queued)
{
	static const int64_t lefts[] = { 0, 1, 500, 1000, 5000, 9999, 10000 };
	static const int64_t many_before[] = { 0, 1, 2, 3, 10, 65, 66, 67, 1000, INT64_MAX };

	for (size_t j = 0; j < COUNT(randoms); j++) {
		const int64_t most = lease_wait_queued_us(INT64_MAX, 2, randoms[j]);
		const int64_t front = lease_wait_queued_us(INT64_MAX, 1, randoms[j]);

		each(most >= 2 * S && most <= 10 * S, "%" PRId64 " us", most);
		each(front >= 2 * S && front <= 3 * S && front <= most, "%" PRId64 " us for the first two", front);
		each(lease_wait_queued_us(-1, 5, randoms[j]) == most &&
			lease_wait_queued_us(10001, 2, randoms[j]) == most,
		    "a lease without an end, or with a far one, is no other");
		for (size_t i = 0; i < COUNT(lefts); i++) {
			const int64_t end = lefts[i] * MS + MS;
			int64_t before = 0;

			for (size_t k = 0; k < COUNT(many_before); k++) {
				const int64_t us = lease_wait_queued_us(lefts[i], many_before[k], randoms[j]);
				const int64_t cap = many_before[k] < 2 ? front : most;

				each(us <= cap && us <= end + S, "%" PRId64 " us is too long", us);
				each(us >= before, "%" PRId64 " before: sooner than who comes first", many_before[k]);
				each(us == cap || us >= end, "%" PRId64 " us: the lease has not ended", us);
				before = us;
			}
		}
	}
	each_ok("in a queue: when the lease has ended, in turn, and every few seconds");
	is_int(lease_wait_queued_us(1000, 0, UINT32_MAX), 1001 * MS, "the first tries when the lease has ended");
	is_int(lease_wait_queued_us(1000, 3, UINT32_MAX), 1046 * MS, "the fourth when three had 15 ms each");
	is_int(lease_wait_queued_us(1000, 200, UINT32_MAX), 2001 * MS, "the last within a second");
	ok(lease_wait_queued_us(-1, 0, 0) != lease_wait_queued_us(-1, 0, UINT32_MAX),
	    "waiters for a lease of unknown length do not try all at once");
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
	static const int64_t lengths[] = { S, 2 * S, 3 * S, 10 * S, 30 * S, 60 * S, 3600 * S };
	int64_t back, margin, signal_at;

	for (size_t i = 0; i < COUNT(lengths); i++) {
		margin = lengths[i] / 6 < 5 * S ? lengths[i] / 6 : 5 * S;
		start(0, lengths[i], granted_until(0, lengths[i]), true);
		signal_at = k.valid_until_us - lease_kill_margin_us(lengths[i], margin);
		back = k.renew_at_us + lengths[i] / 2;
		ok(back + lengths[i] / 50 <= signal_at,
		    "a lease of %" PRId64 " s outlives a server that is away for half of it", lengths[i] / S);
	}
}
