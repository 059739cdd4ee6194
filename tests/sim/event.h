/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_SIM_EVENT_H
#define DLOCK_SIM_EVENT_H
#include <stdbool.h>
#include <stdint.h>

/*
 * The simulated time, in microseconds, and what happens when.  Time passes from event to event only; events of the same
 * instant happen in the order in which they were planned.
 */
typedef void event_happen(void *subject, unsigned int number);

void event_reset(int64_t now_us);
int64_t event_now(void);

/* Plan one; an instant that has passed means now. */
void event_at(int64_t at_us, event_happen *, void *subject, unsigned int number);

/* Let the next one happen, unless that is after the instant.  False: there is none; the time is the instant's then. */
bool event_next(int64_t until_us);

/* How many have happened since the reset. */
unsigned long event_count(void);

#endif
