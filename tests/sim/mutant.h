/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_SIM_MUTANT_H
#define DLOCK_SIM_MUTANT_H
#include <stdbool.h>

/*
 * Mistakes that dlock could make: one rule of the protocol each, left out of a script or of the deciding code.  A
 * simulation that finds none of them would be worth nothing.
 */

/* Make this one from now on.  False: there is none of that name. */
bool mutant_choose(const char *name);

/* Is there what it changes, if one was chosen?  Scripts change. */
bool mutant_can_be_made(void);

/* Print the names, one on a line. */
int mutant_list(void);

#endif
