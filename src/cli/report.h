/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_CLI_REPORT_H
#define DLOCK_CLI_REPORT_H
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

/*
 * How a run ended, for programs: an exit status alone can't tell the command's 75 from ours.
 */
struct report {
	const char *outcome; /* ran, held, no-quorum, lost, max-run, exec-failed, interrupted */
	bool started;
	int status; /* of the command, as wait(2) gives it, if it was started */
	const char *key;
	int64_t fence; /* 0: none */
	int64_t waited_ms;
	int64_t held_ms;
};

/* One JSON object and a newline. */
void report_print(FILE *, const struct report *);

/*
 * The same into a file that appears whole or not at all.  Where others may have put a link or a pipe by that name, in a
 * folder such as /tmp, nothing is written through it.
 */
enum status report_write(const char *path, const struct report *, struct err *);

#endif
