/* SPDX-License-Identifier: MIT */
#include "net/connect.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"

#define STAGGER_US 30000   /* delay before the next address is tried */
#define UNIX_RETRY_US 2000 /* retry interval while the listen backlog of the server is full (EAGAIN) */

/* -- Names ------------------------------------------------------------------ */

/* Shared by the caller and the thread.  The last user frees it. */
struct resolving {
	atomic_int users;
	int fd;		  /* becomes readable when the result is available */
	atomic_bool done; /* set by the thread: from then on the caller may read the two fields below */
	int code;
	struct addrinfo *addresses;
	char port[URL_PORT_SIZE];
	char host[];
};

static void
let_go(struct resolving *r)
{
	if (atomic_fetch_sub(&r->users, 1) != 1)
		return;
	if (r->addresses != NULL)
		freeaddrinfo(r->addresses);
	(void)close(r->fd);
	free(r);
}

static void *
resolve(void *arg)
{
	static const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG };
	struct resolving *r = arg;
	const uint64_t one = 1;

	r->code = getaddrinfo(r->host, r->port, &hints, &r->addresses);
	atomic_store(&r->done, true);
	while (write(r->fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
	let_go(r);
	return NULL;
}

/*
 * Start a detached thread with a small stack.  NULL with errno set if there is no memory, no thread or no descriptor.
 */
static struct resolving *
start_resolving(const struct endpoint *endpoint)
{
	const size_t length = strlen(endpoint->host) + 1;
	struct resolving *r = calloc(1, sizeof(*r) + length);
	pthread_attr_t attributes;
	pthread_t thread;
	int error;

	if (r == NULL)
		return NULL;
	memcpy(r->host, endpoint->host, length);
	memcpy(r->port, endpoint->port, sizeof(r->port));
	atomic_init(&r->users, 2);
	r->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	error = r->fd < 0 ? errno : pthread_attr_init(&attributes);
	if (error == 0) {
		(void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
		(void)pthread_attr_setstacksize(&attributes, 256 * 1024);
		error = pthread_create(&thread, &attributes, resolve, r);
		(void)pthread_attr_destroy(&attributes);
	}
	if (error == 0)
		return r;
	if (r->fd >= 0)
		(void)close(r->fd);
	free(r);
	errno = error;
	return NULL;
}

/* -- Sockets ---------------------------------------------------------------- */

int
connect_socket(int family)
{
	/* An idle connection detects a vanished peer after about half a minute. */
	static const struct {
		int level, name, value;
	} options[] = {
		{ IPPROTO_TCP, TCP_NODELAY, 1 },
		{ SOL_SOCKET, SO_KEEPALIVE, 1 },
		{ IPPROTO_TCP, TCP_KEEPIDLE, 15 },
		{ IPPROTO_TCP, TCP_KEEPINTVL, 5 },
		{ IPPROTO_TCP, TCP_KEEPCNT, 3 },
	};
	const int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	size_t i;

	for (i = 0; i < sizeof(options) / sizeof(options[0]) && fd >= 0 && family != AF_UNIX; i++)
		(void)setsockopt(fd, options[i].level, options[i].name, &options[i].value, sizeof(options[i].value));
	return fd;
}

static enum connect_state
connect_unix(struct connecting *c)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const size_t length = strlen(c->endpoint->path) + 1;
	const int fd = connect_socket(AF_UNIX);

	memcpy(address.sun_path, c->endpoint->path, length);
	if (fd >= 0 &&
	    connect(fd, (const struct sockaddr *)&address,
		(socklen_t)(offsetof(struct sockaddr_un, sun_path) + length)) == 0) {
		c->connected = fd;
		return CONNECT_DONE;
	}
	c->error = errno;
	if (fd >= 0)
		(void)close(fd);
	c->owner->at_us = clock_now_us() + UNIX_RETRY_US;
	return c->error == EAGAIN ? CONNECT_BUSY : CONNECT_FAILED;
}

/* The socket is not pending any more.  Returns it; the caller closes or uses it. */
static int
take_socket(struct connecting *c, int i)
{
	const int fd = c->socket[i].fd;

	loop_remove(c->owner->loop, &c->socket[i]);
	c->socket[i].fd = -1;
	c->running--;
	return fd;
}

static void
socket_ready(void *context, int64_t now_us)
{
	const struct watch *const owner = ((struct connecting *)context)->owner;

	owner->ready(owner->context, now_us);
}

/* Check the pending sockets.  True if one is connected.  Those that failed are closed. */
static bool
check_sockets(struct connecting *c)
{
	struct pollfd fds[ADDRESSES_MAX];
	socklen_t length = sizeof(int);
	int i, error;

	for (i = 0; i < c->next; i++)
		fds[i] = (struct pollfd){ .fd = c->socket[i].fd, .events = POLLOUT };
	if (c->running == 0 || poll(fds, (nfds_t)c->next, 0) <= 0)
		return false;
	for (i = 0; i < c->next; i++) {
		if (fds[i].fd < 0 || fds[i].revents == 0)
			continue;
		error = 0;
		if (getsockopt(fds[i].fd, SOL_SOCKET, SO_ERROR, &error, &length) != 0)
			error = errno;
		if (error == 0) {
			c->connected = take_socket(c, i);
			return true;
		}
		c->error = error;
		(void)close(take_socket(c, i));
	}
	return false;
}

static enum connect_state
go_on_racing(struct connecting *c, int64_t now_us)
{
	const struct addrinfo *a;
	int i, fd;

	if (check_sockets(c))
		return CONNECT_DONE;
	while (c->next < c->addresses && (c->running == 0 || now_us >= c->owner->at_us)) {
		i = c->next++;
		a = c->address[i];
		c->socket[i].fd = -1;
		c->owner->at_us = now_us + STAGGER_US;
		fd = connect_socket(a->ai_family);
		if (fd >= 0 && connect(fd, a->ai_addr, a->ai_addrlen) == 0) {
			c->connected = fd;
			return CONNECT_DONE;
		}
		c->error = errno;
		if (fd >= 0 && c->error == EINPROGRESS) {
			c->socket[i] = (struct watch){ .fd = fd,
				.events = POLLOUT,
				.at_us = CLOCK_NEVER,
				.ready = socket_ready,
				.context = c };
			loop_add(c->owner->loop, &c->socket[i]);
			c->running++;
		} else if (fd >= 0)
			(void)close(fd);
	}
	if (c->next == c->addresses)
		c->owner->at_us = CLOCK_NEVER;
	return c->running > 0 ? CONNECT_BUSY : CONNECT_FAILED;
}

/* The families alternate; the addresses of each stay in the order of the resolver. */
enum connect_state
connect_race(struct connecting *c, const struct addrinfo *list, int64_t now_us)
{
	const struct addrinfo *next[2] = { list, list };
	int other = 0;

	c->error = EADDRNOTAVAIL;
	for (; c->addresses < ADDRESSES_MAX && (next[0] != NULL || next[1] != NULL); other = !other) {
		while (next[other] != NULL && (next[other]->ai_family != list->ai_family) != other)
			next[other] = next[other]->ai_next;
		if (next[other] == NULL)
			continue;
		c->address[c->addresses++] = next[other];
		next[other] = next[other]->ai_next;
	}
	return go_on_racing(c, now_us);
}

/* -- From one to the other -------------------------------------------------- */

enum connect_state
connect_begin(struct connecting *c, const struct endpoint *endpoint, struct watch *owner)
{
	const struct addrinfo numeric = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV };

	memset(c, 0, sizeof(*c));
	c->owner = owner;
	c->endpoint = endpoint;
	c->connected = -1;
	owner->at_us = CLOCK_NEVER;
	if (endpoint->host[0] == '\0')
		return connect_unix(c);
	if (getaddrinfo(endpoint->host, endpoint->port, &numeric, &c->list) == 0)
		return connect_race(c, c->list, clock_now_us());
	c->by_name = true;
	c->resolving = start_resolving(endpoint);
	if (c->resolving == NULL) {
		c->error = errno;
		if (c->error == EAGAIN)
			c->why = "this host cannot create a thread to resolve its name";
		return CONNECT_FAILED;
	}
	owner->fd = c->resolving->fd;
	owner->events = POLLIN;
	return CONNECT_BUSY;
}

enum connect_state
connect_go_on(struct connecting *c, int64_t now_us)
{
	struct resolving *const r = c->resolving;
	int code;

	if (c->addresses > 0)
		return go_on_racing(c, now_us);
	if (r == NULL)
		return connect_unix(c);
	if (!atomic_load(&r->done))
		return CONNECT_BUSY;
	c->owner->fd = -1;
	c->list = r->addresses;
	r->addresses = NULL;
	code = r->code;
	let_go(r);
	c->resolving = NULL;
	if (code == 0)
		return connect_race(c, c->list, now_us);
	c->error = code == EAI_MEMORY ? ENOMEM : 0;
	if (code != EAI_MEMORY)
		c->why = code == EAI_SYSTEM ? "the name cannot be resolved" : gai_strerror(code);
	return CONNECT_FAILED;
}

void
connect_stop(struct connecting *c)
{
	int i;

	if (c->resolving != NULL)
		let_go(c->resolving);
	c->resolving = NULL;
	for (i = 0; i < c->next; i++) {
		if (c->socket[i].fd >= 0)
			(void)close(take_socket(c, i));
	}
	if (c->list != NULL)
		freeaddrinfo(c->list);
	c->list = NULL;
}
