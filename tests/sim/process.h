/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_SIM_PROCESS_H
#define DLOCK_SIM_PROCESS_H
/* What the files of the operating system share. */
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

#include "kernel.h"

#define NEVER INT64_MAX
#define FD_FIRST 1000000

enum {
	FILES = 96
};

enum file_kind {
	FILE_NONE,
	FILE_SOCKET,
	FILE_EVENT,
	FILE_ALARM,
	FILE_SIGNAL
};

struct file {
	enum file_kind kind;
	int process;
	struct conn *conn;   /* of a socket; NULL before connect */
	uint64_t counter;    /* of an eventfd; of signals */
	int64_t alarm_at_us; /* of an alarm, by the process's clock; NEVER: off */
};

struct thread {
	ucontext_t context;
	void *stack;
	int process;
	bool used, done, waiting;
	unsigned int wait; /* which wait it is: of older ones no timer counts */
	struct pollfd *fds;
	nfds_t count;
	void *(*work)(void *);
	void *argument;
};

struct process {
	bool runs, killed;
	struct clock_plan clock;
	int64_t ghost_us; /* the time of one that was killed, by its own clock */
	int64_t paused_until_us;
	int64_t preempted_us; /* in all */
	int signals;	      /* the file */
	struct thread thread[THREADS];
	void (*main)(int);
	unsigned long calls; /* at this instant */
	int64_t calls_at_us;
};

extern struct process kernel_process[PROCESSES];
extern struct file kernel_file[FILES];
extern struct thread *kernel_thread; /* the one that runs; NULL: none */
extern struct chance *kernel_chance;

/* The clock of the process that runs. */
int64_t kernel_time(void);

/* Of a process a new descriptor; -1, with errno, if there are too many.  And its file; NULL: none of ours. */
int kernel_open(enum file_kind, int process);
struct file *kernel_file_of(int fd);

/* What poll(2) finds, and when the earliest alarm among them is due. */
int kernel_count_ready(struct pollfd *, nfds_t count);
int64_t kernel_first_alarm(const struct pollfd *, nfds_t count);

/* The thread that runs waits: for these, if any, or until its process's clock says so. */
void kernel_wait(struct pollfd *, nfds_t count, int64_t until_us);

/* A new thread; NULL: too many. */
struct thread *kernel_new_thread(int process, void *(*work)(void *), void *argument);

/* A system call has been made: it may be one of an endless loop, or another process may get the processor. */
void kernel_count_call(void);
void kernel_perhaps_preempt(void);

#endif
