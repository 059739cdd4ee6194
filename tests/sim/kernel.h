/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_SIM_KERNEL_H
#define DLOCK_SIM_KERNEL_H
#include "chance.h"

/* In microseconds: the simulated time at which a world begins, and the time of day at 0. */
#define MS INT64_C(1000)
#define BEGIN_US (1000000 * MS)
#define DAY_ONE_US INT64_C(1700000000000000)

/*
 * The operating system of the clients: processes with threads, each with its own stack, descriptors and clocks.  It
 * replaces, with --wrap of the linker, the few system calls that the library of dlock makes.  All code above them is
 * the real code.  A thread runs until it waits, and no time passes while it runs.
 */
enum {
	PROCESSES = 4,
	THREADS = 3 /* per process */
};

struct conn;

/* The clocks of a client. */
struct clock_plan {
	int64_t offset_us; /* of CLOCK_BOOTTIME, which is arbitrary */
	int drift;	   /* of both clocks: how fast they are, in 1/10000 */
	int64_t skew_us;   /* error of the time of day */
	int preempt;	   /* reading the clock preempts the process once in this many times; 0: never */
	int64_t preempt_us;
};

void kernel_reset(struct chance *);

/* Start a process: main is called with its number.  Its threads run when the simulation continues. */
void kernel_start(int process, const struct clock_plan *, void (*main)(int process));
bool kernel_runs(int process);

/* Make the caller the only thread of a process until kernel_leave(): the simulation continues while it waits. */
void kernel_enter(int process, const struct clock_plan *);
void kernel_leave(void);

/* Pause the process, or its host, until that time. */
void kernel_pause(int process, int64_t until_us);

/* End the pause. */
void kernel_continue(int process);

/* Is it paused, or was it within that time? */
bool kernel_was_paused(int process, int64_t within_us);

/* The total time for which it was preempted. */
int64_t kernel_preempted_us(int process);

/*
 * Kill it.  Its code runs to its end at once so that it frees its memory: in isolation, where time passes freely and no
 * server replies.  Nothing of that is visible outside.  Its connections are closed as by the kernel, or, if its host is
 * gone, without any packet.
 */
void kernel_kill(int process, bool host_gone);
bool kernel_is_killed(int process);

/* The signal descriptor; readable from kernel_signal() until kernel_take_signals(). */
int kernel_signal_fd(int process);
void kernel_signal(int process);
bool kernel_take_signals(int process);

/* Convert the simulated time to the clock of the process, and back. */
int64_t kernel_time_of(int process, int64_t now_us);
int64_t kernel_instant(int process, int64_t time_us);

/* For code that runs in a process: sleep until its clock reaches that time. */
void kernel_sleep(int64_t time_us);

/* The running process; -1: none. */
int kernel_current(void);

/* Has a process made so many system calls at one instant that it must be in an endless loop? */
bool kernel_spins(void);

/* For the network: the state of a descriptor of this process has changed. */
void kernel_wake(int process);

/* Define the function that --wrap of the linker puts in place of this one; tests/local.mk finds it by the line. */
#define WRAPPED(type, name, arguments) \
	type __real_##name arguments;  \
	type __wrap_##name arguments;  \
	type __wrap_##name arguments

#endif
