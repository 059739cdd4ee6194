/* SPDX-License-Identifier: MIT */
#include "redis/dial.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"

/*
 * A waiter's connection is idle for hours.  What lies between would forget it, and we should not notice: dead ones are
 * noticed within a minute.
 */
#define KEEPALIVE_IDLE_S 15
#define KEEPALIVE_PROBE_S 10
#define KEEPALIVE_PROBES 4

#define UNIX_RETRY_US 2000 /* when the server's queue of new connections is full */

static enum dial_state
fail(struct dial *d, const char *error)
{
	d->error = error;
	return DIAL_FAILED;
}

static const char *
explain(int error)
{
	if (error == ECONNREFUSED)
		return "connection refused; is Redis running there?";
	return error == ENOENT ? "there is no such socket; is Redis running there?" : strerror(error);
}

static void
set_options(int fd)
{
	const int on = 1, idle = KEEPALIVE_IDLE_S, pause = KEEPALIVE_PROBE_S, probes = KEEPALIVE_PROBES;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &pause, sizeof(pause));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
}

/* A non-blocking connect(2) on a new socket; 0, or an errno (EINPROGRESS: poll for it). */
static int
connect_to(struct dial *d, const struct sockaddr *address, socklen_t length)
{
	if (d->fd >= 0)
		(void)close(d->fd);
	d->fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (d->fd < 0)
		return errno;
	if (address->sa_family != AF_UNIX)
		set_options(d->fd);
	return connect(d->fd, address, length) == 0 ? 0 : errno;
}

static enum dial_state
connect_unix(struct dial *d)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const size_t length = strlen(d->url->path) + 1;
	int error;

	d->wake_us = CLOCK_NEVER;
	memcpy(address.sun_path, d->url->path, length);
	error = connect_to(d, (const struct sockaddr *)&address,
	    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length));
	if (error == 0)
		return DIAL_CONNECTED;
	if (error != EAGAIN)
		return fail(d, explain(error));
	d->wake_us = clock_now_us() + UNIX_RETRY_US;
	return DIAL_BUSY;
}

/* Try the next address; where none is left, the last one's error stands. */
static enum dial_state
connect_next(struct dial *d, int error)
{
	const struct addrinfo *a;

	while ((a = d->next_address) != NULL) {
		d->next_address = a->ai_next;
		error = connect_to(d, a->ai_addr, a->ai_addrlen);
		if (error == EINPROGRESS)
			return DIAL_BUSY;
		if (error == 0)
			return DIAL_CONNECTED;
	}
	return fail(d, explain(error));
}

enum dial_state
dial_start(struct dial *d, const struct url *url)
{
	*d = (struct dial){ .url = url, .fd = -1, .wake_us = CLOCK_NEVER };
	if (url->host[0] == '\0')
		return connect_unix(d);
	d->addresses = resolve_numeric(url->host, url->port);
	if (d->addresses != NULL) {
		d->next_address = d->addresses;
		return connect_next(d, EADDRNOTAVAIL);
	}
	d->by_name = true;
	d->resolving = resolve_start(url->host, url->port);
	return d->resolving == NULL ? fail(d, strerror(errno)) : DIAL_BUSY;
}

static enum dial_state
take_addresses(struct dial *d)
{
	const int code = resolve_result(d->resolving, &d->addresses);

	resolve_cancel(d->resolving);
	d->resolving = NULL;
	if (code != 0)
		return fail(d, code == EAI_SYSTEM ? "the name cannot be resolved" : gai_strerror(code));
	d->next_address = d->addresses;
	return connect_next(d, EADDRNOTAVAIL);
}

enum dial_state
dial_handle(struct dial *d, int64_t now_us)
{
	socklen_t length = sizeof(int);
	int error = 0;

	if (d->resolving != NULL)
		return take_addresses(d);
	if (d->url->host[0] == '\0')
		return now_us >= d->wake_us ? connect_unix(d) : DIAL_BUSY;
	if (getsockopt(d->fd, SOL_SOCKET, SO_ERROR, &error, &length) != 0)
		error = errno;
	return error == 0 ? DIAL_CONNECTED : connect_next(d, error);
}

int
dial_fd(const struct dial *d)
{
	if (d->resolving != NULL)
		return resolve_fd(d->resolving);
	return d->wake_us == CLOCK_NEVER ? d->fd : -1;
}

short
dial_events(const struct dial *d)
{
	return d->resolving != NULL ? POLLIN : POLLOUT;
}

int
dial_take(struct dial *d)
{
	const int fd = d->fd;

	d->fd = -1;
	return fd;
}

void
dial_stop(struct dial *d)
{
	resolve_cancel(d->resolving);
	d->resolving = NULL;
	if (d->addresses != NULL)
		freeaddrinfo(d->addresses);
	d->addresses = NULL;
	d->next_address = NULL;
	if (d->fd >= 0)
		(void)close(d->fd);
	d->fd = -1;
	d->wake_us = CLOCK_NEVER;
}
