/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_SIM_KERNEL_H
#define DLOCK_SIM_KERNEL_H
#include <stdbool.h>
#include <stdint.h>

#include "chance.h"

/*
 * The operating system that the clients run on: processes with threads, each on a stack of its own, descriptors and
 * clocks.  It stands in, by the linker's --wrap, for the few system calls that dlock's library makes; everything above
 * these is the real thing.  A thread runs until it waits; no time passes while it runs.
 */
enum {
	PROCESSES = 4,
	THREADS = 3 /* of a process */
};

struct conn;

/* What a client's clocks are like. */
struct clock_plan {
	int64_t offset_us; /* of CLOCK_BOOTTIME, which is any number */
	int drift;	   /* of both: so many ten-thousandths fast */
	int64_t skew_us;   /* of the time of day */
	int preempt;	   /* when it looks at the clock it stands still for a while, once in so many times; 0: never */
	int64_t preempt_us;
};

void kernel_reset(struct chance *);

/* Start a process: main is called with its number.  Its threads run when the world goes on. */
void kernel_start(int process, const struct clock_plan *, void (*main)(int process));
bool kernel_runs(int process);

/* The process, or its host, does nothing until then. */
void kernel_pause(int process, int64_t until_us);

/* It is paused no longer. */
void kernel_continue(int process);

/* Does it stand still, or did it within so long? */
bool kernel_was_paused(int process, int64_t within_us);

/* For how long other processes have had its processor, in all. */
int64_t kernel_preempted_us(int process);

/*
 * Kill it.  Its code runs to its end at once, in a world of its own where time passes as it likes and nobody answers,
 * so that it gives back its memory; nothing of that is seen outside.  Its connections end as the kernel ends them, or,
 * if its host is gone, without a word.
 */
void kernel_kill(int process, bool host_gone);
bool kernel_is_killed(int process);

/* The descriptor that tells of signals; readable from kernel_signal() until kernel_hear(). */
int kernel_signal_fd(int process);
void kernel_signal(int process);
bool kernel_hear(int process);

/* The process's clock, and the world's time at which it will stand there. */
int64_t kernel_time_of(int process, int64_t now_us);
int64_t kernel_instant(int process, int64_t time_us);

/* For what runs in a process: sleep until its clock says so. */
void kernel_sleep(int64_t time_us);

/* The process that runs; -1: none. */
int kernel_current(void);

/* Has a process done more at one instant than any that works? */
bool kernel_spins(void);

/* For the network: something has changed for this process. */
void kernel_wake(int process);

#endif
