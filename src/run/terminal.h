/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_RUN_TERMINAL_H
#define DLOCK_RUN_TERMINAL_H
#include <stdbool.h>
#include <sys/types.h>

/*
 * The controlling terminal, which the command's process group gets while it runs in the foreground, so that ^C, ^Z and
 * full-screen programs work as without dlock.
 */

/* The terminal's descriptor, or -1 if there is none. */
int terminal_open(void);
void terminal_close(int terminal);

/* Is our own process group in the foreground? */
bool terminal_is_ours(int terminal);

/* Does the group have it? */
bool terminal_has(int terminal, pid_t group);

/*
 * Are standard input and output terminals?  Otherwise others of our group, a pager in the same pipeline, may need it, and
 * the command gets it only when it asks.
 */
bool terminal_is_used(void);

/* Put a group in the foreground.  SIGTTOU must be blocked.  Safe between vfork and exec. */
void terminal_give(int terminal, pid_t group);

/* Take it back if the group has it.  True if it had. */
bool terminal_take(int terminal, pid_t group);

/* Is there a shell that would bring us back after we stopped? */
bool terminal_has_job_control(void);

#endif
