/* SPDX-License-Identifier: MIT */
#include "run/death_pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "base/clock.h"

/*
 * The kill timer is set first: if dlock is stopped between the two calls, it is continued too early, which is harmless.
 * The kill timer is relative to the present, so it never fires before dlock has had its grace time.
 */
static bool
set_timers(const struct death_pipe *t, int64_t until_us)
{
	const int64_t left_us = until_us - clock_now_us();
	const int64_t kill_us = clock_add(left_us > 0 ? left_us : 0, t->grace_us);

	return clock_timer_set(t->kill, 0, until_us == CLOCK_NEVER ? CLOCK_NEVER : kill_us) &&
	    clock_timer_set(t->wake, TIMER_ABSTIME, until_us == CLOCK_NEVER ? CLOCK_NEVER : until_us - t->lead_us);
}

enum status
death_pipe_open(struct death_pipe *t, int64_t until_us, int64_t lead_us, int64_t grace_us, struct err *err)
{
	t->ends[0] = t->ends[1] = -1;
	t->timers = 0;
	t->lead_us = lead_us;
	t->grace_us = grace_us;
	if (pipe2(t->ends, O_CLOEXEC) != 0 || fcntl(t->ends[0], F_SETFL, O_RDONLY | O_ASYNC) != 0 ||
	    fcntl(t->ends[1], F_SETFL, O_WRONLY | O_ASYNC) != 0)
		return err_system(err, errno, "cannot arrange for the command to end with dlock");
	if (until_us == CLOCK_NEVER)
		return ST_OK;
	t->timers = clock_timer_open(CLOCK_BOOTTIME, SIGCONT, &t->wake);
	t->timers += t->timers == 1 && clock_timer_open(CLOCK_MONOTONIC, SIGKILL, &t->kill);
	if (t->timers < 2 || !set_timers(t, until_us))
		return err_system(err, errno, "cannot set a timer for the end of the lease");
	return ST_OK;
}

bool
death_pipe_bind(const struct death_pipe *t, pid_t owner, int signal)
{
	int i;

	for (i = 0; i < 2; i++) {
		if (fcntl(t->ends[i], F_SETSIG, signal) != 0 || fcntl(t->ends[i], F_SETOWN, owner) != 0)
			return false;
	}
	return true;
}

void
death_pipe_extend(const struct death_pipe *t, int64_t until_us)
{
	if (t->timers == 2)
		(void)set_timers(t, until_us);
}

void
death_pipe_close(struct death_pipe *t)
{
	if (t->timers > 1)
		(void)timer_delete(t->kill);
	if (t->timers > 0)
		(void)timer_delete(t->wake);
	t->timers = 0;
	if (t->ends[0] < 0)
		return;
	(void)fcntl(t->ends[0], F_SETOWN, 0);
	(void)fcntl(t->ends[1], F_SETOWN, 0);
	(void)close(t->ends[0]);
	(void)close(t->ends[1]);
	t->ends[0] = t->ends[1] = -1;
}
