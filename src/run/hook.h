/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_RUN_HOOK_H
#define DLOCK_RUN_HOOK_H
#include <stdint.h>
#include <sys/types.h>

#include "base/log.h"
#include "run/signals.h"

/*
 * The command of --exec-on-lost, which is run when the lock is lost.
 *
 * It runs in a session of its own: no signal for the command or for dlock reaches it, and it goes on if dlock ends.  It
 * has the standard output and error of dlock, and no standard input.
 */
struct hook {
	/* set by the caller */
	const char *command;	  /* for sh -c; NULL: there is none, and the functions do nothing */
	char *const *environment; /* NULL: that of dlock */
	const char *directory;	  /* NULL, or it is gone: that of dlock */
	const char *shown_key;	  /* for messages */
	const struct signals *signals;
	const struct log *log;

	/* the state; zero at first */
	pid_t pid;	  /* 0: it does not run */
	int64_t until_us; /* how long dlock waits for it */
};

/* Start it, with DLOCK_LOST_REASON in its environment.  A failure is a warning.  Returns at once. */
void hook_start(struct hook *, const char *reason);

/* A child of dlock has ended: if it is the hook, and it has failed, that is a warning. */
void hook_reaped(struct hook *, pid_t, int status);

/*
 * Wait until it has ended, for 10 seconds from its start at most, or until a signal that would end dlock.  A hook that
 * still runs then goes on by itself, which is a warning.
 */
void hook_finish(struct hook *);

#endif
