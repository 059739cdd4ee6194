/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_BASE_CLOCK_H
#define DLOCK_BASE_CLOCK_H
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/*
 * The clocks.
 *
 * Instants are microseconds of CLOCK_BOOTTIME.  It never jumps, and unlike CLOCK_MONOTONIC on Linux it includes the
 * time that the host was suspended, so that a lease that ended meanwhile is noticed on resume.  The time of day is used
 * only for the candidate of a fence.
 */
#define CLOCK_NEVER INT64_MAX

/* The longest time that something may take. */
struct wait {
	int64_t until_us; /* CLOCK_NEVER: no limit but those of what is done */
	int interrupt_fd; /* it ends early when this becomes readable; -1: none */
};

/* The present instant. */
int64_t clock_now_us(void);

/* The time of day, microseconds since 1970. */
int64_t clock_wall_us(void);

/* The time from now until the instant, for ppoll(2): zero if it has passed, NULL for CLOCK_NEVER. */
struct timespec *clock_until(int64_t now_us, int64_t until_us, struct timespec *);

/* Wait until the instant.  True: the descriptor is readable before. */
bool clock_wait(const struct wait *);

/* An instant plus a length; CLOCK_NEVER stays CLOCK_NEVER. */
int64_t clock_add(int64_t instant_us, int64_t length_us);

/* The earlier of two instants. */
int64_t clock_sooner(int64_t a_us, int64_t b_us);

/*
 * A descriptor that becomes readable at an instant, even if that instant passed while the host was suspended.
 * clock_alarm_open() returns it, or -1 with errno set.  Setting it again replaces the instant, even if the alarm has
 * fired already; CLOCK_NEVER disarms it.
 */
int clock_alarm_open(void);
void clock_alarm_set(int alarm, int64_t at_us);

/*
 * A timer that sends a signal to this process, once each time it is set: after `us` microseconds, or with TIMER_ABSTIME
 * at that instant of its clock, immediately if the instant has passed.  CLOCK_NEVER disarms it.  False with errno set
 * on a system error.
 */
bool clock_timer_open(clockid_t, int signal, timer_t *);
bool clock_timer_set(timer_t, int flags, int64_t us);

#endif
