/* SPDX-License-Identifier: MIT */
#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/timerfd.h>

static int64_t
read_us(clockid_t id)
{
	struct timespec t = { 0, 0 };

	(void)clock_gettime(id, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

int64_t
clock_now_us(void)
{
	return read_us(CLOCK_BOOTTIME);
}

int64_t
clock_wall_us(void)
{
	return read_us(CLOCK_REALTIME);
}

struct timespec *
clock_until(int64_t now_us, int64_t until_us, struct timespec *length)
{
	const int64_t left_us = until_us > now_us ? until_us - now_us : 0;

	if (until_us == CLOCK_NEVER)
		return NULL;
	length->tv_sec = (time_t)(left_us / 1000000);
	length->tv_nsec = (long)(left_us % 1000000) * 1000;
	return length;
}

bool
clock_wait(const struct wait *wait)
{
	struct pollfd fd = { .fd = wait->interrupt_fd, .events = POLLIN };
	struct timespec left;
	int ready;

	do
		ready = ppoll(&fd, 1, clock_until(clock_now_us(), wait->until_us, &left), NULL);
	while (ready < 0 && errno == EINTR);
	return ready > 0;
}

int64_t
clock_add(int64_t instant_us, int64_t length_us)
{
	if (instant_us == CLOCK_NEVER || length_us > CLOCK_NEVER - instant_us)
		return CLOCK_NEVER;
	return instant_us + length_us;
}

int64_t
clock_sooner(int64_t a_us, int64_t b_us)
{
	return a_us < b_us ? a_us : b_us;
}

int
clock_alarm_open(void)
{
	return timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
}

static struct itimerspec
once(int64_t us)
{
	struct itimerspec when = { { 0, 0 }, { 0, 0 } };

	if (us != CLOCK_NEVER) {
		if (us < 1)
			us = 1; /* zero would disarm the timer */
		when.it_value.tv_sec = (time_t)(us / 1000000);
		when.it_value.tv_nsec = (long)(us % 1000000) * 1000;
	}
	return when;
}

void
clock_alarm_set(int alarm, int64_t at_us)
{
	const struct itimerspec when = once(at_us);

	(void)timerfd_settime(alarm, TFD_TIMER_ABSTIME, &when, NULL);
}

bool
clock_timer_open(clockid_t clock, int signal, timer_t *timer)
{
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = signal };

	return timer_create(clock, &event, timer) == 0;
}

bool
clock_timer_set(timer_t timer, int flags, int64_t us)
{
	const struct itimerspec when = once(us);

	return timer_settime(timer, flags, &when, NULL) == 0;
}
