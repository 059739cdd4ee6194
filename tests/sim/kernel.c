/* SPDX-License-Identifier: MIT */
#include "kernel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "event.h"
#include "net.h"
#include "process.h"

#define STACK_SIZE (256u * 1024)
#define SPIN 20000 /* this many system calls at one instant are an endless loop */

struct process kernel_process[PROCESSES];
struct file kernel_file[FILES];
struct thread *kernel_thread;
static struct thread *caller; /* of kernel_enter(): it has no stack of its own */
struct chance *kernel_chance;

static ucontext_t scheduler;
static bool spins;

/* -- Threads ------------------------------------------------------------------- */

static void
begin(void)
{
	struct thread *t = kernel_thread;

	(void)t->work(t->argument);
	t->done = true;
	(void)swapcontext(&t->context, &scheduler);
	abort();
}

static void
run(struct thread *t)
{
	struct thread *const before = kernel_thread;

	t->waiting = false;
	t->wait++;
	if (t == caller)
		return;
	kernel_thread = t;
	(void)swapcontext(&scheduler, &t->context);
	kernel_thread = before;
}

static void
leave(void)
{
	if (kernel_thread != caller) {
		(void)swapcontext(&kernel_thread->context, &scheduler);
		return;
	}
	kernel_thread = NULL;
	while (caller->waiting && event_next(NEVER))
		;
	kernel_thread = caller;
}

static void
timer(void *subject, unsigned int wait)
{
	struct thread *t = subject;
	const struct process *p = &kernel_process[t->process];

	if (!t->waiting || t->wait != wait || t->done || p->killed)
		return;
	if (p->paused_until_us > event_now())
		event_at(p->paused_until_us, timer, t, wait);
	else
		run(t);
}

static bool
give_stack(struct thread *t)
{
	if (t->stack == NULL)
		t->stack = malloc(STACK_SIZE);
	if (t->stack == NULL || getcontext(&t->context) != 0)
		return false;
	t->context.uc_stack.ss_sp = t->stack;
	t->context.uc_stack.ss_size = STACK_SIZE;
	t->context.uc_link = NULL;
	makecontext(&t->context, begin, 0);
	return true;
}

struct thread *
kernel_new_thread(int number, void *(*work)(void *), void *argument)
{
	struct thread *t = kernel_process[number].thread;
	int i;

	for (i = 0; i < THREADS && t->used; i++, t++)
		;
	if (i == THREADS || !give_stack(t))
		return NULL;
	t->process = number;
	t->used = t->waiting = true;
	t->done = false;
	t->work = work;
	t->argument = argument;
	t->fds = NULL;
	t->count = 0;
	event_at(event_now(), timer, t, t->wait);
	return t;
}

/* -- Clocks -------------------------------------------------------------------- */

int64_t
kernel_time_of(int number, int64_t now_us)
{
	const struct clock_plan *c = &kernel_process[number].clock;

	return c->offset_us + now_us + now_us * c->drift / 10000;
}

int64_t
kernel_instant(int number, int64_t time_us)
{
	const struct clock_plan *c = &kernel_process[number].clock;
	int64_t now;

	now = (time_us - c->offset_us) * 10000 / (10000 + c->drift) - 2;
	while (kernel_time_of(number, now) < time_us)
		now++;
	return now;
}

int64_t
kernel_time(void)
{
	const struct process *p = &kernel_process[kernel_thread->process];

	return p->killed ? p->ghost_us : kernel_time_of(kernel_thread->process, event_now());
}

int
kernel_current(void)
{
	return kernel_thread != NULL ? kernel_thread->process : -1;
}

/* -- Waiting ------------------------------------------------------------------- */

/* A wait of a killed process ends at once. */
static void
wait_as_ghost(int64_t until_us)
{
	struct process *p = &kernel_process[kernel_thread->process];

	if (until_us != NEVER)
		p->ghost_us = until_us > p->ghost_us ? until_us : p->ghost_us;
	else {
		kernel_thread->waiting = true;
		leave();
	}
}

/* Block the running thread until a descriptor is ready or the clock of its process reaches until_us. */
void
kernel_wait(struct pollfd *fds, nfds_t count, int64_t until_us)
{
	struct thread *t = kernel_thread;

	if (kernel_process[t->process].killed) {
		wait_as_ghost(until_us);
		return;
	}
	t->waiting = true;
	t->fds = fds;
	t->count = count;
	if (until_us != NEVER)
		event_at(kernel_instant(t->process, until_us), timer, t, t->wait);
	leave();
}

void
kernel_wake(int number)
{
	struct process *p = &kernel_process[number];
	struct thread *t;

	for (int i = 0; i < THREADS && !p->killed; i++) {
		t = &p->thread[i];
		if (!t->used || t->done || !t->waiting || (t->count > 0 && kernel_count_ready(t->fds, t->count) == 0))
			continue;
		if (kernel_thread != NULL || p->paused_until_us > event_now())
			event_at(p->paused_until_us, timer, t, t->wait);
		else
			run(t);
	}
}

/* Count a system call.  Too many at one instant are an endless loop, for which the process is killed here. */
void
kernel_count_call(void)
{
	struct process *p = &kernel_process[kernel_thread->process];

	if (p->calls_at_us != event_now())
		p->calls = 0;
	p->calls_at_us = event_now();
	if (++p->calls < (p->killed ? 100 * SPIN : SPIN))
		return;
	if (p->killed) {
		fprintf(stderr, "dlock-sim: a process that was killed does not end\n");
		abort();
	}
	spins = true;
	p->calls = 0;
	kernel_wait(NULL, 0, kernel_time() + 1000);
}

/* Perhaps preempt the process: it continues some time later. */
void
kernel_perhaps_preempt(void)
{
	struct process *p = &kernel_process[kernel_thread->process];
	int64_t until;

	if (p->killed || p->clock.preempt == 0 || !chance_one_in(kernel_chance, p->clock.preempt))
		return;
	until = event_now() + chance_between(kernel_chance, 1, p->clock.preempt_us);
	p->preempted_us += until - event_now();
	p->paused_until_us = until > p->paused_until_us ? until : p->paused_until_us;
	while (event_now() < p->paused_until_us && !p->killed) {
		kernel_thread->waiting = true;
		kernel_thread->fds = NULL;
		kernel_thread->count = 0;
		event_at(p->paused_until_us, timer, kernel_thread, kernel_thread->wait);
		leave();
	}
}

bool
kernel_spins(void)
{
	return spins;
}

void
kernel_sleep(int64_t time_us)
{
	while (kernel_time() < time_us)
		kernel_wait(NULL, 0, time_us);
}

/* -- Processes ------------------------------------------------------------------- */

static void *
enter_main(void *argument)
{
	struct process *p = argument;

	p->main((int)(p - kernel_process));
	p->runs = false;
	return NULL;
}

void
kernel_reset(struct chance *from)
{
	kernel_chance = from;
	spins = false;
	kernel_thread = NULL;
	memset(kernel_file, 0, sizeof(kernel_file));
	for (int p = 0; p < PROCESSES; p++) {
		kernel_process[p].runs = kernel_process[p].killed = false;
		kernel_process[p].paused_until_us = 0;
		kernel_process[p].preempted_us = 0;
		kernel_process[p].calls = 0;
		for (int t = 0; t < THREADS; t++)
			kernel_process[p].thread[t].used = kernel_process[p].thread[t].done = false;
	}
}

static struct process *
new_process(int number, const struct clock_plan *clock)
{
	struct process *p = &kernel_process[number];

	p->clock = *clock;
	p->runs = true;
	p->signals = kernel_open(FILE_SIGNAL, number) - FD_FIRST;
	return p;
}

void
kernel_start(int number, const struct clock_plan *clock, void (*main)(int))
{
	struct process *p = new_process(number, clock);

	p->main = main;
	if (p->signals < 0 || kernel_new_thread(number, enter_main, p) == NULL)
		abort();
}

void
kernel_enter(int number, const struct clock_plan *clock)
{
	kernel_thread = caller = new_process(number, clock)->thread;
	caller->process = number;
	caller->used = true;
}

void
kernel_leave(void)
{
	kernel_thread = caller = NULL;
}

bool
kernel_runs(int number)
{
	return kernel_process[number].runs;
}

void
kernel_pause(int number, int64_t until_us)
{
	if (until_us > kernel_process[number].paused_until_us)
		kernel_process[number].paused_until_us = until_us;
}

void
kernel_continue(int number)
{
	struct process *p = &kernel_process[number];
	struct thread *t;

	if (p->paused_until_us <= event_now())
		return;
	p->paused_until_us = event_now();
	for (int i = 0; i < THREADS; i++) {
		t = &p->thread[i];
		if (t->used && !t->done && t->waiting) /* it may have become ready in the meantime */
			event_at(event_now(), timer, t, t->wait);
	}
}

int64_t
kernel_preempted_us(int number)
{
	return kernel_process[number].preempted_us;
}

bool
kernel_was_paused(int number, int64_t within_us)
{
	return kernel_process[number].paused_until_us > 0 &&
	    kernel_process[number].paused_until_us + within_us > event_now();
}

bool
kernel_is_killed(int number)
{
	return kernel_process[number].killed;
}

void
kernel_kill(int number, bool host_gone)
{
	struct process *p = &kernel_process[number];

	if (!p->runs || p->killed)
		return;
	for (int i = 0; i < FILES && !host_gone; i++) {
		if (kernel_file[i].kind == FILE_SOCKET && kernel_file[i].process == number &&
		    kernel_file[i].conn != NULL)
			net_close(kernel_file[i].conn);
	}
	p->ghost_us = kernel_time_of(number, event_now());
	p->killed = true;
	for (int rounds = 0; p->runs && rounds < 1000; rounds++) {
		for (int i = 0; i < THREADS; i++) {
			if (p->thread[i].used && !p->thread[i].done)
				run(&p->thread[i]);
		}
	}
	if (p->runs) {
		fprintf(stderr, "dlock-sim: a process that was killed waits for ever\n");
		abort();
	}
}

int
kernel_signal_fd(int number)
{
	return FD_FIRST + kernel_process[number].signals;
}

void
kernel_signal(int number)
{
	if (!kernel_process[number].runs)
		return;
	kernel_file[kernel_process[number].signals].counter++;
	kernel_wake(number);
}

bool
kernel_take_signals(int number)
{
	const bool any = kernel_file[kernel_process[number].signals].counter > 0;

	kernel_file[kernel_process[number].signals].counter = 0;
	return any;
}
