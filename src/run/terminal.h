/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_RUN_TERMINAL_H
#define DLOCK_RUN_TERMINAL_H
#include <stdbool.h>
#include <sys/types.h>

/*
 * The controlling terminal.  The process group of the command gets it while it runs in the foreground, so that ^C, ^Z
 * and full-screen programs work as without dlock.
 */

/* A descriptor of the terminal, to be closed by the caller, or -1 if there is none. */
int terminal_open(void);

/* Is this group in the foreground? */
bool terminal_has(int terminal, pid_t group);

/*
 * Are standard input and output terminals?  If not, another process of the group, such as a pager in the same pipeline,
 * may need the terminal, and the command gets it only on demand.
 */
bool terminal_is_used(void);

/* Put a group in the foreground.  SIGTTOU must be blocked.  Safe between vfork and exec. */
void terminal_give(int terminal, pid_t group);

/* Take the terminal back if the group has it.  True if it had. */
bool terminal_take(int terminal, pid_t group);

/* Is there a shell that could continue dlock after a stop? */
bool terminal_has_job_control(void);

#endif
