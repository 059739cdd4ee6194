/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_BASE_CLOCK_H
#define DLOCK_BASE_CLOCK_H
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/*
 * The clocks.
 *
 * Instants are microseconds of CLOCK_BOOTTIME: it never jumps and it counts the time that the host slept
 * (CLOCK_MONOTONIC on Linux does not), so that a laptop that wakes up knows that its lease has ended.
 * The time of day is used for one thing only, the candidate of a fence.
 */
#define CLOCK_NEVER INT64_MAX

/* The present instant. */
int64_t clock_now_us(void);

/* The time of day, microseconds since 1970. */
int64_t clock_wall_us(void);

/* From now until the instant, for ppoll(2): zero if it has passed, NULL for CLOCK_NEVER. */
struct timespec *clock_until(int64_t now_us, int64_t until_us, struct timespec *);

/* An instant plus a length; CLOCK_NEVER stays CLOCK_NEVER. */
int64_t clock_add(int64_t instant_us, int64_t length_us);

/* The sooner one of two instants. */
int64_t clock_sooner(int64_t a_us, int64_t b_us);

/*
 * A descriptor that becomes readable at an instant, also when that instant passed while the host slept.
 * clock_alarm_open() returns it, or -1 with errno set.  Setting it again replaces the instant, also one that
 * has already fired; CLOCK_NEVER switches it off.
 */
int clock_alarm_open(void);
void clock_alarm_set(int alarm, int64_t at_us);

/*
 * A timer that sends a signal to this process, once for each time that it is set: after so many microseconds, or, with
 * TIMER_ABSTIME, at such an instant of its clock; at once if that has passed.  CLOCK_NEVER switches it off.  False with
 * errno set if the system refuses.
 */
bool clock_timer_open(clockid_t, int signal, timer_t *);
bool clock_timer_set(timer_t, int flags, int64_t us);

#endif
