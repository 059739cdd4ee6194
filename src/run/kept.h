/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_RUN_KEPT_H
#define DLOCK_RUN_KEPT_H
#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

/*
 * A process that runs already, for which a lock is held (--keep).  It is named by a descriptor (pidfd), so that another
 * process that gets its number later is not mistaken for it.
 */
struct kept {
	pid_t pid;
	int fd; /* readable when the process has ended; closed on exec; -1: none */
};

/*
 * Find the process.  ST_USAGE: there is none, or it may not be signalled.  ST_SYSTEM: the kernel has no pidfd.  Call
 * kept_close() whatever is returned.
 */
enum status kept_open(struct kept *, pid_t, struct err *);
void kept_close(struct kept *);

bool kept_ended(const struct kept *);

/* False with errno set: it got no signal. */
bool kept_signal(const struct kept *, int signal);

/*
 * Write a line to the standard error that the process has at present, without blocking.  If that cannot be reached, the
 * line goes to syslog(3).
 */
void kept_say(const struct kept *, const char *line);

#endif
