/* SPDX-License-Identifier: MIT */
#include "run/tether.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

/* So long a dlock that runs has to do itself what is to be done then.  The drift that validity leaves is more. */
#define GRACE_US 1000

static void
make_timer(struct tether *t)
{
	struct sigevent event;

	memset(&event, 0, sizeof(event));
	event.sigev_notify = SIGEV_SIGNAL;
	event.sigev_signo = SIGKILL;
	t->has_timer = getpid() != 1 && timer_create(CLOCK_BOOTTIME, &event, &t->timer) == 0;
}

enum status
tether_open(struct tether *t, struct err *err)
{
	int i;

	if (pipe2(t->ends, O_CLOEXEC) != 0) {
		t->ends[0] = t->ends[1] = -1;
		return err_system(err, errno, "cannot tie the command to dlock");
	}
	for (i = 0; i < 2; i++) {
		if (fcntl(t->ends[i], F_SETSIG, SIGKILL) != 0 ||
		    fcntl(t->ends[i], F_SETFL, (i == 0 ? O_RDONLY : O_WRONLY) | O_ASYNC) != 0)
			return err_system(err, errno, "cannot tie the command to dlock");
	}
	make_timer(t);
	return ST_OK;
}

bool
tether_bind(const struct tether *t, pid_t group)
{
	return fcntl(t->ends[0], F_SETOWN, -group) == 0 && fcntl(t->ends[1], F_SETOWN, -group) == 0;
}

bool
tether_limit(const struct tether *t, int64_t until_us)
{
	struct itimerspec when = { { 0, 0 }, { 0, 0 } };

	if (!t->has_timer)
		return false;
	if (until_us != CLOCK_NEVER) {
		until_us = clock_add(until_us, GRACE_US);
		when.it_value.tv_sec = (time_t)(until_us / 1000000);
		when.it_value.tv_nsec = (long)(until_us % 1000000) * 1000;
	}
	return timer_settime(t->timer, TIMER_ABSTIME, &when, NULL) == 0;
}

void
tether_close(struct tether *t)
{
	int i;

	if (t->has_timer)
		(void)timer_delete(t->timer);
	t->has_timer = false;
	for (i = 0; i < 2; i++) {
		if (t->ends[i] >= 0)
			(void)fcntl(t->ends[i], F_SETOWN, 0);
	}
	for (i = 0; i < 2; i++) {
		if (t->ends[i] >= 0)
			(void)close(t->ends[i]);
		t->ends[i] = -1;
	}
}
