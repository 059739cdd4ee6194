/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_RUN_TETHER_H
#define DLOCK_RUN_TETHER_H
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "base/err.h"

/*
 * What the kernel does for a dlock that can do nothing any more: no process is needed for it that could itself be killed.
 *
 * The command's process group is tied to dlock by a pipe of which dlock holds both ends.  Whatever dlock dies of, the
 * kernel closes them, one first; the other, which is set to report that by SIGKILL, kills the group.
 *
 * And dlock is tied to its lease by a timer that kills dlock itself: one that is stopped, or hangs where nothing should,
 * dies in time, and the group with it.
 */
struct tether {
	int ends[2]; /* closed on exec; -1: none */
	timer_t timer;
	bool has_timer;
};

/* Make it; nothing is tied yet. */
enum status tether_open(struct tether *, struct err *);

/* Tie a process group.  False with errno set if the system refuses.  Safe between vfork and exec. */
bool tether_bind(const struct tether *, pid_t group);

/*
 * Tie dlock: it dies shortly after this instant.  CLOCK_NEVER unties it.  Any thread may call it.  False if there is no
 * such timer: the system has none left, or dlock is the first process of a container, which kills itself by no signal.
 */
bool tether_limit(const struct tether *, int64_t until_us);

/* Nothing is tied to anything any more. */
void tether_close(struct tether *);

#endif
