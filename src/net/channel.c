/* SPDX-License-Identifier: MIT */
#include "net/channel.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"

/* -- Failures --------------------------------------------------------------- */

void
channel_fail(struct channel *c, enum failure_kind kind, const char *why)
{
	if (c->failure.kind != NO_FAILURE)
		return;
	failure_set(&c->failure, kind, "%s", why);
	c->failure.connected = c->state == CHANNEL_OPEN;
	c->watch.at_us = 0; /* the owner notices it in the loop */
}

/* The failure is that of the server: it is alive. */
static void
fail_by_server(struct channel *c, const char *why, const char *more)
{
	struct reason whole;

	if (c->failure.kind != NO_FAILURE)
		return;
	reason_set(&whole, "%s%s", why, more);
	channel_fail(c, FAILED, whole.text);
	c->failure.closed = true;
}

static void
fail_by_errno(struct channel *c, int error)
{
	const bool refused = c->state == CHANNEL_CONNECTING && (error == ECONNREFUSED || error == ENOENT);
	const char *const why = error == ECONNREFUSED ? "connection refused"
	    : refused				      ? "there is no such socket"
						      : strerror(error);

	if (err_lack(error) != NULL)
		channel_fail(c, LOCAL, err_lack(error));
	else
		fail_by_server(c, why, refused ? c->words->refused : "");
}

static void
fail_by_tls(struct channel *c)
{
	const struct failure *const why = tls_failure(c->tls);

	fail_by_server(c, why->reason.text, "");
	c->failure.kind = why->kind;
	c->failure.closed = why->kind == FAILED;
}

/* -- Writing and reading ---------------------------------------------------- */

static enum io_result
result_of(ssize_t n, size_t *done)
{
	if (n > 0) {
		*done = (size_t)n;
		return IO_DONE;
	}
	if (n == 0 || errno == ECONNRESET)
		return IO_CLOSED;
	return errno == EAGAIN || errno == EINTR ? IO_WANTS_READ : IO_FAILED;
}

/* poll(2) does not report data in the buffer of the TLS library. */
static void
set_watch(struct channel *c)
{
	c->watch.fd = c->fd;
	c->watch.events = c->length > 0 && !c->write_closed ? POLLIN | POLLOUT : POLLIN;
	c->watch.at_us = c->failure.kind != NO_FAILURE || (c->tls != NULL && tls_has_buffered(c->tls)) ? 0
												       : c->alarm_us;
}

/* A connection is idle most of the time, so an empty buffer is freed. */
static void
free_buffer(struct channel *c)
{
	free(c->buffer);
	c->buffer = NULL;
	c->length = c->capacity = 0;
}

/* After a failed write, continue to read: a server that refuses the connection may have sent the reason. */
static void
flush(struct channel *c)
{
	enum io_result result = IO_DONE;
	size_t done = 0;

	while (c->length > 0 && !c->write_closed) {
		if (c->tls != NULL)
			result = tls_write(c->tls, c->buffer, c->length, &done);
		else
			result = result_of(write(c->fd, c->buffer, c->length), &done);
		if (result != IO_DONE)
			break;
		c->length -= done;
		c->written += done;
		memmove(c->buffer, c->buffer + done, c->length);
	}
	c->write_closed = c->write_closed || result == IO_CLOSED || result == IO_FAILED;
	if (c->length == 0)
		free_buffer(c);
	set_watch(c);
}

/* A TLS library wants bytes that it did not take at once in the same place again, which is the buffer. */
bool
channel_send(struct channel *c, const char *bytes, size_t length)
{
	const bool open = c->state == CHANNEL_OPEN && c->failure.kind == NO_FAILURE;
	size_t done = 0;
	char *grown;

	if (open && c->length == 0 && c->tls == NULL)
		(void)result_of(write(c->fd, bytes, length), &done);
	c->queued += length;
	c->written += done;
	if (done < length) {
		grown = array_room(c->buffer, c->length + length - done, &c->capacity, 1);
		if (grown == NULL) {
			channel_fail(c, LOCAL, OUT_OF_MEMORY);
			return false;
		}
		c->buffer = grown;
		memcpy(c->buffer + c->length, bytes + done, length - done);
		c->length += length - done;
	}
	if (open)
		flush(c);
	return true;
}

size_t
channel_read(struct channel *c, char *bytes, size_t size)
{
	enum io_result result;
	size_t done = 0;

	if (c->tls != NULL)
		result = tls_read(c->tls, bytes, size, &done);
	else
		result = result_of(read(c->fd, bytes, size), &done);
	if (result == IO_CLOSED && c->received)
		fail_by_server(c, "the server closed the connection", "");
	else if (result == IO_CLOSED)
		fail_by_server(c, "the server closed the connection without an answer",
		    c->tls != NULL || c->endpoint->host[0] == '\0' ? c->words->silent : c->words->silent_to_tcp);
	else if (result == IO_FAILED && c->tls != NULL)
		fail_by_tls(c);
	else if (result == IO_FAILED)
		fail_by_errno(c, errno);
	if (done > 0) {
		c->received = true;
		c->alarm_us = CLOCK_NEVER;
	}
	set_watch(c);
	return done;
}

/* -- Connecting ------------------------------------------------------------- */

static void
wait_for(struct channel *c, int fd, short events, int64_t at_us)
{
	c->watch.fd = fd;
	c->watch.events = events;
	c->watch.at_us = at_us;
}

/* The socket is connected: continue with TLS, if it is used. */
static void
shake_hands(struct channel *c)
{
	const enum io_result result = c->tls != NULL ? tls_handshake(c->tls) : IO_DONE;

	if (result == IO_DONE) {
		c->state = CHANNEL_OPEN;
		c->took_us = clock_now_us() - c->began_us;
		set_watch(c);
	} else if (result == IO_CLOSED)
		fail_by_server(c, "the server closed the connection at the TLS handshake; does it speak TLS?", "");
	else if (result == IO_FAILED)
		fail_by_tls(c);
	else
		wait_for(c, c->fd, result == IO_WANTS_READ ? POLLIN : POLLOUT, CLOCK_NEVER);
}

/* Connecting has come to this state.  It waits by itself. */
static void
take_socket(struct channel *c, enum connect_state state)
{
	const struct connecting *const from = &c->connecting;

	if (state == CONNECT_FAILED && from->why == NULL)
		fail_by_errno(c, from->error);
	else if (state == CONNECT_FAILED && from->error != 0)
		channel_fail(c, LOCAL, from->why);
	else if (state == CONNECT_FAILED)
		fail_by_server(c, from->why, "");
	if (state != CONNECT_DONE)
		return;
	c->fd = from->connected;
	connect_stop(&c->connecting);
	if (c->endpoint->tls != NULL)
		c->tls = tls_start(c->endpoint->tls, c->fd, c->endpoint->host);
	if (c->endpoint->tls != NULL && c->tls == NULL)
		channel_fail(c, LOCAL, OUT_OF_MEMORY);
	else
		shake_hands(c);
}

void
channel_open(struct channel *c, const struct endpoint *endpoint)
{
	c->endpoint = endpoint;
	c->state = CHANNEL_CONNECTING;
	c->began_us = clock_now_us();
	if (c->failure.kind == NO_FAILURE)
		take_socket(c, connect_begin(&c->connecting, endpoint, &c->watch));
}

void
channel_go_on(struct channel *c, int64_t now_us)
{
	if (c->failure.kind != NO_FAILURE)
		wait_for(c, -1, 0, CLOCK_NEVER);
	else if (c->state == CHANNEL_CONNECTING && c->tls != NULL)
		shake_hands(c);
	else if (c->state == CHANNEL_CONNECTING)
		take_socket(c, connect_go_on(&c->connecting, now_us));
	if (c->state == CHANNEL_OPEN && c->failure.kind == NO_FAILURE)
		flush(c);
}

const char *
channel_waits_for(const struct channel *c)
{
	if (c->state == CHANNEL_OPEN)
		return "no answer in time";
	if (c->connecting.resolving != NULL)
		return "its name was not resolved in time";
	return c->tls != NULL ? "no TLS handshake in time; does it speak TLS?" : "no connection in time";
}

const char *
channel_local(const struct channel *c)
{
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
		struct sockaddr_storage storage;
	} peer = { .any.sa_family = AF_UNSPEC };
	socklen_t length = sizeof(peer);
	bool four, six;

	if (getpeername(c->fd, &peer.any, &length) != 0)
		return NULL;
	if (peer.any.sa_family == AF_UNIX)
		return "a unix socket";
	four = peer.any.sa_family == AF_INET && ntohl(peer.v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	six = peer.any.sa_family == AF_INET6 &&
	    (IN6_IS_ADDR_LOOPBACK(&peer.v6.sin6_addr) ||
		(IN6_IS_ADDR_V4MAPPED(&peer.v6.sin6_addr) && peer.v6.sin6_addr.s6_addr[12] == IN_LOOPBACKNET));
	return four || six ? "loopback" : NULL;
}

/* -- Beginning and end ------------------------------------------------------ */

void
channel_init(struct channel *c, struct loop *loop, const struct channel_words *words,
    void (*ready)(void *context, int64_t now_us), void *context)
{
	memset(c, 0, sizeof(*c));
	c->words = words;
	c->fd = -1;
	c->alarm_us = CLOCK_NEVER;
	c->watch = (struct watch){ .fd = -1, .at_us = CLOCK_NEVER, .ready = ready, .context = context };
	loop_add(loop, &c->watch);
}

void
channel_close(struct channel *c)
{
	connect_stop(&c->connecting);
	tls_stop(c->tls);
	if (c->fd >= 0)
		(void)close(c->fd);
	c->tls = NULL;
	c->fd = -1;
	c->state = CHANNEL_CLOSED;
	c->failure.kind = NO_FAILURE;
	c->received = c->write_closed = false;
	c->alarm_us = CLOCK_NEVER;
	c->queued = c->written = 0;
	free_buffer(c);
	wait_for(c, -1, 0, CLOCK_NEVER);
}

void
channel_end(struct channel *c)
{
	channel_close(c);
	loop_remove(c->watch.loop, &c->watch);
}

void
channel_move(struct channel *to, struct channel *from)
{
	if (to->state != CHANNEL_CLOSED)
		channel_close(to);
	to->fd = from->fd;
	to->tls = from->tls;
	to->state = CHANNEL_OPEN;
	from->fd = -1;
	from->tls = NULL;
	channel_close(from);
}
