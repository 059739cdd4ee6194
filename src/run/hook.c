/* SPDX-License-Identifier: MIT */
#include "run/hook.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

#define WAIT_US 10000000 /* for its end */
#define NOT_FOUND 127	 /* the shell itself */

/*
 * Runs between vfork and exec, see become_command() in child.c.  The shell changes the directory: if that is on a file
 * system that hangs, dlock does not.
 */
static _Noreturn void
become_hook(const struct hook *h, const char *reason)
{
	static const char line[] = "DLOCK_LOST_REASON=$3; export DLOCK_LOST_REASON\n"
				   "[ -z \"$1\" ] || cd -- \"$1\" 2>/dev/null\n"
				   "exec /bin/sh -c \"$2\"";
	const struct sched_param none = { .sched_priority = 0 };
	const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	(void)setsid();
	if (sched_getscheduler(0) == SCHED_FIFO) /* dlock has the priority for itself */
		(void)sched_setscheduler(0, SCHED_OTHER, &none);
	if (null >= 0)
		(void)dup2(null, STDIN_FILENO);
	signals_restore(h->signals);
	(void)execle("/bin/sh", "sh", "-c", line, "sh", h->directory != NULL ? h->directory : "", h->command, reason,
	    (char *)NULL, h->environment != NULL ? h->environment : environ);
	_exit(NOT_FOUND);
}

void
hook_start(struct hook *h, const char *reason)
{
	if (h->command == NULL || h->until_us != 0)
		return;
	h->until_us = clock_add(clock_now_us(), WAIT_US);
	h->pid = vfork();
	if (h->pid == 0)
		become_hook(h, reason);
	if (h->pid > 0)
		return;
	h->pid = 0;
	log_warn(h->log, "%s: the command of --exec-on-lost could not be started: %s", h->shown_key, strerror(errno));
}

void
hook_reaped(struct hook *h, pid_t pid, int status)
{
	char name[SIGNAL_NAME_SIZE];

	if (h->pid == 0 || pid != h->pid || WIFSTOPPED(status) || WIFCONTINUED(status))
		return;
	h->pid = 0;
	if (WIFSIGNALED(status))
		log_warn(h->log, "%s: the command of --exec-on-lost was ended by %s", h->shown_key,
		    signals_name(WTERMSIG(status), name));
	else if (WEXITSTATUS(status) != 0)
		log_warn(h->log, "%s: the command of --exec-on-lost failed with exit status %d", h->shown_key,
		    WEXITSTATUS(status));
}

void
hook_finish(struct hook *h)
{
	const struct wait wait = { h->until_us, h->signals->fd };
	int status;

	while (h->pid != 0) {
		if (waitpid(h->pid, &status, WNOHANG) == h->pid) {
			hook_reaped(h, h->pid, status);
			continue;
		}
		if (clock_now_us() >= h->until_us || signals_asked_to_end(h->signals)) {
			log_warn(h->log, "%s: the command of --exec-on-lost still runs; dlock ends without it",
			    h->shown_key);
			return;
		}
		(void)clock_wait(&wait);
	}
}
