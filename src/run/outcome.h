/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_RUN_OUTCOME_H
#define DLOCK_RUN_OUTCOME_H
#include "run/supervisor.h"

/*
 * Release the lock at the end, or keep it as --min-hold and --once-per require; the history gets the outcome.  The lock
 * was held by began_us, and `start` is the status with which the command was started.  *result has the outcome and the
 * status of the command; if the lock was lost, its holder is set.
 *
 * True: the loss was noticed only now.  The error says why, and has been logged, and the outcome is OUTCOME_LOST.  A
 * release that fails is logged.
 */
bool outcome_release(const struct supervision *, int64_t began_us, enum status start, struct supervised *result,
    struct err *);

#endif
