/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_RUN_TETHER_H
#define DLOCK_RUN_TETHER_H
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "base/err.h"

/*
 * What the kernel does for a dlock that can do nothing itself: killed, stopped, or hung.
 *
 * The command's process group is tied to dlock by a pipe of which dlock holds both ends.  Whatever dlock dies of, the
 * kernel closes them, one first; the other, which is set to report that by SIGKILL, kills the group.
 *
 * And dlock is tied to its lease by two timers.  The first sends SIGCONT to dlock at the end of validity: a dlock that is
 * stopped goes on, and ends the command itself.  The second sends SIGKILL to dlock a little later, for one that does not;
 * the group dies with it.  The second timer stands still while the host is suspended, so that it does not fire first.
 */
struct tether {
	int ends[2]; /* closed on exec; -1: none */
	timer_t wake, kill;
	int timers; /* how many of them there are, in this order */
	int64_t grace_us;
};

/*
 * Make it, with dlock tied: it is continued at until_us, and killed grace_us later.  CLOCK_NEVER: only the end of dlock
 * means anything, and there are no timers.  Whatever is returned, close it.
 */
enum status tether_open(struct tether *, int64_t until_us, int64_t grace_us, struct err *);

/* Tie a process group.  False with errno set if the system refuses.  Safe between vfork and exec. */
bool tether_bind(const struct tether *, pid_t group);

/* Validity ends later than before; CLOCK_NEVER: its end means nothing any more.  Any thread may call it. */
void tether_extend(const struct tether *, int64_t until_us);

/* Nothing is tied to anything any more. */
void tether_close(struct tether *);

#endif
