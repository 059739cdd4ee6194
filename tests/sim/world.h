/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_SIM_WORLD_H
#define DLOCK_SIM_WORLD_H
#include "plan.h"

/*
 * Runs schedules: sets up servers, network and clients, injects the faults, and calls the judge after each step.
 */

/* The broken rule; NULL: none. */
struct breach {
	const char *rule;
	char what[240];
};

/* Run a plan.  True: no rule was broken.  `trace`: print each step. */
bool world_run(const struct plan *, bool trace, struct breach *);

/* For the parts of the simulation: print a line of the trace. */
bool world_traces(void);
void world_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

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
