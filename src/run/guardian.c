/* SPDX-License-Identifier: MIT */
#include "run/guardian.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

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
guard(int fd, int group)
{
	sigset_t all;
	char word;
	ssize_t n;

	(void)prctl(PR_SET_NAME, "lock-guardian");
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	(void)setsid();
	keep_only(fd);
	do
		n = read(fd, &word, sizeof(word));
	while (n < 0 && errno == EINTR);
	if (n == 0)
		(void)kill(-group, SIGKILL);
	_exit(0);
}

enum status
guardian_start(int group, int *fd, struct err *err)
{
	int ends[2], error;
	pid_t pid;

	*fd = -1;
	if (pipe2(ends, O_CLOEXEC) != 0)
		return err_system(err, errno, "cannot start the guardian of the command");
	pid = fork();
	error = errno;
	if (pid == 0) {
		(void)close(ends[1]);
		guard(ends[0], group);
	}
	(void)close(ends[0]);
	if (pid < 0) {
		(void)close(ends[1]);
		return err_system(err, error, "cannot start the guardian of the command");
	}
	*fd = ends[1];
	return ST_OK;
}

void
guardian_dismiss(int fd)
{
	if (fd < 0)
		return;
	(void)!write(fd, "", 1);
	(void)close(fd);
}
