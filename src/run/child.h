/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_RUN_CHILD_H
#define DLOCK_RUN_CHILD_H
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "run/group.h"
#include "run/signals.h"
#include "run/tether.h"

/*
 * The command: started, signalled, reaped.  The only file that knows exec.
 */
struct child_plan {
	char *const *argv;
	char *const *environment;    /* NULL: ours */
	bool own_group;		     /* a process group of its own */
	int terminal;		     /* to be given to that group; -1: none */
	const struct tether *tether; /* to that group */
	int64_t until_us;	     /* it must not begin after this instant */
	const struct signals *signals;
};

struct child {
	pid_t pid;
	pid_t group; /* 0: ours */
	bool ended;
	int status; /* as wait(2) gives it, once it has ended */
	struct group_watch watch;
};

enum child_event {
	CHILD_NOTHING,	/* nothing more to reap */
	CHILD_STRANGER, /* something that was left to us has ended */
	CHILD_STOPPED,	/* child.status says by which signal */
	CHILD_CONTINUED,
	CHILD_ENDED
};

/*
 * Start the command.  Call it on the main thread: the command dies by SIGKILL with the thread that started it, where the
 * system can do that (Linux).  ST_NOT_FOUND, ST_NOT_EXECUTABLE, ST_SYSTEM, ST_NO_QUORUM (too late): nothing was started.
 */
enum status child_start(const struct child_plan *, struct child *, struct err *);

/* The error of a command for which no time is left: ST_NO_QUORUM. */
enum status child_too_late(struct err *);

/* Reap one thing that has happened. */
enum child_event child_reap(struct child *);

/* Send a signal to the command and what it started in its group. */
void child_signal(const struct child *, int signal);

/* Has the command ended, and everything else in its process group? */
bool child_gone(struct child *);

#endif
