/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_SIM_SCENARIO_H
#define DLOCK_SIM_SCENARIO_H
#include "plan.h"

/*
 * Schedules that are made by hand: each once showed that dlock broke a rule.  What a seed means changes with dlock;
 * these stay what they are.
 */

/* Make the one of that name, unless the plan is NULL; returns with how many chances to run it; 0: there is none. */
int scenario_make(const char *name, struct plan *);

/* Print the names, one on a line. */
int scenario_list(void);

#endif
