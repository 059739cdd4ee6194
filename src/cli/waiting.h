/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_CLI_WAITING_H
#define DLOCK_CLI_WAITING_H
#include "cli/command.h"
#include "lock/backend.h"

/*
 * The status line on a terminal while dlock waits: the holder, its label, the time so far, and when the lease ends.
 * Nothing is shown if standard error is not a terminal, or with --quiet or --verbose.
 */
struct waiting_line {
	const char *key;
	int64_t since_us;
	struct log log;
	bool shown;
};

/* Set the callback of the claim; the line must outlive the claim. */
void waiting_line_start(struct waiting_line *, const struct invocation *, struct acquire_args *);

/* Erase the line.  With --verbose, print how long it took to acquire the lock. */
void waiting_line_end(struct waiting_line *, enum status);

#endif
