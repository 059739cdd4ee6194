/* SPDX-License-Identifier: MIT */
#include "zk/connection.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/err.h"

#define READ_SIZE 4096

/* -- Failures --------------------------------------------------------------- */

static void
break_off(struct connection *c, enum zk_code code, const char *why)
{
	if (c->broken != ZK_OK)
		return;
	c->broken = code;
	c->watch.fd = -1;
	reason_set(&c->reason, "%s", why);
}

static void
break_by_connecting(struct connection *c)
{
	const struct connecting *const failed = &c->connecting;

	reason_set(&c->reason, "%s%s", failed->error, failed->refused ? "; is ZooKeeper running there?" : "");
	c->broken = failed->local ? ZK_LOCAL : failed->denied ? ZK_REFUSED : ZK_CONNECTION_LOSS;
	c->watch.fd = -1;
	c->watch.at_us = CLOCK_NEVER;
}

/* A server that closes its door says nothing of why. */
static const char *
closed(const struct connection *c)
{
	if (c->answered)
		return "the server closed the connection";
	if (c->stream.tls != NULL)
		return "the server closed the connection without an answer; it may have no leader, or too many "
		       "connections of this host (maxClientCnxns): see dlock doctor";
	return "the server closed the connection without an answer; it may have no leader, or too many connections of "
	       "this host (maxClientCnxns), or want TLS (zks://): see dlock doctor";
}

static void
break_by_stream(struct connection *c)
{
	const int error = errno;
	const char *why;
	bool denied = false;

	if (c->stream.tls != NULL) {
		why = tls_error(c->stream.tls, &denied);
		break_off(c, denied ? ZK_REFUSED : ZK_CONNECTION_LOSS, why);
	} else if (err_lack(error) != NULL)
		break_off(c, ZK_LOCAL, err_lack(error));
	else if (error == EPIPE || error == ECONNRESET)
		break_off(c, ZK_CONNECTION_LOSS, closed(c));
	else
		break_off(c, ZK_CONNECTION_LOSS, strerror(error));
}

/* -- The loop --------------------------------------------------------------- */

static void
after_connecting(struct connection *c, enum connect_state state)
{
	switch (state) {
	case CONNECT_PENDING:
		return;
	case CONNECT_FAILED:
		break_by_connecting(c);
		return;
	case CONNECT_DONE:
		break;
	}
	c->stream.fd = c->connecting.fd;
	c->stream.tls = c->connecting.tls;
	c->connecting.fd = -1;
	c->connecting.tls = NULL;
	connect_stop(&c->connecting);
	c->open = true;
	c->watch = (struct watch){ .fd = c->stream.fd,
		.events = POLLIN,
		.at_us = CLOCK_NEVER,
		.ready = c->watch.ready,
		.context = c,
		.next = c->watch.next,
		.polled = c->watch.polled };
}

/* After a failed write, reading may still tell why. */
static void
write_bytes(struct connection *c)
{
	if (c->stream.length > 0 && stream_write(&c->stream) == STREAM_FAILED)
		break_by_stream(c);
	c->watch.events = c->stream.length > 0 ? POLLIN | POLLOUT : POLLIN;
}

/* Read once, or under TLS as long as the library holds bytes.  The limit of a packet bounds the buffer. */
static void
read_bytes(struct connection *c)
{
	size_t done = 0;
	void *grown;

	do {
		grown = array_room(c->in, c->in_length + READ_SIZE, &c->in_capacity, 1);
		if (grown == NULL) {
			break_off(c, ZK_LOCAL, OUT_OF_MEMORY);
			return;
		}
		c->in = grown;
		switch (stream_read(&c->stream, (char *)c->in + c->in_length, READ_SIZE, &done)) {
		case STREAM_DONE:
			c->in_length += done;
			c->answered = true;
			break;
		case STREAM_LATER:
			return;
		case STREAM_CLOSED:
			break_off(c, ZK_CONNECTION_LOSS, closed(c));
			return;
		case STREAM_FAILED:
			break_by_stream(c);
			return;
		}
	} while (stream_has_buffered(&c->stream) && c->in_length <= WIRE_FRAME_MAX);
}

static void
ready(void *context, int64_t now_us)
{
	struct connection *c = context;

	if (c->broken != ZK_OK)
		return;
	if (!c->open) {
		after_connecting(c, connect_continue(&c->connecting, now_us));
		return;
	}
	read_bytes(c);
	write_bytes(c);
}

/* Run the loop once.  ZK_OK: look again. */
static enum zk_code
turn(struct connection *c, const struct wait *limit, const char *waits_for)
{
	switch (loop_turn(c->loop, limit->until_us, limit->interrupt_fd)) {
	case LOOP_INTERRUPTED:
		return ZK_INTERRUPTED;
	case LOOP_TIME:
		reason_set(&c->reason, "%s", waits_for);
		return ZK_TIMEOUT;
	case LOOP_ACTIVE:
		break;
	}
	return ZK_OK;
}

/* -- The functions ---------------------------------------------------------- */

void
connection_init(struct connection *c, struct loop *loop)
{
	memset(c, 0, sizeof(*c));
	c->loop = loop;
	connect_init(&c->connecting);
	stream_init(&c->stream);
	c->broken = ZK_CONNECTION_LOSS;
}

void
connection_close(struct connection *c)
{
	if (c->watch.ready != NULL)
		loop_remove(c->loop, &c->watch);
	c->watch.ready = NULL;
	connect_stop(&c->connecting);
	stream_close(&c->stream);
	free(c->in);
	c->in = NULL;
	c->in_length = c->in_capacity = c->in_taken = 0;
	c->open = false;
	c->broken = ZK_CONNECTION_LOSS;
}

enum zk_code
connection_open(struct connection *c, const struct endpoint *endpoint, const struct wait *limit)
{
	enum zk_code code = ZK_OK;

	connection_close(c);
	c->watch = (struct watch){ .fd = -1, .at_us = CLOCK_NEVER, .ready = ready, .context = c };
	loop_add(c->loop, &c->watch);
	c->broken = ZK_OK;
	c->answered = false;
	after_connecting(c, connect_start(&c->connecting, endpoint, &c->watch));
	while (!c->open && c->broken == ZK_OK && code == ZK_OK)
		code = turn(c, limit, connect_waits_for(&c->connecting));
	if (c->broken != ZK_OK)
		code = c->broken;
	if (code != ZK_OK)
		connection_close(c);
	return code;
}

enum zk_code
connection_send(struct connection *c, const struct wire_out *out, const struct wait *limit)
{
	enum zk_code code = ZK_OK;

	if (c->broken != ZK_OK)
		return c->broken;
	if (out->failed || (out->length > 0 && !stream_queue(&c->stream, (const char *)out->bytes, out->length))) {
		reason_set(&c->reason, "%s", OUT_OF_MEMORY);
		return ZK_LOCAL;
	}
	write_bytes(c);
	while (c->stream.length > 0 && c->broken == ZK_OK && code == ZK_OK)
		code = turn(c, limit, "no answer in time");
	return c->broken != ZK_OK ? c->broken : code;
}

/* Discard the packet that was taken last. */
static void
forget_taken(struct connection *c)
{
	c->in_length -= c->in_taken;
	if (c->in_taken > 0)
		memmove(c->in, c->in + c->in_taken, c->in_length);
	c->in_taken = 0;
}

enum zk_code
connection_take(struct connection *c, struct wire_in *packet, const struct wait *limit)
{
	enum zk_code code = ZK_OK;
	int64_t length;

	forget_taken(c);
	for (;;) {
		length = wire_frame(c->in, c->in_length, packet);
		if (length > 0) {
			c->in_taken = (size_t)length;
			return ZK_OK;
		}
		if (length < 0)
			break_off(c, ZK_CONNECTION_LOSS, NOT_ZOOKEEPER);
		if (c->broken != ZK_OK || code != ZK_OK)
			return c->broken != ZK_OK ? c->broken : code;
		code = turn(c, limit, "no answer in time");
	}
}

enum zk_code
connection_ask(struct connection *c, const char *command, char *text, size_t size, const struct wait *limit)
{
	enum zk_code code = ZK_OK;
	size_t length;

	if (!stream_queue(&c->stream, command, strlen(command)))
		return ZK_LOCAL;
	write_bytes(c);
	while (c->broken == ZK_OK && code == ZK_OK && c->in_length < size)
		code = turn(c, limit, "no answer in time");
	if (code != ZK_OK)
		return code;
	length = c->in_length < size ? c->in_length : size - 1;
	if (length > 0)
		memcpy(text, c->in, length);
	text[length] = '\0';
	return ZK_OK;
}
