/* SPDX-License-Identifier: MIT */
/* The system calls of the simulated processes.  Those that the program itself makes, too, are the real ones then. */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "event.h"
#include "net.h"
#include "process.h"

WRAPPED(int, ppoll, (struct pollfd * fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask))
{
	const int64_t length = timeout == NULL ? 0 : timeout->tv_sec * 1000000 + (timeout->tv_nsec + 999) / 1000;
	int64_t until, alarm;
	int ready;

	kernel_count_call();
	until = timeout == NULL ? NEVER : kernel_time() + length;
	for (;;) {
		ready = kernel_count_ready(fds, count);
		if (ready > 0 || kernel_time() >= until)
			return ready;
		alarm = kernel_first_alarm(fds, count);
		kernel_wait(fds, count, alarm < until ? alarm : until);
	}
}

WRAPPED(int, poll, (struct pollfd * fds, nfds_t count, int timeout_ms))
{
	const struct timespec timeout = { timeout_ms / 1000, timeout_ms % 1000 * 1000000 };

	return __wrap_ppoll(fds, count, timeout_ms < 0 ? NULL : &timeout, NULL);
}

WRAPPED(int, clock_gettime, (clockid_t id, struct timespec *t))
{
	int64_t now;

	if (kernel_thread == NULL)
		return __real_clock_gettime(id, t);
	kernel_count_call();
	kernel_perhaps_preempt();
	now = kernel_time();
	if (id == CLOCK_REALTIME)
		now += DAY_ONE_US + kernel_process[kernel_thread->process].clock.skew_us -
		    kernel_process[kernel_thread->process].clock.offset_us;
	t->tv_sec = now / 1000000;
	t->tv_nsec = now % 1000000 * 1000;
	return 0;
}

WRAPPED(ssize_t, getrandom, (void *bytes, size_t length, unsigned int flags))
{
	unsigned char *at = bytes;

	for (size_t i = 0; i < length; i++)
		at[i] = (unsigned char)chance_next(kernel_chance);
	return (ssize_t)length;
}

WRAPPED(int, timerfd_create, (int id, int flags))
{
	return kernel_open(FILE_ALARM, kernel_thread->process);
}

WRAPPED(int, timerfd_settime, (int fd, int flags, const struct itimerspec *when, struct itimerspec *old))
{
	const int64_t at = when->it_value.tv_sec * 1000000 + (when->it_value.tv_nsec + 999) / 1000;

	kernel_file_of(fd)->alarm_at_us = at == 0 ? NEVER : at;
	return 0;
}

WRAPPED(int, eventfd, (unsigned int count, int flags))
{
	const int fd = kernel_open(FILE_EVENT, kernel_thread->process);

	if (fd >= 0)
		kernel_file_of(fd)->counter = count;
	return fd;
}

WRAPPED(int, socket, (int family, int type, int protocol))
{
	return kernel_open(FILE_SOCKET, kernel_thread->process);
}

WRAPPED(int, setsockopt, (int fd, int level, int option, const void *value, socklen_t length))
{
	return 0;
}

WRAPPED(int, getsockopt, (int fd, int level, int option, void *value, socklen_t *length))
{
	const struct file *f = kernel_file_of(fd);
	const int error = kernel_process[f->process].killed ? ECONNREFUSED : net_error(f->conn);

	memcpy(value, &error, sizeof(error));
	return 0;
}

WRAPPED(int, connect, (int fd, const struct sockaddr *address, socklen_t length))
{
	struct file *f = kernel_file_of(fd);

	if (kernel_process[f->process].killed) {
		errno = ECONNREFUSED;
		return -1;
	}
	f->conn = net_connect(f->process, address);
	errno = EINPROGRESS;
	return -1;
}

WRAPPED(ssize_t, read, (int fd, void *bytes, size_t size))
{
	struct file *f = kernel_file_of(fd);

	if (f == NULL)
		return __real_read(fd, bytes, size);
	kernel_count_call();
	if (f->kind == FILE_SOCKET && !kernel_process[f->process].killed)
		return net_read(f->conn, bytes, size);
	if (f->kind == FILE_EVENT && f->counter > 0) {
		memcpy(bytes, &f->counter, sizeof(f->counter));
		f->counter = 0;
		return sizeof(f->counter);
	}
	errno = f->kind == FILE_SOCKET ? ECONNRESET : EAGAIN;
	return -1;
}

WRAPPED(ssize_t, write, (int fd, const void *bytes, size_t length))
{
	struct file *f = kernel_file_of(fd);

	if (f == NULL)
		return __real_write(fd, bytes, length);
	kernel_count_call();
	if (f->kind == FILE_EVENT) {
		f->counter++;
		kernel_wake(f->process);
		return (ssize_t)length;
	}
	if (kernel_process[f->process].killed) {
		errno = EPIPE;
		return -1;
	}
	return net_write(f->conn, bytes, length);
}

WRAPPED(int, close, (int fd))
{
	struct file *f = kernel_file_of(fd);

	if (f == NULL)
		return __real_close(fd);
	if (f->conn != NULL && !kernel_process[f->process].killed)
		net_close(f->conn);
	f->kind = FILE_NONE;
	return 0;
}

WRAPPED(int, pthread_create, (pthread_t * id, const pthread_attr_t *attributes, void *(*work)(void *), void *argument))
{
	const struct thread *t = kernel_new_thread(kernel_thread->process, work, argument);

	if (t == NULL)
		return EAGAIN;
	*id = (pthread_t)(t - kernel_process[kernel_thread->process].thread);
	return 0;
}

WRAPPED(int, pthread_join, (pthread_t id, void **result))
{
	struct thread *t = &kernel_process[kernel_thread->process].thread[id];

	while (!t->done) {
		/* The thread was asked to stop: check after each interval whether it has. */
		kernel_wait(NULL, 0, kernel_process[kernel_thread->process].killed ? NEVER : kernel_time() + 50);
	}
	t->used = false;
	return 0;
}

/* -- The variants with the checks of _FORTIFY_SOURCE ------------------------------- */

WRAPPED(int, __poll_chk, (struct pollfd * fds, nfds_t count, int timeout_ms, size_t size))
{
	return __wrap_poll(fds, count, timeout_ms);
}

WRAPPED(int, __ppoll_chk,
    (struct pollfd * fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask, size_t size))
{
	return __wrap_ppoll(fds, count, timeout, mask);
}

WRAPPED(ssize_t, __read_chk, (int fd, void *bytes, size_t length, size_t size))
{
	return __wrap_read(fd, bytes, length);
}
