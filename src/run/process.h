/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_RUN_PROCESS_H
#define DLOCK_RUN_PROCESS_H
#include <sys/types.h>

/*
 * Waiting for processes.
 */

/* waitpid(2), restarted after EINTR. */
pid_t process_wait(pid_t, int *status, int options);

#endif
