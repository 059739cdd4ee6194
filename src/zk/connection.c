/* SPDX-License-Identifier: MIT */
#include "zk/connection.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"

#define READ_SIZE 4096

/* A server that closes its door says nothing of why. */
#define SILENT "; it may have no leader, or too many connections of this host (maxClientCnxns)"

static const struct channel_words words = { .refused = "; is ZooKeeper running there?",
	.silent = SILENT ": see dlock doctor",
	.silent_to_tcp = SILENT ", or want TLS (zks://): see dlock doctor" };

/* ZK_OK while it works, or is being opened; otherwise the reason is noted. */
static enum zk_code
state(struct connection *c)
{
	const struct failure *const f = &c->channel.failure;

	if (f->kind == NO_FAILURE)
		return c->channel.state != CHANNEL_CLOSED ? ZK_OK : ZK_CONNECTION_LOSS;
	c->reason = f->reason;
	return f->kind == LOCAL ? ZK_LOCAL : f->kind == DENIED ? ZK_REFUSED : ZK_CONNECTION_LOSS;
}

bool
connection_works(const struct connection *c)
{
	return c->channel.state == CHANNEL_OPEN && c->channel.failure.kind == NO_FAILURE;
}

/* Read as long as the TLS library holds bytes; the limit of a packet bounds the buffer. */
static void
ready(void *context, int64_t now_us)
{
	struct connection *const c = context;
	const bool was_open = c->channel.state == CHANNEL_OPEN;
	void *grown;

	channel_go_on(&c->channel, now_us);
	if (!was_open || !connection_works(c))
		return;
	grown = array_room(c->in, c->in_length + READ_SIZE, &c->in_capacity, 1);
	if (grown == NULL) {
		channel_fail(&c->channel, LOCAL, OUT_OF_MEMORY);
		return;
	}
	c->in = grown;
	c->in_length += channel_read(&c->channel, (char *)c->in + c->in_length, READ_SIZE);
	c->answered = c->channel.received;
}

/* Run the loop once.  ZK_OK: look again. */
static enum zk_code
turn(struct connection *c, const struct wait *limit, const char *waits_for)
{
	switch (loop_turn(c->loop, limit)) {
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
}

void
connection_close(struct connection *c)
{
	if (c->channel.words != NULL)
		channel_end(&c->channel);
	c->channel.words = NULL;
	free(c->in);
	c->in = NULL;
	c->in_length = c->in_capacity = c->in_taken = 0;
}

enum zk_code
connection_open(struct connection *c, const struct endpoint *endpoint, const struct wait *limit)
{
	enum zk_code code = ZK_OK;

	connection_close(c);
	channel_init(&c->channel, c->loop, &words, ready, c);
	c->answered = false;
	channel_open(&c->channel, endpoint);
	while (c->channel.state != CHANNEL_OPEN && state(c) == ZK_OK && code == ZK_OK)
		code = turn(c, limit, channel_waits_for(&c->channel));
	if (state(c) != ZK_OK)
		code = state(c);
	if (code != ZK_OK)
		connection_close(c);
	return code;
}

enum zk_code
connection_send(struct connection *c, const struct wire_out *out, const struct wait *limit)
{
	enum zk_code code = state(c);

	if (code != ZK_OK)
		return code;
	if (out->failed || (out->length > 0 && !channel_send(&c->channel, (const char *)out->bytes, out->length))) {
		reason_set(&c->reason, "%s", OUT_OF_MEMORY);
		return ZK_LOCAL;
	}
	while (c->channel.length > 0 && state(c) == ZK_OK && code == ZK_OK)
		code = turn(c, limit, "no answer in time");
	return state(c) != ZK_OK ? state(c) : code;
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
			channel_fail(&c->channel, FAILED, NOT_ZOOKEEPER);
		if (state(c) != ZK_OK || code != ZK_OK)
			return state(c) != ZK_OK ? state(c) : code;
		code = turn(c, limit, "no answer in time");
	}
}

enum zk_code
connection_ask(struct connection *c, const char *command, char *text, size_t size, const struct wait *limit)
{
	enum zk_code code = ZK_OK;
	size_t length;

	if (!channel_send(&c->channel, command, strlen(command)))
		return ZK_LOCAL;
	while (state(c) == ZK_OK && code == ZK_OK && c->in_length < size)
		code = turn(c, limit, "no answer in time");
	if (code != ZK_OK)
		return code;
	length = c->in_length < size ? c->in_length : size - 1;
	if (length > 0)
		memcpy(text, c->in, length);
	text[length] = '\0';
	return ZK_OK;
}
