/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_RUN_GUARDIAN_H
#define DLOCK_RUN_GUARDIAN_H
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "run/tether.h"

/*
 * What ends the command where dlock itself can't.
 *
 * First the tether: where dlock is killed, the kernel kills the command's group, and where validity ends for a dlock that
 * is stopped, dlock with it.  Then, for a command that lasts, the guardian: a process that waits for the end of validity,
 * which it reads in memory that it shares with dlock, and kills the command instead, so that dlock lives to tell of it.
 * Where validity ends, dlock is stopped or held up, or about to do the same; from then on that validity can't be extended.
 *
 * The guardian has a session of its own, so that what kills or stops dlock's group doesn't hit it, and no descriptors but
 * the alarm that it sleeps by: dlock moves that on with validity, and the guardian sleeps on.
 * Where dlock can't be limited by the tether, it is there before the command.
 */
struct guarded {
	_Atomic int64_t until_us; /* the end of validity, until the guardian has struck */
	_Atomic pid_t target;	  /* -N a group, N a process, 0 not known yet */
};

struct guardian {
	struct tether tether;
	int64_t until_us; /* the end of validity, as long as there is no process */
	pid_t target;
	pid_t pid;		/* of the process; 0: none */
	struct guarded *shared; /* with it; NULL: no process */
	int alarm;		/* of it; only with a process */
};

/*
 * Before the command.  With CLOCK_NEVER the end of validity means nothing, only that of dlock does.  Whatever is returned,
 * the caller has to dismiss it and to reap it.
 */
enum status guardian_open(struct guardian *, int64_t valid_until_us, struct err *);

/*
 * In the child that becomes the command: whom to kill.  -N a group, N a process, which is left to its parent-death signal
 * where dlock was killed.  False with errno set if the system refuses.  Safe between vfork and exec.
 */
bool guardian_bind(struct guardian *, pid_t target);

/*
 * Start the process, unless it is there or not wanted.  Call it on the main thread, with the command in place and before
 * another thread extends validity.  0, or an errno: then the tether goes on alone.
 */
int guardian_start(struct guardian *);

/* Validity ends later than before.  False: too late, it has struck.  Any one thread may call it. */
bool guardian_extend(struct guardian *, int64_t valid_until_us);

/* The command and its group are gone: let go without harm. */
void guardian_dismiss(struct guardian *);

/* See it gone, once it is dismissed, and forget it. */
void guardian_reap(struct guardian *);

#endif
