/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_RUN_PROCESS_H
#define DLOCK_RUN_PROCESS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/* Read the beginning of /proc/PID/FILE, of a file that one read(2) returns, as a string.  False with errno set. */
bool process_read(pid_t, const char *file, char *text, size_t size);

/* Fields of /proc/PID/stat, as proc(5) numbers them. */
enum {
	STAT_STATE = 3, /* a character */
	STAT_PARENT = 4,
	STAT_GROUP = 5,
	STAT_THREADS = 20,
	STAT_STACK = 28, /* where the stack begins */
	STAT_FIELDS
};

/* Read them.  False with errno set: not all are known; those that are not are 0. */
bool process_stat(pid_t, uint64_t field[STAT_FIELDS]);

enum {
	PROCESS_NAME_SIZE = 32
};

/* Read the name of a process, which may have any bytes; is it also that of this process?  False with errno set. */
bool process_name(pid_t, char name[PROCESS_NAME_SIZE], bool *is_ours);

/*
 * A process that runs already, for which a lock is held (--keep).  It is named by a descriptor (pidfd), so that another
 * process that gets its number later is not mistaken for it.
 */
struct process {
	pid_t pid;
	int fd; /* readable when the process has ended; closed on exec; -1: none */
};

/*
 * Find the process.  ST_USAGE: there is none, or it may not be signalled.  ST_SYSTEM: the kernel has no pidfd.  Call
 * process_close() whatever is returned.
 */
enum status process_open(struct process *, pid_t, struct err *);
void process_close(struct process *);

bool process_ended(const struct process *);

/* False with errno set: it got no signal. */
bool process_signal(const struct process *, int signal);

/*
 * Write a line to the standard error that the process has at present, without blocking.  If that cannot be reached, the
 * line goes to syslog(3).
 */
void process_say(const struct process *, const char *line);

/*
 * The process that called dlock.  A shell makes copies of itself for pipelines and substitutions, which end sooner than
 * the script does: of those the original counts.
 */
pid_t process_caller(void);

#endif
