/* SPDX-License-Identifier: MIT */
#include "run/terminal.h"

#include <fcntl.h>
#include <unistd.h>

void
terminal_open(struct terminal *t)
{
	t->fd = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
	(void)sigemptyset(&t->from_terminal);
	(void)sigemptyset(&t->from_others);
}

bool
terminal_is_of(const struct terminal *t, pid_t group)
{
	return t->fd >= 0 && group > 0 && tcgetpgrp(t->fd) == group;
}

bool
terminal_take(const struct terminal *t, pid_t group)
{
	return terminal_is_of(t, group) && tcsetpgrp(t->fd, getpgrp()) == 0;
}

bool
terminal_is_used(void)
{
	return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
}

bool
terminal_has_job_control(void)
{
	const pid_t parent = getppid();

	/* If the parent is outside the session, the group is orphaned, and the kernel would not let it be stopped. */
	return parent > 0 && getsid(parent) == getsid(0);
}

bool
terminal_is_job_stop(const struct terminal *t, pid_t group, int signal)
{
	if (t->fd < 0)
		return false;
	return signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU || terminal_is_of(t, group);
}

bool
terminal_end(const struct terminal *t, pid_t group, int signal)
{
	const bool had_terminal = terminal_take(t, group);

	if (signal != SIGINT && signal != SIGQUIT)
		return false;
	if (sigismember(&t->from_terminal, signal) == 1)
		return true;
	if (!had_terminal || sigismember(&t->from_others, signal) == 1)
		return false;
	(void)kill(0, signal); /* dlock itself has it blocked */
	return true;
}
