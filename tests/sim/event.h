/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_SIM_EVENT_H
#define DLOCK_SIM_EVENT_H
#include <stdbool.h>
#include <stdint.h>

/*
 * The simulated time, in microseconds, and the event queue.  Time advances only from event to event.  Events of the
 * same instant happen in the order in which they were scheduled.
 */
typedef void event_happen(void *subject, unsigned int number);
#pragma GCC diagnostic ignored "-Wunused-parameter" /* most need one of them only */

void event_reset(int64_t now_us);
int64_t event_now(void);

/* Schedule an event.  An instant in the past means now. */
void event_at(int64_t at_us, event_happen *, void *subject, unsigned int number);

/* Run the next event if it isn't after until_us.  False: there is none, and the time is now until_us. */
bool event_next(int64_t until_us);

/* The number of events since the reset. */
unsigned long event_count(void);

#endif
