/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_RUN_KILL_POLICY_H
#define DLOCK_RUN_KILL_POLICY_H
#include <stdbool.h>
#include <stdint.h>

/*
 * Decides when to end a command, without access to clocks and processes.
 *
 * The command gets the first signal early enough that SIGKILL, if necessary, is also sent before the lease ends.  If a
 * majority has denied the lock, it gets the first signal at once.  If the lease has already ended, because the host was
 * suspended or dlock was stopped, it gets SIGKILL at once.  --max-run ends a command in the same way, at its own time.
 */
enum kill_policy_why {
	KILL_POLICY_NOT,
	KILL_POLICY_LOST,
	KILL_POLICY_MAX_RUN
};

enum kill_policy_order {
	KILL_POLICY_WAIT, /* nothing to do until until_us or lead_us */
	KILL_POLICY_TERM, /* send the first signal */
	KILL_POLICY_KILL, /* send SIGKILL */
	KILL_POLICY_WARN  /* the lock is lost, and the command may continue (--on-lost warn) */
};

struct kill_policy {
	/* set by the caller, once */
	int64_t margin_us;     /* from the first signal to the end of the lease */
	int64_t kill_after_us; /* from the first signal of --max-run to SIGKILL; 0: no SIGKILL, as in timeout(1) */
	int64_t max_run_at_us; /* CLOCK_NEVER: no limit */
	bool only_warn;
	bool no_kill; /* the first signal only */

	/* the state; zero at first */
	enum kill_policy_why why;
	bool killed;
	bool warned; /* the lock is lost, but the command continues */
	int64_t kill_at_us;
	int64_t until_us; /* call kill_policy_next() again at this instant at the latest, */
	int64_t lead_us;  /* and this long before the current end of validity; CLOCK_NEVER: only at until_us */
};

/* Returns what to do now.  Each order is given once; call it until it returns KILL_POLICY_WAIT. */
enum kill_policy_order kill_policy_next(struct kill_policy *, int64_t valid_until_us, bool lost, int64_t now_us);

/* After KILL_POLICY_WAIT: the latest instant of the next call. */
int64_t kill_policy_due_us(const struct kill_policy *, int64_t valid_until_us);

/* Is the lock lost, and will no further order follow? */
bool kill_policy_done(const struct kill_policy *, int64_t valid_until_us, bool lost, int64_t now_us);

#endif
