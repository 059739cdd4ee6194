/* SPDX-License-Identifier: MIT */
#include "net/connect.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "net/tls.h"

#define UNIX_RETRY_US 2000 /* retry interval while the listen backlog of the server is full (EAGAIN) */

void
connect_init(struct connecting *c)
{
	memset(c, 0, sizeof(*c));
	c->fd = -1;
}

static enum connect_state
fail(struct connecting *c, const char *error)
{
	c->error = error;
	return CONNECT_FAILED;
}

static enum connect_state
fail_locally(struct connecting *c, const char *error)
{
	c->local = true;
	return fail(c, error);
}

static enum connect_state
fail_by_errno(struct connecting *c, int error)
{
	if (err_lack(error) != NULL)
		return fail_locally(c, err_lack(error));
	c->refused = error == ECONNREFUSED || error == ENOENT;
	if (error == ECONNREFUSED)
		return fail(c, "connection refused");
	return fail(c, error == ENOENT ? "there is no such socket" : strerror(error));
}

static enum connect_state
wait_for(struct connecting *c, int fd, short events, int64_t at_us)
{
	c->watch->fd = fd;
	c->watch->events = events;
	c->watch->at_us = at_us;
	return CONNECT_PENDING;
}

/* -- TLS -------------------------------------------------------------------- */

static enum connect_state
shake_hands(struct connecting *c)
{
	switch (tls_handshake(c->tls)) {
	case TLS_DONE:
		return CONNECT_DONE;
	case TLS_WANTS_READ:
		return wait_for(c, c->fd, POLLIN, CLOCK_NEVER);
	case TLS_WANTS_WRITE:
		return wait_for(c, c->fd, POLLOUT, CLOCK_NEVER);
	case TLS_CLOSED:
		return fail(c, "the server closed the connection at the TLS handshake; does it speak TLS?");
	case TLS_FAILED:
		break;
	}
	return fail(c, tls_error(c->tls, &c->denied));
}

static enum connect_state
connected(struct connecting *c, int fd)
{
	c->fd = fd;
	happy_eyeballs_stop(&c->sockets);
	if (c->endpoint->tls == NULL)
		return CONNECT_DONE;
	c->tls = tls_start(c->endpoint->tls, fd, c->endpoint->host);
	return c->tls != NULL ? shake_hands(c) : fail_locally(c, OUT_OF_MEMORY);
}

/* -- Sockets ---------------------------------------------------------------- */

static enum connect_state
connect_unix(struct connecting *c)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const size_t length = strlen(c->endpoint->path) + 1;
	const int fd = connect_socket(AF_UNIX);
	int error;

	if (fd < 0)
		return fail_by_errno(c, errno);
	memcpy(address.sun_path, c->endpoint->path, length);
	if (connect(fd, (const struct sockaddr *)&address,
		(socklen_t)(offsetof(struct sockaddr_un, sun_path) + length)) == 0)
		return connected(c, fd);
	error = errno;
	(void)close(fd);
	if (error != EAGAIN)
		return fail_by_errno(c, error);
	return wait_for(c, -1, 0, clock_now_us() + UNIX_RETRY_US);
}

static enum connect_state
after_sockets(struct connecting *c, enum happy_eyeballs_state state)
{
	int fd;

	switch (state) {
	case HAPPY_EYEBALLS_CONNECTED:
		fd = c->sockets.connected;
		c->sockets.connected = -1;
		return connected(c, fd);
	case HAPPY_EYEBALLS_FAILED:
		return fail_by_errno(c, c->sockets.error);
	case HAPPY_EYEBALLS_BUSY:
		break;
	}
	return wait_for(c, -1, 0, c->sockets.wake_us);
}

static enum connect_state
take_addresses(struct connecting *c, int64_t now_us)
{
	const int code = resolve_result(c->resolving, &c->addresses);

	resolve_cancel(c->resolving);
	c->resolving = NULL;
	if (code == EAI_MEMORY)
		return fail_locally(c, OUT_OF_MEMORY);
	if (code != 0)
		return fail(c, code == EAI_SYSTEM ? "the name cannot be resolved" : gai_strerror(code));
	return after_sockets(c, happy_eyeballs_start(&c->sockets, c->addresses, c->watch, now_us));
}

/* -- The whole -------------------------------------------------------------- */

enum connect_state
connect_start(struct connecting *c, const struct endpoint *endpoint, struct watch *watch)
{
	connect_init(c);
	c->endpoint = endpoint;
	c->watch = watch;
	if (endpoint->host[0] == '\0')
		return connect_unix(c);
	c->addresses = resolve_numeric(endpoint->host, endpoint->port);
	if (c->addresses != NULL)
		return after_sockets(c, happy_eyeballs_start(&c->sockets, c->addresses, watch, clock_now_us()));
	c->by_name = true;
	c->resolving = resolve_start(endpoint->host, endpoint->port);
	if (c->resolving != NULL)
		return wait_for(c, resolve_fd(c->resolving), POLLIN, CLOCK_NEVER);
	return errno == EAGAIN ? fail_locally(c, "this host cannot create a thread to resolve its name")
			       : fail_by_errno(c, errno);
}

enum connect_state
connect_continue(struct connecting *c, int64_t now_us)
{
	if (c->resolving != NULL)
		return take_addresses(c, now_us);
	if (c->tls != NULL)
		return shake_hands(c);
	if (c->endpoint->host[0] == '\0')
		return now_us >= c->watch->at_us ? connect_unix(c) : CONNECT_PENDING;
	return after_sockets(c, happy_eyeballs_continue(&c->sockets, now_us));
}

const char *
connect_waits_for(const struct connecting *c)
{
	if (c->resolving != NULL)
		return "its name was not resolved in time";
	return c->tls != NULL ? "no TLS handshake in time; does it speak TLS?" : "no connection in time";
}

void
connect_stop(struct connecting *c)
{
	resolve_cancel(c->resolving);
	happy_eyeballs_stop(&c->sockets);
	tls_stop(c->tls);
	if (c->fd >= 0)
		(void)close(c->fd);
	if (c->addresses != NULL)
		freeaddrinfo(c->addresses);
	c->resolving = NULL;
	c->tls = NULL;
	c->fd = -1;
	c->addresses = NULL;
}
