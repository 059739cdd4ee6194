/* SPDX-License-Identifier: MIT */
#include "run/terminal.h"

#include <fcntl.h>
#include <unistd.h>

int
terminal_open(void)
{
	return open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
}

bool
terminal_has(int terminal, pid_t group)
{
	return terminal >= 0 && group > 0 && tcgetpgrp(terminal) == group;
}

bool
terminal_is_used(void)
{
	return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
}

void
terminal_give(int terminal, pid_t group)
{
	(void)tcsetpgrp(terminal, group);
}

bool
terminal_take(int terminal, pid_t group)
{
	return terminal_has(terminal, group) && tcsetpgrp(terminal, getpgrp()) == 0;
}

bool
terminal_has_job_control(void)
{
	const pid_t parent = getppid();

	/* If the parent is outside the session, the group is orphaned, and the kernel would not let it be stopped. */
	return parent > 0 && getsid(parent) == getsid(0);
}
