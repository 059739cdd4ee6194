/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_SIM_SCRIPT_H
#define DLOCK_SIM_SCRIPT_H
#include "store.h"

/*
 * From now on scripts run with this change of their text: NULL, or what stands in one of them, once, and what shall stand
 * there instead.  False: a script was run since the last change without a script that has it.
 */
void script_mutate(const char *from, const char *to);

/* Has the change been made in a script that was run? */
bool script_was_mutated(void);

#endif
