/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_RUN_GUARDIAN_H
#define DLOCK_RUN_GUARDIAN_H
#include "base/err.h"

/*
 * The guardian: a process that outlives a dlock that was killed by SIGKILL, and then kills what the command started.
 *
 * The command itself dies by its parent-death signal, which is not inherited by its own children.  The guardian waits at
 * the end of a pipe that only dlock holds open; when that ends without a word, it sends SIGKILL to the command's process
 * group.  It has no other descriptor and a session of its own, so that whatever kills dlock's group doesn't hit it.
 */

/* Start it for a process group.  *fd is the pipe to it, closed on exec. */
enum status guardian_start(int group, int *fd, struct err *);

/* All is well: it goes without harm.  -1 is no guardian. */
void guardian_dismiss(int fd);

#endif
