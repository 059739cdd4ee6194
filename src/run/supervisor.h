/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_RUN_SUPERVISOR_H
#define DLOCK_RUN_SUPERVISOR_H
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/log.h"
#include "lock/service.h"
#include "run/signals.h"

/*
 * Holding a lock around a command: start it, renew the lease behind it, pass signals on, end it before the lease
 * can end, and give the lock back when all of it is gone.
 */
struct supervision {
	char *const *argv;
	char *const *environment; /* NULL: ours */
	const char *shown_key;	  /* for messages */
	bool foreground;	  /* the command stays in our process group */
	int first_signal;	  /* of --max-run and of a lost lock */
	int64_t kill_after_us;	  /* from there to SIGKILL; 0: none after --max-run, at once when the lock is lost */
	int64_t max_run_us;	  /* 0: no limit */
	int64_t min_hold_us;	  /* 0: none */
	bool only_warn;		  /* of a lost lock */
	struct signals *signals;
	struct log log;
};

enum outcome {
	OUTCOME_RAN,
	OUTCOME_LOST,
	OUTCOME_MAX_RUN,
	OUTCOME_NOT_STARTED
};

struct supervised {
	enum outcome outcome;
	int status;		/* of the command, as wait(2) gives it, if it was started */
	bool ended_by_terminal; /* by ^C or ^\; who called us must see that signal */
	int64_t held_us;
};

/*
 * Runs until the command and its process group are gone and the lock has been given back.  ST_OK: see the result.
 * Otherwise the command was never executed (ST_NOT_FOUND, ST_NOT_EXECUTABLE, ST_SYSTEM; ST_NO_QUORUM where no time was
 * left of the lease), and the lock has been given back all the same.  A release that fails is a notice, no error.
 */
enum status supervise(const struct supervision *, struct service *, const struct lease *, struct supervised *,
    struct err *);

#endif
