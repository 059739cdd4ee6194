/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_RUN_GUARDIAN_H
#define DLOCK_RUN_GUARDIAN_H
#include <sys/types.h>

#include "base/err.h"

/*
 * The guardian: a process that outlives a dlock that was killed by SIGKILL, and then kills what the command started.
 *
 * The command itself dies by its parent-death signal, which is not inherited by its own children.  The guardian waits at
 * the end of a pipe that only dlock holds open; when that ends without a word, it sends SIGKILL to the command's process
 * group.  It has no other descriptor and a session of its own, so that whatever kills dlock's group doesn't hit it.
 */
struct guardian {
	pid_t pid;
	int fd; /* the pipe to it, closed on exec; -1: no guardian */
};

/* Start it, before the command. */
enum status guardian_start(struct guardian *, struct err *);

/* Tell it which group to kill.  Safe between vfork and exec. */
void guardian_watch(int fd, pid_t group);

/* All is well: let it go without harm. */
void guardian_dismiss(struct guardian *);

/* See it gone, once it is dismissed. */
void guardian_reap(const struct guardian *);

#endif
