/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_BASE_SIGPIPE_H
#define DLOCK_BASE_SIGPIPE_H

/*
 * A write of this thread has failed.  Where the kernel has sent it a signal for that (SIGPIPE, SIGXFSZ), which is blocked,
 * take that back: who waits for signals must hear only of those that other processes have sent.  errno stays as it is.
 */
void sigpipe_take_back(void);

#endif
