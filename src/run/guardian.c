/* SPDX-License-Identifier: MIT */
#include "run/guardian.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define DISMISSED 0 /* where a group would stand */

/* Close every descriptor but one, so that no connection or pipe stays open longer than dlock wants. */
static void
keep_only(int fd)
{
	int i, most;

	if (fd > 0)
		(void)close_range(0, (unsigned int)fd - 1, 0);
	if (close_range((unsigned int)fd + 1, ~0u, 0) == 0)
		return;
	most = (int)sysconf(_SC_OPEN_MAX); /* Linux before 5.9 */
	for (i = 0; i < (most < 0 || most > 65536 ? 65536 : most); i++) {
		if (i != fd)
			(void)close(i);
	}
}

static _Noreturn void
guard(int fd)
{
	pid_t word, group = 0;
	sigset_t all;
	ssize_t n;

	(void)prctl(PR_SET_NAME, "lock-guardian");
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	(void)setsid();
	keep_only(fd);
	for (;;) {
		n = read(fd, &word, sizeof(word));
		if (n < 0 && errno == EINTR)
			continue;
		if (n != (ssize_t)sizeof(word))
			break;
		if (word == DISMISSED)
			_exit(0);
		group = word;
	}
	if (group > 1)
		(void)kill(-group, SIGKILL);
	_exit(0);
}

enum status
guardian_start(struct guardian *g, struct err *err)
{
	int ends[2], error;

	g->fd = -1;
	if (pipe2(ends, O_CLOEXEC) != 0)
		return err_system(err, errno, "cannot start the guardian of the command");
	g->pid = fork();
	error = errno;
	if (g->pid == 0) {
		(void)close(ends[1]);
		guard(ends[0]);
	}
	(void)close(ends[0]);
	if (g->pid < 0) {
		(void)close(ends[1]);
		return err_system(err, error, "cannot start the guardian of the command");
	}
	g->fd = ends[1];
	return ST_OK;
}

void
guardian_watch(int fd, pid_t group)
{
	(void)!write(fd, &group, sizeof(group));
}

void
guardian_dismiss(struct guardian *g)
{
	if (g->fd < 0)
		return;
	guardian_watch(g->fd, DISMISSED);
	(void)close(g->fd);
	g->fd = -1;
}

void
guardian_reap(const struct guardian *g)
{
	while (g->pid > 0 && waitpid(g->pid, NULL, 0) < 0 && errno == EINTR)
		;
}
