/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_SIM_MUTANT_H
#define DLOCK_SIM_MUTANT_H
#include <stdbool.h>

/*
 * Mistakes that dlock could make.  Each leaves out one rule of the protocol in a script or in the C code.  A simulation
 * that doesn't detect them would be worthless.
 */

/* Apply this mutant from now on.  False: there is none of that name. */
bool mutant_choose(const char *name);

/* Does the text that the chosen mutant changes still exist in the scripts?  True if none was chosen. */
bool mutant_can_be_made(void);

/* Print the names, one per line. */
int mutant_list(void);

#endif
