/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_CLI_WAITING_H
#define DLOCK_CLI_WAITING_H
#include "cli/command.h"
#include "lock/service.h"

/*
 * The line that a terminal shows while dlock waits: for whom, with which label, for how long, and when the lease ends.
 * Where standard error is no terminal, or with --quiet, nothing is shown.
 */
struct waiting_line {
	const char *key;
	int64_t since_us;
	struct log log;
	bool shown;
};

/* Let the claim draw the line; it must outlive the claim. */
void waiting_line_start(struct waiting_line *, const struct invocation *, struct claim *);

/* Wipe it away.  --verbose tells how long it took where the lock was got. */
void waiting_line_end(struct waiting_line *, enum status);

#endif
