/* SPDX-License-Identifier: MIT */
#include "run/kept.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <syslog.h>
#include <unistd.h>

#include "base/sigpipe.h"

/* By number, since the C library has the functions only since glibc 2.36. */
static int
pidfd_open_process(pid_t pid)
{
	return (int)syscall(SYS_pidfd_open, pid, 0);
}

static int
pidfd_signal(int fd, int signal)
{
	return (int)syscall(SYS_pidfd_send_signal, fd, signal, NULL, 0);
}

enum status
kept_open(struct kept *k, pid_t pid, struct err *err)
{
	k->pid = pid;
	k->fd = pidfd_open_process(pid);
	if (k->fd < 0 && (errno == ESRCH || errno == EINVAL)) /* EINVAL: a thread */
		return err_set(err, ST_USAGE, "--keep: there is no process %ld", (long)pid);
	if (k->fd < 0 && (errno == ENOSYS || errno == EPERM))
		return err_set(err, ST_SYSTEM, "--keep: the kernel has no pidfd_open(2), which came with Linux 5.3");
	if (k->fd < 0)
		return err_system(err, errno, "--keep: pidfd_open");
	if (kept_ended(k))
		return err_set(err, ST_USAGE, "--keep: process %ld has ended", (long)pid);
	if (pidfd_signal(k->fd, 0) != 0 && errno == EPERM)
		return err_set(err, ST_USAGE,
		    "--keep: process %ld belongs to another user, and could not be signalled when the lock is lost",
		    (long)pid);
	return ST_OK;
}

void
kept_close(struct kept *k)
{
	if (k->fd >= 0)
		(void)close(k->fd);
	k->fd = -1;
}

bool
kept_ended(const struct kept *k)
{
	struct pollfd fd = { .fd = k->fd, .events = POLLIN };

	return poll(&fd, 1, 0) == 1;
}

bool
kept_signal(const struct kept *k, int signal)
{
	return pidfd_signal(k->fd, signal) == 0;
}

/*
 * The same open file as the process has, if the kernel permits that, which reaches sockets and shares the position in a
 * file.  Otherwise the file is opened again.
 */
static int
open_stderr(const struct kept *k)
{
	char path[40];
	int fd;

#ifdef SYS_pidfd_getfd
	fd = (int)syscall(SYS_pidfd_getfd, k->fd, STDERR_FILENO, 0);
	if (fd >= 0)
		return fd;
#endif
	if (geteuid() == 0) /* it could write where the process may only read */
		return -1;
	(void)snprintf(path, sizeof(path), "/proc/%ld/fd/%d", (long)k->pid, STDERR_FILENO);
	fd = open(path, O_WRONLY | O_APPEND | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	if (fd >= 0 && kept_ended(k)) { /* the path may be that of another process */
		(void)close(fd);
		return -1;
	}
	return fd;
}

void
kept_say(const struct kept *k, const char *line)
{
	struct pollfd fd = { .events = POLLOUT };
	char text[1100];
	bool written = false;
	int length;

	length = snprintf(text, sizeof(text), "dlock: %s\n", line);
	if (length < 0 || (size_t)length >= sizeof(text))
		return;
	fd.fd = kept_ended(k) ? -1 : open_stderr(k);
	if (fd.fd >= 0) {
		if (poll(&fd, 1, 0) == 1 && (fd.revents & POLLOUT) != 0) {
			written = write(fd.fd, text, (size_t)length) == (ssize_t)length;
			if (!written)
				sigpipe_take_back();
		}
		(void)close(fd.fd);
	}
	if (!written)
		syslog(LOG_USER | LOG_WARNING, "dlock: %s", line);
}
