/* SPDX-License-Identifier: MIT */
#include "net/stream.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/array.h"

void
stream_init(struct stream *s)
{
	memset(s, 0, sizeof(*s));
	s->fd = -1;
}

/* -- One read or write ------------------------------------------------------ */

static enum stream_result
result_of(ssize_t n, size_t *done)
{
	if (n > 0) {
		*done = (size_t)n;
		return STREAM_DONE;
	}
	if (n == 0 || errno == ECONNRESET)
		return STREAM_CLOSED;
	return errno == EAGAIN || errno == EINTR ? STREAM_LATER : STREAM_FAILED;
}

static enum stream_result
result_of_tls(enum tls_result result)
{
	switch (result) {
	case TLS_DONE:
		return STREAM_DONE;
	case TLS_CLOSED:
		return STREAM_CLOSED;
	case TLS_FAILED:
		return STREAM_FAILED;
	case TLS_WANTS_READ:
	case TLS_WANTS_WRITE:
		break;
	}
	return STREAM_LATER;
}

enum stream_result
stream_read(const struct stream *s, char *bytes, size_t size, size_t *done)
{
	if (s->tls != NULL)
		return result_of_tls(tls_read(s->tls, bytes, size, done));
	return result_of(read(s->fd, bytes, size), done);
}

/* -- The buffer ------------------------------------------------------------- */

bool
stream_queue(struct stream *s, const char *bytes, size_t length)
{
	char *const grown = array_room(s->buffer, s->length + length, &s->capacity, 1);

	if (grown == NULL)
		return false;
	s->buffer = grown;
	memcpy(s->buffer + s->length, bytes, length);
	s->length += length;
	s->queued += length;
	return true;
}

/* A TLS library wants bytes that it did not take at once in the same place again, which is the buffer. */
bool
stream_send(struct stream *s, const char *bytes, size_t length)
{
	size_t done = 0;

	if (s->length == 0 && s->fd >= 0 && s->tls == NULL)
		(void)result_of(write(s->fd, bytes, length), &done);
	s->queued += done;
	s->written += done;
	return done == length || stream_queue(s, bytes + done, length - done);
}

/* A connection is idle most of the time, so an empty buffer is freed. */
static void
free_buffer(struct stream *s)
{
	free(s->buffer);
	s->buffer = NULL;
	s->length = s->capacity = 0;
}

enum stream_result
stream_write(struct stream *s)
{
	enum stream_result result = STREAM_DONE;
	size_t done = 0;

	while (s->length > 0) {
		if (s->tls != NULL)
			result = result_of_tls(tls_write(s->tls, s->buffer, s->length, &done));
		else
			result = result_of(write(s->fd, s->buffer, s->length), &done);
		if (result != STREAM_DONE)
			break;
		s->length -= done;
		s->written += done;
		memmove(s->buffer, s->buffer + done, s->length);
	}
	if (s->length == 0)
		free_buffer(s);
	return result;
}

bool
stream_has_buffered(const struct stream *s)
{
	return s->tls != NULL && tls_has_buffered(s->tls);
}

const char *
stream_local(const struct stream *s)
{
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
		struct sockaddr_storage storage;
	} peer;
	socklen_t length = sizeof(peer);

	if (getpeername(s->fd, &peer.any, &length) != 0)
		return NULL;
	if (peer.any.sa_family == AF_UNIX)
		return "a unix socket";
	if (peer.any.sa_family == AF_INET && ntohl(peer.v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET)
		return "loopback";
	if (peer.any.sa_family != AF_INET6)
		return NULL;
	return IN6_IS_ADDR_LOOPBACK(&peer.v6.sin6_addr) ||
		(IN6_IS_ADDR_V4MAPPED(&peer.v6.sin6_addr) && peer.v6.sin6_addr.s6_addr[12] == IN_LOOPBACKNET)
	    ? "loopback"
	    : NULL;
}

void
stream_close(struct stream *s)
{
	tls_stop(s->tls);
	if (s->fd >= 0)
		(void)close(s->fd);
	free_buffer(s);
	stream_init(s);
}
