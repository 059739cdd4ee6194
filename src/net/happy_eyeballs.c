/* SPDX-License-Identifier: MIT */
#include "net/happy_eyeballs.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"

#define STAGGER_US 30000 /* delay before the next address is tried */

/* An idle connection detects a vanished peer after about half a minute. */
#define KEEPALIVE_IDLE_S 15
#define KEEPALIVE_INTERVAL_S 5
#define KEEPALIVE_PROBES 3

static void
set_option(int fd, int level, int option, int value)
{
	(void)setsockopt(fd, level, option, &value, sizeof(value));
}

int
connect_socket(int family)
{
	const int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 || family == AF_UNIX)
		return fd;
	set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
	set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE_S);
	set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_INTERVAL_S);
	set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_PROBES);
	return fd;
}

/* The families alternate; the addresses of each stay in the order of the resolver. */
static void
sort_addresses(struct happy_eyeballs *r, const struct addrinfo *list)
{
	const struct addrinfo *next[2] = { list, list };
	int other = 0;

	for (; r->addresses < ADDRESSES_MAX && (next[0] != NULL || next[1] != NULL); other = !other) {
		while (next[other] != NULL && (next[other]->ai_family != list->ai_family) != other)
			next[other] = next[other]->ai_next;
		if (next[other] == NULL)
			continue;
		r->address[r->addresses++] = next[other];
		next[other] = next[other]->ai_next;
	}
}

/* The socket is not pending any more.  Returns it; the caller closes or uses it. */
static int
take_socket(struct happy_eyeballs *r, int i)
{
	const int fd = r->socket[i].fd;

	loop_remove(r->owner->loop, &r->socket[i]);
	r->socket[i].fd = -1;
	r->running--;
	return fd;
}

static void
socket_ready(void *context, int64_t now_us)
{
	struct happy_eyeballs *const r = context;

	r->owner->ready(r->owner->context, now_us);
}

/* Start a connection to the next address.  True if it is established at once. */
static bool
try_next(struct happy_eyeballs *r)
{
	const struct addrinfo *a = r->address[r->next];
	const int i = r->next++;
	int fd;

	r->socket[i].fd = -1;
	fd = connect_socket(a->ai_family);
	if (fd >= 0 && connect(fd, a->ai_addr, a->ai_addrlen) == 0) {
		r->connected = fd;
		return true;
	}
	if (fd >= 0 && errno == EINPROGRESS) {
		r->socket[i] = (struct watch){ .fd = fd,
			.events = POLLOUT,
			.at_us = CLOCK_NEVER,
			.ready = socket_ready,
			.context = r };
		loop_add(r->owner->loop, &r->socket[i]);
		r->running++;
		return false;
	}
	r->error = errno;
	if (fd >= 0)
		(void)close(fd);
	return false;
}

/* Check the pending sockets.  True if one is connected.  Those that failed are closed. */
static bool
check_sockets(struct happy_eyeballs *r)
{
	struct pollfd fds[ADDRESSES_MAX];
	socklen_t length = sizeof(int);
	int i, error;

	for (i = 0; i < r->next; i++)
		fds[i] = (struct pollfd){ .fd = r->socket[i].fd, .events = POLLOUT };
	if (r->running == 0 || poll(fds, (nfds_t)r->next, 0) <= 0)
		return false;
	for (i = 0; i < r->next; i++) {
		if (fds[i].fd < 0 || fds[i].revents == 0)
			continue;
		error = 0;
		if (getsockopt(fds[i].fd, SOL_SOCKET, SO_ERROR, &error, &length) != 0)
			error = errno;
		if (error == 0) {
			r->connected = take_socket(r, i);
			return true;
		}
		r->error = error;
		(void)close(take_socket(r, i));
	}
	return false;
}

enum happy_eyeballs_state
happy_eyeballs_continue(struct happy_eyeballs *r, int64_t now_us)
{
	if (check_sockets(r))
		return HAPPY_EYEBALLS_CONNECTED;
	while (r->next < r->addresses && (r->running == 0 || now_us >= r->wake_us)) {
		if (try_next(r))
			return HAPPY_EYEBALLS_CONNECTED;
		r->wake_us = now_us + STAGGER_US;
	}
	if (r->next == r->addresses)
		r->wake_us = CLOCK_NEVER;
	return r->running > 0 ? HAPPY_EYEBALLS_BUSY : HAPPY_EYEBALLS_FAILED;
}

enum happy_eyeballs_state
happy_eyeballs_start(struct happy_eyeballs *r, const struct addrinfo *list, struct watch *owner, int64_t now_us)
{
	r->addresses = r->next = r->running = 0;
	r->connected = -1;
	r->owner = owner;
	r->error = EADDRNOTAVAIL;
	sort_addresses(r, list);
	return happy_eyeballs_continue(r, now_us);
}

void
happy_eyeballs_stop(struct happy_eyeballs *r)
{
	int i;

	for (i = 0; i < r->next; i++) {
		if (r->socket[i].fd >= 0)
			(void)close(take_socket(r, i));
	}
}
