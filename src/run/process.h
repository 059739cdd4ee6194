/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_RUN_PROCESS_H
#define DLOCK_RUN_PROCESS_H
#include <sys/types.h>

/*
 * What every process that dlock starts has in common.
 */

/* waitpid(2), not to be interrupted. */
pid_t process_wait(pid_t, int *status, int options);

#endif
