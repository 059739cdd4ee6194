/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_RUN_ENDING_H
#define DLOCK_RUN_ENDING_H
#include <stdbool.h>
#include <stdint.h>

/*
 * When a command must end: the decisions, without clock and processes.
 *
 * It gets the first signal so long before its lease ends that SIGKILL, if it comes to that, comes before the end as well.
 * A lock that a majority denied gets the first signal at once.  A lease that has already ended, because the host slept
 * or dlock was stopped, gets SIGKILL at once.  --max-run ends a command in the same way, by its own time.
 */
enum ending_why {
	ENDING_NOT,
	ENDING_LOST,
	ENDING_MAX_RUN
};

enum ending_order {
	ENDING_WAIT, /* nothing to do before until_us and lead_us */
	ENDING_TERM, /* send the first signal */
	ENDING_KILL, /* send SIGKILL */
	ENDING_WARN  /* the lock is lost, and the user wants the command to go on */
};

struct ending {
	/* set by the caller, once */
	int64_t margin_us;     /* from the first signal to the end of the lease */
	int64_t kill_after_us; /* from the first signal of --max-run to SIGKILL; 0: no SIGKILL, as in timeout(1) */
	int64_t max_run_at_us; /* CLOCK_NEVER: no limit */
	bool only_warn;

	/* the state; zero at first */
	enum ending_why why;
	bool killed;
	bool warned; /* lost, but the command was allowed to go on */
	int64_t kill_at_us;
	int64_t until_us; /* ask again at this instant at the latest, */
	int64_t lead_us;  /* and so long before validity ends, whenever that is; CLOCK_NEVER: not for that */
};

/* What to do now.  Each order is given once; ask until it says wait. */
enum ending_order ending_next(struct ending *, int64_t valid_until_us, bool lost, int64_t now_us);

/* When to ask again at the latest, after it said wait. */
int64_t ending_due_us(const struct ending *, int64_t valid_until_us);

#endif
