/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_RUN_SIGNALS_H
#define DLOCK_RUN_SIGNALS_H
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Signals without handlers: they are blocked, and read from a descriptor in each poll loop.
 *
 * Signals that were ignored when dlock was started stay ignored, for dlock and for the command.  New threads inherit
 * the blocked mask.
 */
struct signals {
	int fd;
	sigset_t given;	    /* the mask that dlock was started with */
	sigset_t watched;   /* the signals that the descriptor reports */
	bool child_ignored; /* SIGCHLD was ignored when dlock was started */
};

/*
 * Block the signals of failed writes (SIGPIPE, SIGXFSZ), so that these writes return an error.  Nobody reads them.
 * *given is set to the mask before.
 */
void signals_block_failed_writes(sigset_t *given);

/* Let a signal have its default effect, also if dlock was started with it ignored.  True if it was. */
bool signals_heed(int signal);

/*
 * Watch, while dlock waits for a lock, all signals that would end it and that can be caught.  This includes SIGSEGV and
 * other faults if another process sends them; a fault in dlock itself still ends it, since the kernel then ignores the
 * mask.  `given` is the mask that dlock was started with.  False with errno set on a system error.
 */
bool signals_open(struct signals *, const sigset_t *given);

/* Watch, while a command runs, also the signals that are only passed on, those of job control, and SIGCHLD. */
bool signals_watch_command(struct signals *);

enum signal_origin {
	SIGNAL_OF_OTHERS,
	SIGNAL_OF_TERMINAL, /* sent by the kernel to the whole process group, as for ^C at the terminal */
	SIGNAL_OF_DLOCK	    /* passed on by an outer dlock */
};

/*
 * The next pending signal, or 0 if there is none.  Its origin is stored if `origin` is not NULL.  SIGCONT from a timer
 * of dlock is skipped.
 */
int signals_next(const struct signals *, enum signal_origin *);

/* Read the pending signals.  Was one of them to end dlock? */
bool signals_asked_to_end(const struct signals *);

/*
 * Stop as a terminal stops a job, with the whole process group or alone.  Returns when dlock is continued, at until_us
 * at the latest.  A SIGCONT that arrives before dlock has stopped prevents the stop.  That SIGCONT is not returned by
 * signals_next().  True if another process sent it, or if that is unknown; false if a timer did.
 */
bool signals_stop(bool with_group, int64_t until_us);

/* Die of a signal, as if it had never been blocked.  Returns only if the signal is ignored. */
void signals_die_of(int signal);

/* In the child, before exec: restore the mask and dispositions that dlock was started with. */
void signals_restore(const struct signals *);

/* Let the signals that come from now on end dlock again; those of failed writes stay blocked. */
void signals_unwatch(struct signals *);

/* The number of "TERM", "SIGTERM", "RTMIN+1", "RTMAX-1" or "15", 0 for anything else. */
int signals_number(const char *name);

enum {
	SIGNAL_NAME_SIZE = 24
};

/* The name of a signal for messages, such as "SIGTERM". */
const char *signals_name(int signal, char name[SIGNAL_NAME_SIZE]);

#endif
