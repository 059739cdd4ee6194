/* SPDX-License-Identifier: MIT */
/* The descriptors of the simulated processes. */
#include <errno.h>
#include <stddef.h>

#include "event.h"
#include "net.h"
#include "process.h"

int
kernel_open(enum file_kind kind, int owner)
{
	for (int i = 0; i < FILES; i++) {
		if (kernel_file[i].kind != FILE_NONE)
			continue;
		kernel_file[i] = (struct file){ .kind = kind, .process = owner, .alarm_at_us = NEVER };
		return FD_FIRST + i;
	}
	errno = EMFILE;
	return -1;
}

struct file *
kernel_file_of(int fd)
{
	return kernel_thread != NULL && fd >= FD_FIRST && fd < FD_FIRST + FILES ? &kernel_file[fd - FD_FIRST] : NULL;
}

static short
events_of(const struct file *f)
{
	const bool killed = kernel_process[f->process].killed;

	switch (f->kind) {
	case FILE_NONE:
		return POLLNVAL;
	case FILE_SOCKET:
		return killed ? POLLIN | POLLOUT | POLLERR : f->conn != NULL ? net_events(f->conn) : POLLHUP;
	case FILE_EVENT:
		return f->counter > 0 ? POLLIN : 0;
	case FILE_SIGNAL:
		return f->counter > 0 || killed ? POLLIN : 0;
	case FILE_ALARM:
		return f->alarm_at_us != NEVER &&
			f->alarm_at_us <=
			    (killed ? kernel_process[f->process].ghost_us : kernel_time_of(f->process, event_now()))
		    ? POLLIN
		    : 0;
	}
	return 0;
}

int
kernel_count_ready(struct pollfd *fds, nfds_t count)
{
	const struct file *f;
	int ready = 0;
	nfds_t i;

	for (i = 0; i < count; i++) {
		f = fds[i].fd >= FD_FIRST ? &kernel_file[fds[i].fd - FD_FIRST] : NULL;
		fds[i].revents = 0;
		if (f != NULL)
			fds[i].revents = (short)(events_of(f) & (fds[i].events | POLLERR | POLLHUP | POLLNVAL));
		ready += fds[i].revents != 0;
	}
	return ready;
}

int64_t
kernel_first_alarm(const struct pollfd *fds, nfds_t count)
{
	const struct file *f;
	int64_t first = NEVER;
	nfds_t i;

	for (i = 0; i < count; i++) {
		f = fds[i].fd >= FD_FIRST ? &kernel_file[fds[i].fd - FD_FIRST] : NULL;
		if (f != NULL && f->kind == FILE_ALARM && f->alarm_at_us < first)
			first = f->alarm_at_us;
	}
	return first;
}
