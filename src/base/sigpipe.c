/* SPDX-License-Identifier: MIT */
#include "base/sigpipe.h"

#include <errno.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

void
sigpipe_take_back(void)
{
	const struct timespec at_once = { 0 };
	const int error = errno;
	siginfo_t info;
	sigset_t set;
	int signal;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGPIPE);
	(void)sigaddset(&set, SIGXFSZ);
	signal = sigtimedwait(&set, &info, &at_once);
	if (signal > 0 && info.si_pid != getpid())
		(void)kill(getpid(), signal); /* sent by another process: keep it pending */
	errno = error;
}
