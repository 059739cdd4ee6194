/* SPDX-License-Identifier: MIT */
#include "run/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <syslog.h>
#include <unistd.h>

#define ANCESTORS_MAX 16 /* that are looked at */

bool
process_read(pid_t pid, const char *file, char *text, size_t size)
{
	char path[40];
	ssize_t length;
	int fd, error;

	(void)snprintf(path, sizeof(path), "/proc/%ld/%s", (long)pid, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	length = read(fd, text, size - 1);
	error = errno;
	(void)close(fd);
	errno = error;
	text[length > 0 ? length : 0] = '\0';
	return length >= 0;
}

bool
process_stat(pid_t pid, uint64_t field[STAT_FIELDS])
{
	char line[1024], *at;
	int i = 0;

	memset(field, 0, STAT_FIELDS * sizeof(field[0]));
	if (!process_read(pid, "stat", line, sizeof(line)))
		return false;
	at = strrchr(line, ')'); /* the name, in field 2, may be anything */
	if (at != NULL && at[1] == ' ' && at[2] != '\0') {
		field[STAT_STATE] = (unsigned char)at[2];
		at += 3;
		for (i = STAT_STATE + 1; i < STAT_FIELDS && *at == ' '; i++)
			field[i] = strtoull(at, &at, 10);
	}
	errno = EINVAL; /* for a line that is too short */
	return i == STAT_FIELDS;
}

bool
process_name(pid_t pid, char name[PROCESS_NAME_SIZE], bool *is_ours)
{
	char ours[PROCESS_NAME_SIZE] = "";

	if (!process_read(pid, "comm", name, PROCESS_NAME_SIZE))
		return false;
	name[strcspn(name, "\n")] = '\0';
	*is_ours = prctl(PR_GET_NAME, ours) == 0 && strcmp(name, ours) == 0;
	return true;
}

/* -- A process that runs already -------------------------------------------- */

/* The C library has functions for pidfd only since glibc 2.36. */
enum status
process_open(struct process *p, pid_t pid, struct err *err)
{
	p->pid = pid;
	p->fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (p->fd < 0 && (errno == ESRCH || errno == EINVAL || errno == ENOENT)) /* the latter two: a thread */
		return err_set(err, ST_USAGE, "--keep: there is no process %ld", (long)pid);
	if (p->fd < 0 && (errno == ENOSYS || errno == EPERM))
		return err_set(err, ST_SYSTEM, "--keep: the kernel has no pidfd_open(2), which came with Linux 5.3");
	if (p->fd < 0)
		return err_system(err, errno, "--keep: pidfd_open");
	if (process_ended(p))
		return err_set(err, ST_USAGE, "--keep: process %ld has ended", (long)pid);
	if (!process_signal(p, 0) && errno == EPERM)
		return err_set(err, ST_USAGE,
		    "--keep: process %ld belongs to another user, and could not be signalled when the lock is lost",
		    (long)pid);
	return ST_OK;
}

void
process_close(struct process *p)
{
	if (p->fd >= 0)
		(void)close(p->fd);
	p->fd = -1;
}

bool
process_ended(const struct process *p)
{
	struct pollfd fd = { .fd = p->fd, .events = POLLIN };

	return poll(&fd, 1, 0) == 1;
}

bool
process_signal(const struct process *p, int signal)
{
	return syscall(SYS_pidfd_send_signal, p->fd, signal, NULL, 0) == 0;
}

/*
 * The same open file as the process has, if the kernel permits that, which reaches sockets and shares the position in a
 * file.  Otherwise the file is opened again.
 */
static int
open_stderr(const struct process *p)
{
	char path[40];
	int fd;

	fd = (int)syscall(SYS_pidfd_getfd, p->fd, STDERR_FILENO, 0);
	if (fd >= 0)
		return fd;
	if (geteuid() == 0) /* it could write where the process may only read */
		return -1;
	(void)snprintf(path, sizeof(path), "/proc/%ld/fd/%d", (long)p->pid, STDERR_FILENO);
	fd = open(path, O_WRONLY | O_APPEND | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	if (fd >= 0 && process_ended(p)) { /* the path may be that of another process */
		(void)close(fd);
		return -1;
	}
	return fd;
}

void
process_say(const struct process *p, const char *line)
{
	struct pollfd fd = { .events = POLLOUT };
	char text[1100];
	bool written = false;
	int length;

	length = snprintf(text, sizeof(text), "dlock: %s\n", line);
	if (length < 0 || (size_t)length >= sizeof(text))
		return;
	fd.fd = process_ended(p) ? -1 : open_stderr(p);
	if (fd.fd >= 0) {
		written = poll(&fd, 1, 0) == 1 && (fd.revents & POLLOUT) != 0 &&
		    write(fd.fd, text, (size_t)length) == (ssize_t)length;
		(void)close(fd.fd);
	}
	if (!written)
		syslog(LOG_USER | LOG_WARNING, "dlock: %s", line);
}

pid_t
process_caller(void)
{
	uint64_t stat[STAT_FIELDS], above[STAT_FIELDS];
	pid_t pid = getppid();
	int i;

	if (pid <= 0) /* it is outside of our container */
		return getpid();
	(void)process_stat(pid, stat);
	/* The stack begins at a random address, which a copy has in common with its original. */
	for (i = 0; i < ANCESTORS_MAX && stat[STAT_STACK] != 0 && stat[STAT_PARENT] != 0; i++) {
		(void)process_stat((pid_t)stat[STAT_PARENT], above);
		if (above[STAT_STACK] != stat[STAT_STACK])
			break;
		pid = (pid_t)stat[STAT_PARENT];
		memcpy(stat, above, sizeof(stat));
	}
	return pid;
}
