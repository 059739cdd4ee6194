/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_SIM_PROCESS_H
#define DLOCK_SIM_PROCESS_H
/* Shared by the files of the simulated operating system. */
#include <poll.h>
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
	uint64_t counter;    /* of an eventfd; number of pending signals */
	int64_t alarm_at_us; /* of an alarm, by the clock of the process; NEVER: off */
};

struct thread {
	ucontext_t context;
	void *stack;
	int process;
	bool used, done, waiting;
	unsigned int wait; /* number of the current wait; timers of earlier waits are ignored */
	struct pollfd *fds;
	nfds_t count;
	void *(*work)(void *);
	void *argument;
};

struct process {
	bool runs, killed;
	struct clock_plan clock;
	int64_t ghost_us; /* the time of a killed process, by its own clock */
	int64_t paused_until_us;
	int64_t preempted_us; /* total */
	int signals;	      /* the file of the signal descriptor */
	struct thread thread[THREADS];
	void (*main)(int);
	unsigned long calls; /* at this instant */
	int64_t calls_at_us;
};

extern struct process kernel_process[PROCESSES];
extern struct file kernel_file[FILES];
extern struct thread *kernel_thread; /* the running thread; NULL: none */
extern struct chance *kernel_chance;

/* The clock of the running process. */
int64_t kernel_time(void);

/* Open a descriptor; -1 with errno set if there are too many.  Get the file of a descriptor; NULL: not simulated. */
int kernel_open(enum file_kind, int process);
struct file *kernel_file_of(int fd);

/* The number of ready descriptors, as from poll(2), and the earliest alarm among them. */
int kernel_count_ready(struct pollfd *, nfds_t count);
int64_t kernel_first_alarm(const struct pollfd *, nfds_t count);

/* Block the running thread until one of these is ready or the clock of its process reaches until_us. */
void kernel_wait(struct pollfd *, nfds_t count, int64_t until_us);

/* Create a thread; NULL: too many. */
struct thread *kernel_new_thread(int process, void *(*work)(void *), void *argument);

/* Called for each system call: detect an endless loop, and perhaps preempt the process. */
void kernel_count_call(void);
void kernel_perhaps_preempt(void);

#endif
