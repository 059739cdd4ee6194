/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_RUN_POLICY_H
#define DLOCK_RUN_POLICY_H
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/*
 * The kill policy: decides when to end a command, without access to clocks and processes.
 *
 * The command gets the first signal early enough that SIGKILL, if necessary, is also sent before the lease ends.  If a
 * majority has denied the lock, it gets the first signal at once.  If the lease has already ended, because the host was
 * suspended or dlock was stopped, it gets SIGKILL at once.  --max-run ends a command in the same way, at its own time,
 * and so does somebody who asks for it; the lock is held meanwhile.
 */
enum policy_order {
	POLICY_WAIT, /* nothing to do until policy_due_us() */
	POLICY_TERM, /* send the first signal */
	POLICY_KILL, /* send SIGKILL */
	POLICY_WARN  /* the lock is lost, and the command may continue (--on-lost warn) */
};

struct policy {
	/* set by the caller, once */
	int64_t margin_us; /* from the first signal to the end of the lease */
	/* From the first signal to SIGKILL while the lock is held; 0: no SIGKILL, as in timeout(1). */
	int64_t kill_after_us;
	int64_t max_run_at_us; /* CLOCK_NEVER: no limit */
	bool only_warn;
	bool no_kill; /* the first signal only */
	bool asked;   /* somebody asks the holder to end; may be set at any time */

	/* the state; zero at first */
	enum status why; /* the command is ended: ST_LOST, ST_MAX_RUN, ST_ASKED; ST_OK: it is not */
	bool killed;
	bool warned; /* the lock is lost, but the command continues */
	int64_t kill_at_us;
};

/* Returns what to do now.  Each order is given once; call it until it returns POLICY_WAIT. */
enum policy_order policy_next(struct policy *, int64_t valid_until_us, bool lost, int64_t now_us);

/* After POLICY_WAIT: the latest instant of the next call, as long as validity ends then; CLOCK_NEVER: none. */
int64_t policy_due_us(const struct policy *, int64_t valid_until_us);

/* Is the lock lost, and will no further order follow? */
bool policy_done(const struct policy *, int64_t valid_until_us, bool lost, int64_t now_us);

#endif
