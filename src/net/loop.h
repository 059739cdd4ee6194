/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_NET_LOOP_H
#define DLOCK_NET_LOOP_H
#include <stdbool.h>
#include <stdint.h>

/*
 * An event loop over poll(2): sockets and timers register as watches, finished requests as tasks.
 *
 * Callbacks run from loop_turn() only, never from the function that registers them.  A loop belongs to one thread at a
 * time.
 */
enum {
	LOOP_DESCRIPTORS = 64 /* at most so many are polled at a time; further ones have to wait */
};

/* A descriptor, a deadline, or both.  The owner may change all fields at any time. */
struct watch {
	int fd;	       /* -1: none */
	short events;  /* of poll(2) */
	int64_t at_us; /* call `ready` at this instant, whatever the descriptor says; CLOCK_NEVER: no deadline */
	void (*ready)(void *context, int64_t now_us);
	void *context;
	/* the loop's own: */
	struct watch *next;
	int polled; /* its place among the descriptors of this turn; -1: none */
};

/* Work that is to be done from the loop, first come, first served.  A task may free what contains it. */
struct task {
	struct task *next;
	void (*run)(struct task *);
};

/* Zeroed, it is an empty loop. */
struct loop {
	struct watch *watches;
	struct watch *upcoming; /* the next one whose turn it is, while callbacks run */
	struct task *first, *last;
};

enum loop_event {
	LOOP_ACTIVE, /* a callback ran, or a descriptor was ready */
	LOOP_TIME,   /* the instant has come */
	LOOP_INTERRUPTED
};

/* The watch must outlive its registration. */
void loop_add(struct loop *, struct watch *);

/* Its callback is not called any more, not even in the present turn. */
void loop_remove(struct loop *, struct watch *);

/* Run the task in this or the next turn, behind all that were posted before. */
void loop_post(struct loop *, struct task *);

/* A task that was posted and has not run yet does not run.  Harmless for any other. */
void loop_cancel(struct loop *, const struct task *);

/* Run all tasks that have been posted.  True if there was one. */
bool loop_run_tasks(struct loop *);

/*
 * Run posted tasks, or else wait for whatever comes first: a watch, the instant, the interrupt descriptor (-1: none).
 * The callbacks of watches that are ready, and the tasks that they post, have run when it returns.
 */
enum loop_event loop_turn(struct loop *, int64_t until_us, int interrupt_fd);

#endif
