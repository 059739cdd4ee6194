/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_NET_LOOP_H
#define DLOCK_NET_LOOP_H
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

/*
 * An event loop over poll(2).  Sockets and timers are registered as watches, completed requests as tasks.
 *
 * The callbacks of watches run from loop_turn() only, those of tasks from loop_turn() and loop_run_tasks().  Neither
 * runs from the function that registers it.  A loop may be used by one thread at a time.
 */
enum {
	LOOP_DESCRIPTORS = 256 /* maximum number of descriptors in one poll; of further watches only at_us counts */
};

/* A descriptor, a deadline, or both.  The owner may change all fields at any time. */
struct watch {
	int fd;	       /* -1: none */
	short events;  /* as for poll(2) */
	int64_t at_us; /* call `ready` at this instant even if the descriptor isn't ready; CLOCK_NEVER: no deadline */
	void (*ready)(void *context, int64_t now_us);
	void *context;
	struct loop *loop; /* set by loop_add() */
	/* Private to the loop. */
	struct watch *next;
	int polled; /* index of the descriptor in the poll of this turn; -1: not polled */
};

/* Work that the loop runs, in the order of posting.  `run` may free the task and the object that contains it. */
struct task {
	struct task *next;
	void (*run)(struct task *);
};

/* A zeroed struct is an empty loop. */
struct loop {
	struct watch *watches;
	struct watch *upcoming; /* while callbacks run: the watch that is checked next */
	struct task *tasks;	/* posted */
};

enum loop_event {
	LOOP_ACTIVE,	 /* neither of the two below; usually callbacks or tasks ran */
	LOOP_TIME,	 /* the wait is over; callbacks may have run, too */
	LOOP_INTERRUPTED /* the interrupt descriptor is ready; callbacks may have run, too */
};

/* Register a watch.  It must stay valid until loop_remove(). */
void loop_add(struct loop *, struct watch *);

/* Remove a registered watch.  Its callback is not called any more, not even in the current turn. */
void loop_remove(struct loop *, struct watch *);

/* Queue a task.  It runs in this or the next turn, after all tasks that were posted before it. */
void loop_post(struct loop *, struct task *);

/* A task that was posted and has not run yet does not run.  Harmless for any other. */
void loop_cancel(struct loop *, const struct task *);

/* Run all posted tasks, including those that are posted meanwhile.  True if there was one. */
bool loop_run_tasks(struct loop *);

/*
 * If tasks are posted, run them and return LOOP_ACTIVE.  Otherwise wait for the first of: a watch, and what ends the
 * wait.  The callbacks of the watches that are ready, and the tasks that they post, have run when it returns.
 */
enum loop_event loop_turn(struct loop *, const struct wait *);

#endif
