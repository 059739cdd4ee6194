/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_RUN_DEATH_PIPE_H
#define DLOCK_RUN_DEATH_PIPE_H
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "base/err.h"

/*
 * Arrangements with the kernel for a dlock that was killed, is stopped, or hangs.
 *
 * A pipe whose two ends are held by dlock ties the process group of the command to dlock.  When dlock dies, for any
 * reason, the kernel closes both ends, one after the other.  The remaining end is set to report that by SIGKILL to the
 * group.
 *
 * Two timers tie dlock to its lease.  The first sends SIGCONT to dlock when it must begin to end the command, some time
 * before the end of validity: a stopped dlock continues and does that.  The second sends SIGKILL to dlock a little
 * after the end of validity, if the command has not been killed; the group is killed with it.  The second timer does
 * not run while the host is suspended, so that it does not fire first.
 */
struct death_pipe {
	int ends[2]; /* closed on exec; -1: none */
	timer_t wake, kill;
	int timers; /* number of the two that exist, in this order */
	int64_t lead_us, grace_us;
};

/*
 * Make the pipe and the timers: dlock is continued lead_us before until_us, the end of validity, and killed grace_us
 * after it.  CLOCK_NEVER: the pipe only, no timers.  Call death_pipe_close() whatever is returned.
 */
enum status death_pipe_open(struct death_pipe *, int64_t until_us, int64_t lead_us, int64_t grace_us, struct err *);

/*
 * Tie a process, or the group -owner, to dlock: it gets this signal.  False with errno set on a system error.  Safe
 * between vfork and exec.
 */
bool death_pipe_bind(const struct death_pipe *, pid_t owner, int signal);

/* Set a later end of validity; CLOCK_NEVER: disarm the timers.  Any thread may call it. */
void death_pipe_extend(const struct death_pipe *, int64_t until_us);

/* Remove the pipe and the timers. */
void death_pipe_close(struct death_pipe *);

#endif
