/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_RUN_SUPERVISOR_H
#define DLOCK_RUN_SUPERVISOR_H
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "lock/service.h"
#include "run/process.h"
#include "run/signals.h"

/* The progress of another process that releases the lock. */
enum release_stage {
	RELEASE_NONE,
	RELEASE_ANNOUNCED, /* it waits until nobody renews the lock, and releases it then */
	RELEASE_DONE
};

/* To hold a lock for a process that runs already, in place of a command. */
struct keeping {
	const struct process *process;

	/* Called when all is ready.  If it fails, the lock is released, with its status and error. */
	enum status (*started)(void *context, struct err *);

	/* When *fd becomes readable, it is called again.  paused: after RELEASE_ANNOUNCED, nobody renews. */
	enum release_stage (*release_stage)(void *context, bool paused, int *fd);
	void *context;
};

/*
 * Holds a lock while a command runs: starts the command, renews the lease, passes signals on, ends the command before
 * the lease can end, and releases the lock when the command and its process group have ended.
 */
struct supervision {
	struct backend *backend;
	const struct lease *lease;
	char *const *argv;
	/* NULL: a command is started; otherwise argv, foreground and the like are unused. */
	const struct keeping *keeping;
	char *const *environment; /* NULL: that of dlock */
	const char *shown_key;	  /* for messages */
	bool foreground;	  /* the command stays in the process group of dlock */
	int first_signal;	  /* for --max-run, a lost lock, and a holder that is asked to end */
	/* From first_signal to SIGKILL; 0: never while the lock is held, at once for a lost lock. */
	int64_t kill_after_us;
	bool no_kill;		    /* never send SIGKILL */
	int64_t max_run_us;	    /* 0: no limit */
	int64_t min_hold_us;	    /* the lock is kept so long, however the command ends; 0: none */
	int64_t once_per_us;	    /* the same, only if the command succeeds: exit status 0, in time; 0: none */
	bool records;		    /* the history gets how it ended */
	bool only_warn;		    /* do not end the command when the lock is lost, or somebody asks */
	const char *exec_on_lost;   /* for sh -c when the lock is lost; NULL: nothing */
	const char *hook_directory; /* in which that runs; NULL, or it is gone: that of dlock */
	struct signals *signals;
	struct log log;
	bool quiet; /* a renewal that fails and later succeeds is not mentioned */
};

struct supervised {
	int status;		/* of the command, as from wait(2); -1: it was not started */
	bool ended_by_terminal; /* by ^C or ^\: dlock must die of the same signal */
	int64_t held_us;
	char asked_by[OWNER_MAX + 1]; /* ST_ASKED: the owner who asked */
	struct holder holder;	      /* after a loss: the holder of the lock now; token "": nobody, or unknown */
};

/*
 * Returns when the command and its process group have ended and the lock has been released.  ST_OK: it has ended by
 * itself, see the result.  ST_LOST: the lock was lost; ST_MAX_RUN, ST_ASKED: dlock has ended it for that; each has been
 * said, and err is empty.  Otherwise the command was never executed (ST_NOT_FOUND, ST_NOT_EXECUTABLE, ST_SYSTEM;
 * ST_NO_QUORUM if the lease had nearly ended), and the lock has been released as well.  A failed release is a notice,
 * not an error.
 */
enum status supervise(const struct supervision *, struct supervised *, struct err *);

/* The name of the outcome in the history and in reports: "ran", "lost", "max-run", "asked", "exec-failed". */
const char *supervised_outcome(enum status);

#endif
