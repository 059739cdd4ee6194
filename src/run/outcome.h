/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_RUN_OUTCOME_H
#define DLOCK_RUN_OUTCOME_H
#include "run/supervisor.h"

struct ending {
	int64_t began_us;	/* the lock was held then */
	int64_t valid_until_us; /* the end of validity */
	enum status start;	/* with which the command was started */
	bool hasty;		/* dlock was asked to end: nothing is tried again for the history alone */
};

/*
 * Release the lock at the end, or keep it as --min-hold and --once-per require; the history gets the outcome.  Where
 * something is to be recorded so, and no majority can be reached, this is tried until the end of validity, or until a
 * signal comes that ends dlock.  *result has the outcome and the status of the command; if the lock was lost, its holder
 * is set.
 *
 * True: the loss was noticed only now.  The error says why, and has been logged, and the outcome is OUTCOME_LOST.  A
 * release that fails is logged.
 */
bool outcome_release(const struct supervision *, const struct ending *, struct supervised *result, struct err *);

#endif
