/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_RUN_CHILD_H
#define DLOCK_RUN_CHILD_H
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "run/death_pipe.h"
#include "run/process.h"
#include "run/signals.h"

/*
 * The process of the command: start, signal, reap.  Only this module and the supervisor, for --exec-on-lost, call exec.
 */
struct child_plan {
	char *const *argv;
	char *const *environment;	     /* NULL: that of dlock */
	bool own_group;			     /* a process group of its own */
	int terminal;			     /* the terminal to give to that group; -1: none */
	const struct death_pipe *death_pipe; /* that binds the group to dlock */
	int64_t until_us;		     /* the command must not start after this instant */
	const struct signals *signals;
};

struct child {
	const struct process *process; /* that runs already, in place of the command; NULL: dlock has started it */
	pid_t pid;
	pid_t group; /* 0: that of dlock */
	bool ended;
	bool others; /* when last looked, there were more processes to wait for */
	int status;  /* as from wait(2) */

	/* Private: the data of child_gone() about the group. */
	pid_t running;	    /* was found running; 0: none */
	int only_zombies;   /* looks in a row that found only zombies */
	int64_t look_at_us; /* no look before this instant */
};

/*
 * Start the command.  Call it on the main thread: the command is killed by SIGKILL when the thread that started it
 * ends, if the system supports this (Linux).  ST_NOT_FOUND, ST_NOT_EXECUTABLE, ST_SYSTEM, ST_NO_QUORUM (too late):
 * nothing was started.
 */
enum status child_start(const struct child_plan *, struct child *, struct err *);

/* The error for a lease that is too short to start the command: ST_NO_QUORUM. */
enum status child_too_late(struct err *);

/* The next process that has ended, was stopped or was continued, also one that the command has left behind; 0: none. */
pid_t child_reap(struct child *, int *status);

/*
 * Send a signal to the command and its process group, or to the command alone if it is in the group of dlock.  Returns
 * a process that may not be signalled, since it runs as another user; 0: none.
 */
pid_t child_signal(const struct child *, int signal);

/* Have the command and all other processes of its process group ended? */
bool child_gone(struct child *);

/*
 * A process that the command has left behind when it and its group have ended, and its name, which may have any bytes.
 * 0: none is known.  Not `except`; nor a dlock, which cares for itself; nor ssh-agent or gpg-agent.  Waits a moment for
 * one that is about to end.
 */
pid_t child_left_behind(const struct child *, pid_t except, char name[PROCESS_NAME_SIZE]);

#endif
