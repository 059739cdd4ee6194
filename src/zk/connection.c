/* SPDX-License-Identifier: MIT */
#include "zk/connection.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

#define READ_SIZE 4096

static const struct channel_words words = {
	.refused = "; is ZooKeeper running there?",
	.silent = "; it may have no leader, or too many connections of this host (maxClientCnxns): see dlock doctor",
	.silent_to_tcp = "; it may have no leader, or too many connections of this host (maxClientCnxns), or want TLS "
			 "(zks://): see dlock doctor",
};

/* The limit of a packet bounds the buffer. */
static void
ready(void *context, int64_t now_us)
{
	struct connection *const c = context;
	struct channel *const channel = &c->channel;
	void *grown;

	channel_go_on(channel, now_us);
	if (channel->state != CHANNEL_OPEN || channel->failure.kind != NO_FAILURE)
		return;
	grown = array_room(c->in, c->in_length + READ_SIZE, &c->in_capacity, 1);
	if (grown == NULL) {
		channel_fail(channel, LOCAL, OUT_OF_MEMORY);
		return;
	}
	c->in = grown;
	c->in_length += channel_read(channel, (char *)c->in + c->in_length, READ_SIZE);
}

void
connection_init(struct connection *c, struct loop *loop)
{
	memset(c, 0, sizeof(*c));
	c->loop = loop;
	channel_init(&c->channel, loop, &words, ready, c);
}

void
connection_close(struct connection *c)
{
	channel_close(&c->channel);
	free(c->in);
	c->in = NULL;
	c->in_length = c->in_capacity = c->in_taken = 0;
}

/* ZK_OK: it works. */
static enum zk_code
state_of(struct connection *c)
{
	const struct failure *const failure = &c->channel.failure;

	if (failure->kind == NO_FAILURE)
		return c->channel.state == CHANNEL_CLOSED ? ZK_CONNECTION_LOSS : ZK_OK;
	c->reason = failure->reason;
	if (failure->kind == LOCAL)
		return ZK_LOCAL;
	return failure->kind == DENIED ? ZK_REFUSED : ZK_CONNECTION_LOSS;
}

enum zk_code
connection_refuse(struct connection *c)
{
	channel_fail(&c->channel, FAILED,
	    "this is not a ZooKeeper server (it answered something else); check the host and the port");
	return state_of(c);
}

bool
connection_works(const struct connection *c)
{
	return c->channel.state == CHANNEL_OPEN && c->channel.failure.kind == NO_FAILURE;
}

/* Run the loop once.  ZK_OK: look again. */
static enum zk_code
turn(struct connection *c, const struct wait *limit)
{
	const enum loop_event event = loop_turn(c->loop, limit);
	const enum zk_code code = state_of(c);

	if (code != ZK_OK || event == LOOP_ACTIVE)
		return code;
	if (event == LOOP_INTERRUPTED)
		return ZK_INTERRUPTED;
	reason_set(&c->reason, "%s", channel_waits_for(&c->channel));
	return ZK_TIMEOUT;
}

enum zk_code
connection_open(struct connection *c, const struct endpoint *endpoint, const struct wait *limit)
{
	enum zk_code code = ZK_OK;

	connection_close(c);
	channel_open(&c->channel, endpoint);
	while (c->channel.state == CHANNEL_CONNECTING && code == ZK_OK)
		code = turn(c, limit);
	if (code != ZK_OK)
		connection_close(c);
	return code;
}

enum zk_code
connection_send(struct connection *c, const struct wire_out *out, const struct wait *limit)
{
	enum zk_code code = state_of(c);

	if (code != ZK_OK)
		return code;
	if (out->failed)
		channel_fail(&c->channel, LOCAL, OUT_OF_MEMORY);
	else if (out->length > 0)
		(void)channel_send(&c->channel, (const char *)out->bytes, out->length);
	code = state_of(c);
	while (c->channel.length > 0 && code == ZK_OK)
		code = turn(c, limit);
	return code;
}

enum zk_code
connection_take(struct connection *c, struct wire_in *packet, const struct wait *limit)
{
	enum zk_code code = ZK_OK;
	int64_t length;

	c->in_length -= c->in_taken;
	if (c->in_taken > 0)
		memmove(c->in, c->in + c->in_taken, c->in_length);
	c->in_taken = 0;
	for (;;) {
		length = wire_frame(c->in, c->in_length, packet);
		if (length > 0) {
			c->in_taken = (size_t)length;
			return ZK_OK;
		}
		if (length < 0)
			(void)connection_refuse(c);
		if (code == ZK_OK)
			code = state_of(c);
		if (code != ZK_OK)
			return code;
		code = turn(c, limit);
	}
}

enum zk_code
connection_ask(struct connection *c, const char *command, char *text, size_t size, const struct wait *limit)
{
	enum zk_code code = ZK_OK;
	size_t length;

	(void)channel_send(&c->channel, command, strlen(command));
	while (code == ZK_OK && c->in_length < size)
		code = turn(c, limit);
	if (code != ZK_OK && code != ZK_CONNECTION_LOSS)
		return code;
	length = c->in_length < size ? c->in_length : size - 1;
	if (length > 0)
		memcpy(text, c->in, length);
	text[length] = '\0';
	return ZK_OK;
}
