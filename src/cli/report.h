/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_CLI_REPORT_H
#define DLOCK_CLI_REPORT_H
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "lock/record.h"

/*
 * The outcome of a run, for programs: the exit status alone does not distinguish a 75 of the command from that of
 * dlock.
 */
struct report {
	const char *outcome; /* ran, held, no-quorum, lost, max-run, exec-failed, interrupted */
	struct command_end child;
	const char *key;
	int64_t fence;		     /* 0: none */
	const struct holder *holder; /* of a lock that was refused or lost, as view_json_holder() takes it */
	int64_t waited_ms;
	int64_t held_ms;
};

/* One JSON object and a newline. */
void report_print(FILE *, const struct report *);

/* Can a report be written there, as far as that can be checked in advance?  ST_SYSTEM: no. */
enum status report_check(const char *path, struct err *);

/*
 * Write the same to a file, or for "-" to standard output, completely or not at all.  In a directory such as /tmp,
 * nothing is written through a link or a pipe that another user may have made.
 */
enum status report_write(const char *path, const struct report *, struct err *);

#endif
