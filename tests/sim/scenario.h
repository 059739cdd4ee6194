/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_SIM_SCENARIO_H
#define DLOCK_SIM_SCENARIO_H
#include "plan.h"

/*
 * Handwritten schedules.  Each of them once showed that dlock broke a rule.  The schedule of a seed changes with dlock;
 * these don't change.
 */

/* Fill in the plan (if not NULL) of that name.  Returns how many times to run it; 0: there is none of that name. */
int scenario_make(const char *name, struct plan *);

/* Print the names, one per line. */
int scenario_list(void);

#endif
