/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_BASE_SIGPIPE_H
#define DLOCK_BASE_SIGPIPE_H

/*
 * Call it after a failed write of this thread.  It removes the pending signal (SIGPIPE, SIGXFSZ) that the kernel sent
 * for the write and that is blocked, so that only signals from other processes are read.  errno is unchanged.
 */
void sigpipe_take_back(void);

#endif
