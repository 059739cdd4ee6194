/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_RUN_GUARDIAN_H
#define DLOCK_RUN_GUARDIAN_H
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/*
 * The guardian: a process that kills the command where dlock itself can't.
 *
 * It waits at the end of a pipe that only dlock holds open, and for the end of validity, which it reads in memory that it
 * shares with dlock.  Where the pipe ends without a word, dlock was killed: the command dies by its parent-death signal,
 * which its own children don't inherit, so the guardian kills the group.  Where validity ends, dlock is stopped or held
 * up, or about to do the same: the guardian kills the command, and from then on that validity can't be extended.
 *
 * It has no other descriptor and a session of its own, so that what kills or stops dlock's group doesn't hit it.
 */
struct guarded {
	_Atomic int64_t until_us; /* the end of validity, until the guardian has struck */
};

struct guardian {
	pid_t pid;
	int fd;			/* the pipe to it, closed on exec; -1: no guardian */
	struct guarded *shared; /* with it; NULL: no guardian */
};

/* Start it, before the command.  With CLOCK_NEVER it strikes only when dlock was killed. */
enum status guardian_start(struct guardian *, int64_t valid_until_us, struct err *);

/* Tell it whom to kill: -N a group, N a process, which is left alone when dlock was killed.  Safe between vfork and exec. */
void guardian_watch(int fd, pid_t target);

/* Validity ends later than before.  False: too late, it has struck.  Any thread may call it. */
bool guardian_extend(const struct guardian *, int64_t valid_until_us);

/* All is well: let it go without harm. */
void guardian_dismiss(struct guardian *);

/* See it gone, once it is dismissed, and forget it. */
void guardian_reap(struct guardian *);

#endif
