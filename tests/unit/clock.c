/* SPDX-License-Identifier: MIT */
#include "base/clock.h"

#include <poll.h>
#include <unistd.h>

#include "tap.h"

static const struct {
	int64_t now, until;
	int64_t seconds, nanoseconds;
} lengths[] = {
	{ 0, 0, 0, 0 },
	{ 5, 4, 0, 0 },
	{ 1000000, 0, 0, 0 },
	{ 0, 1, 0, 1000 },
	{ 0, 999999, 0, 999999000 },
	{ 0, 1000000, 1, 0 },
	{ 7, 2000008, 2, 1000 },
	{ 0, CLOCK_NEVER - 1, INT64_C(9223372036854), 775806000 },
	{ CLOCK_NEVER - 1, 5, 0, 0 },
};

static const struct {
	int64_t instant, length, sum;
} sums[] = {
	{ 5, 7, 12 },
	{ 5, 0, 5 },
	{ 5, -7, -2 },
	{ CLOCK_NEVER, 0, CLOCK_NEVER },
	{ CLOCK_NEVER, -7, CLOCK_NEVER },
	{ CLOCK_NEVER, CLOCK_NEVER, CLOCK_NEVER },
	{ 5, CLOCK_NEVER, CLOCK_NEVER },
	{ CLOCK_NEVER - 5, 4, CLOCK_NEVER - 1 },
	{ CLOCK_NEVER - 5, 6, CLOCK_NEVER },
};

static bool
readable(int fd, int timeout_ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, timeout_ms) == 1;
}

TEST(alarm)
{
	const int alarm = clock_alarm_open();
	char path[60], line[100] = "";
	FILE *info;
	int clock = -1;

	if (!ok(alarm >= 0, "an alarm"))
		return;
	(void)snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", alarm);
	info = fopen(path, "re");
	while (info != NULL && clock < 0 && fgets(line, sizeof(line), info) != NULL)
		(void)sscanf(line, "clockid: %d", &clock);
	is_int(clock, CLOCK_BOOTTIME, "counts the time for which the host is suspended");
	if (info != NULL)
		(void)fclose(info);
	ok(!readable(alarm, 0), "is silent at first");
	clock_alarm_set(alarm, clock_now_us() + 2000);
	ok(readable(alarm, 10000), "rings when the instant comes");
	clock_alarm_set(alarm, CLOCK_NEVER);
	ok(!readable(alarm, 0), "is silent when it is switched off");
	clock_alarm_set(alarm, clock_now_us() - 2000);
	ok(readable(alarm, 10000), "rings at once when the instant has passed");
	clock_alarm_set(alarm, clock_now_us() + INT64_C(3600000000));
	ok(!readable(alarm, 0), "is silent when it is set to a later instant");
	clock_alarm_set(alarm, 0);
	ok(readable(alarm, 10000), "rings for the beginning of time");
	clock_alarm_set(alarm, -5);
	ok(readable(alarm, 10000), "rings for an instant before that");
	(void)close(alarm);
}

TEST(clock)
{
	struct timespec t;
	int64_t before, now;

	for (size_t i = 0; i < COUNT(lengths); i++) {
		ok(clock_until(lengths[i].now, lengths[i].until, &t) == &t && t.tv_sec == lengths[i].seconds &&
			t.tv_nsec == lengths[i].nanoseconds,
		    "from %" PRId64 " to %" PRId64, lengths[i].now, lengths[i].until);
	}
	ok(clock_until(5, CLOCK_NEVER, &t) == NULL, "never");
	for (size_t i = 0; i < COUNT(sums); i++)
		is_int(clock_add(sums[i].instant, sums[i].length), sums[i].sum, "%" PRId64 " and %" PRId64 " more",
		    sums[i].instant, sums[i].length);
	is_int(clock_sooner(7, CLOCK_NEVER), 7, "the sooner one");
	is_int(clock_sooner(7, 5), 5, "the second one may be the sooner one");
	before = clock_now_us();
	for (size_t i = 0; i < 100000; i++, before = now) {
		now = clock_now_us();
		each(now >= before, "back by %" PRId64, before - now);
	}
	each_ok("time goes on");
	ok(clock_wall_us() > INT64_C(1500000000000000), "the time of day is in microseconds");
}

TEST(wait)
{
	struct wait wait = { .until_us = 0 };
	int ends[2];

	if (!ok(pipe(ends) == 0, "a pipe"))
		return;
	wait.interrupt_fd = ends[0];
	ok(!clock_wait(&wait), "the time is over");
	wait.until_us = CLOCK_NEVER;
	ok(write(ends[1], "x", 1) == 1 && clock_wait(&wait), "it is interrupted");
	(void)close(ends[0]);
	(void)close(ends[1]);
}
