/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_RUN_TERMINAL_H
#define DLOCK_RUN_TERMINAL_H
#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

/*
 * The controlling terminal.  The process group of the command gets it while the command runs in the foreground, so that
 * ^C, ^Z and full-screen programs work as without dlock.
 */
struct terminal {
	int fd;			/* -1: none */
	sigset_t from_terminal; /* set by the caller: the signals that the group got from it, or from an outer dlock, */
	sigset_t from_others;	/* and the others */
};

/* Open it; the caller closes fd. */
void terminal_open(struct terminal *);

/* Is this group in the foreground? */
bool terminal_is_of(const struct terminal *, pid_t group);

/* Take the terminal back if this group has it.  True if it had. */
bool terminal_take(const struct terminal *, pid_t group);

/*
 * Are standard input and output terminals?  If not, another process of the group, such as a pager in the same pipeline,
 * may need the terminal, and the command gets it only on demand.
 */
bool terminal_is_used(void);

/* Is there a shell that could continue dlock after a stop? */
bool terminal_has_job_control(void);

/* Was it the terminal that stopped the command, whose group this is, by this signal? */
bool terminal_is_job_stop(const struct terminal *, pid_t group, int signal);

/*
 * Take the terminal back from the group of the command, which a signal has ended (0: none has).  Was it ^C or ^\?  The
 * terminal sends these signals to its foreground group: to that of dlock, or only to that of the command.  In the second
 * case, the signal is sent to the group of dlock now, so that a calling script gets it, too.
 */
bool terminal_end(const struct terminal *, pid_t group, int signal);

#endif
