/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_SIM_WORLD_H
#define DLOCK_SIM_WORLD_H
#include <stdbool.h>
#include <stdint.h>

#include "plan.h"

/*
 * Schedules are run here: servers, network and clients are set up, faults strike, and the judge looks at each step.
 */

/* What was broken; NULL: nothing. */
struct breach {
	const char *rule;
	char what[240];
};

/* Run a plan.  True: no rule was broken.  With `trace` every step is printed. */
bool world_run(const struct plan *, bool trace, struct breach *);

/* For the parts of the world: a line of the trace. */
bool world_traces(void);
void world_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
