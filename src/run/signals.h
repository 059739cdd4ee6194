/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_RUN_SIGNALS_H
#define DLOCK_RUN_SIGNALS_H
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Signals without handlers: they are blocked and read from a descriptor that sits in every poll loop.
 *
 * Signals that were ignored when dlock started stay ignored, for dlock and for the command.  Threads that are started
 * inherit the blocked mask.
 */
struct signals {
	int fd;
	sigset_t given;	    /* the mask that dlock was started with */
	sigset_t watched;   /* what the descriptor tells of */
	bool child_ignored; /* SIGCHLD was ignored then */
};

/*
 * Block what a write can die of: one to a closed pipe or socket, or beyond the greatest size of a file, is an error to deal
 * with.  *given gets the mask before.  See also base/sigpipe.h.
 */
void signals_block_failed_writes(sigset_t *given);

/*
 * While dlock waits for a lock: all signals that would end it and that can be caught.  Those that tell of a fault (SIGSEGV
 * and the like) are among them where another process sends them; a fault of our own ends us all the same, since the kernel
 * then takes no notice of the mask.  `given` is the mask that dlock was started with.  False with errno set if the system
 * refuses.
 */
bool signals_open(struct signals *, const sigset_t *given);

/* While a command runs: also the signals that are only passed on, those of job control, and SIGCHLD. */
bool signals_watch_command(struct signals *);

enum signal_origin {
	SIGNAL_OF_OTHERS,
	SIGNAL_OF_TERMINAL, /* the system sent it to all of our process group, as it does what is typed at the terminal */
	SIGNAL_OF_DLOCK	    /* a dlock around us passes on what it got */
};

/*
 * The next signal that has come, 0 if there is none; and where it came from, if that is wanted.  What a timer of dlock's
 * sends counts as none.
 */
int signals_next(struct signals *, enum signal_origin *);

/*
 * Stop as the terminal stops a job, with all of our process group or alone; returns when we go on, at until_us at the
 * latest.  A SIGCONT that comes before we have stopped keeps us from it.  SIGCONT is not seen by signals_next.  True if
 * somebody sent it, or that can't be known; false if it was a timer.
 */
bool signals_stop(bool with_group, int64_t until_us);

/* Die of a signal, as if dlock had never blocked it.  Returns only if it was ignored. */
void signals_die_of(int signal);

/* In the child, before exec: mask and dispositions as dlock was given them. */
void signals_restore(const struct signals *);

/* The number of "TERM", "SIGTERM" or "15", 0 for anything else. */
int signals_number(const char *name);

enum {
	SIGNAL_NAME_SIZE = 24
};

/* "SIGTERM" for people. */
const char *signals_name(int signal, char name[SIGNAL_NAME_SIZE]);

#endif
