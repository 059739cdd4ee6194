/* SPDX-License-Identifier: MIT */
#include "lock/lease.h"

#include <limits.h>

#include "tap.h"

#define MS INT64_C(1000)
#define S (1000 * MS)
#define DAY (86400 * S)

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
