/* SPDX-License-Identifier: MIT */
#include "wire.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>

#include "base/clock.h"
#include "base/random.h"
#include "net/channel.h"

enum {
	PEERS = 64,
	FLOOD_MOST = 64 << 20,
	TURNS_MOST = 50000
};

#define EPOCH_US INT64_C(1763749000000000)
#define TURN_US 50

static struct {
	struct input *in;
	void (*request)(void *context, struct peer *, int argc, const struct arg *);
	void *context;
	struct peer peer[PEERS];
	int readable[PEERS + 1];
	int64_t now_us, limit_us;
	uint32_t random;
	bool moved; /* bytes were transferred since the last wait */
	long turns;
	size_t flooded;
} world;

void
wire_begin(struct input *in, void (*request)(void *context, struct peer *, int argc, const struct arg *), void *context)
{
	for (int i = 0; i <= PEERS && world.readable[PEERS] == 0; i++) {
		world.readable[i] = eventfd(1, EFD_CLOEXEC);
		must(world.readable[i] > 0, "no descriptor");
	}
	for (int i = 0; i < PEERS; i++)
		world.peer[i] = (struct peer){ .fd = -1 };
	world.in = in;
	world.request = request;
	world.context = context;
	world.now_us = 1000000;
	world.random = 1;
	world.flooded = 0;
	wire_set_limit(0);
}

void
wire_end(void)
{
	for (int i = 0; i < PEERS; i++)
		must(world.peer[i].fd < 0, "a connection was left open");
}

void
wire_say(struct peer *p, const char *bytes, size_t length)
{
	if (length == 0)
		return;
	p->output = realloc(p->output, p->output_length + length);
	must(p->output != NULL, "no memory");
	memcpy(p->output + p->output_length, bytes, length);
	p->output_length += length;
}

int
wire_readable(void)
{
	return world.readable[PEERS];
}

void
wire_set_limit(int64_t length_us)
{
	world.limit_us = length_us > 0 ? world.now_us + length_us : INT64_MAX;
	world.turns = 0;
}

/* -- The clock -------------------------------------------------------------- */

int64_t
clock_now_us(void)
{
	return world.now_us;
}

int64_t
clock_wall_us(void)
{
	return EPOCH_US + world.now_us;
}

/* Called when all wait. */
struct timespec *
clock_until(int64_t now_us, int64_t until_us, struct timespec *length)
{
	(void)now_us;
	must(world.moved || until_us != CLOCK_NEVER, "it waits for nothing");
	if (world.moved)
		world.now_us += TURN_US;
	else if (until_us > world.now_us)
		world.now_us = until_us;
	must(world.now_us <= world.limit_us, "it takes too long");
	must(++world.turns <= TURNS_MOST, "it goes on without an end");
	world.moved = false;
	*length = (struct timespec){ 0, 0 };
	return length;
}

bool
clock_wait(const struct wait *wait)
{
	struct pollfd fd = { .fd = wait->interrupt_fd, .events = POLLIN };

	return poll(&fd, 1, 0) == 1;
}

int64_t
clock_add(int64_t instant_us, int64_t length_us)
{
	if (instant_us == CLOCK_NEVER || length_us > CLOCK_NEVER - instant_us)
		return CLOCK_NEVER;
	return instant_us + length_us;
}

int64_t
clock_sooner(int64_t a_us, int64_t b_us)
{
	return a_us < b_us ? a_us : b_us;
}

int
clock_alarm_open(void)
{
	return -1;
}

void
clock_alarm_set(int alarm, int64_t at_us)
{
	(void)alarm;
	(void)at_us;
}

/* -- Random numbers, the same in every run ---------------------------------- */

uint32_t
random_u32(void)
{
	world.random = world.random * 1664525 + 1013904223;
	return world.random;
}

bool
random_bytes(void *bytes, size_t length)
{
	unsigned char *at = bytes;

	while (length-- > 0)
		*at++ = (unsigned char)(random_u32() >> 24);
	return true;
}

/* -- Channels --------------------------------------------------------------- */

static struct peer *
peer_of(int fd)
{
	int i;

	for (i = 0; i < PEERS && world.peer[i].fd != fd; i++)
		;
	must(i < PEERS, "a channel to nobody");
	return &world.peer[i];
}

/* Pass all complete requests to the target. */
static void
take_requests(struct peer *p)
{
	struct arg arg[STORE_ARGS];
	long length;
	int argc;

	while (p->sent_length > 0 && (length = resp_read(p->sent, p->sent_length, arg, &argc)) != 0) {
		must(length > 0 && argc > 0, "no request: %.40s", p->sent);
		if (!p->closed)
			world.request(world.context, p, argc, arg);
		p->sent_length -= (size_t)length;
		memmove(p->sent, p->sent + length, p->sent_length);
	}
}

void
channel_init(struct channel *c, struct loop *loop, const struct channel_words *words,
    void (*ready)(void *context, int64_t now_us), void *context)
{
	(void)words;
	memset(c, 0, sizeof(*c));
	c->fd = -1;
	c->alarm_us = CLOCK_NEVER;
	c->watch = (struct watch){ .fd = -1, .at_us = CLOCK_NEVER, .ready = ready, .context = context };
	loop_add(loop, &c->watch);
}

void
channel_fail(struct channel *c, enum failure_kind kind, const char *why)
{
	if (c->failure.kind != NO_FAILURE)
		return;
	failure_set(&c->failure, kind, "%s", why);
	c->failure.connected = c->state == CHANNEL_OPEN;
	c->watch.at_us = 0;
}

static void
fail_closed(struct channel *c, const char *why)
{
	channel_fail(c, FAILED, why);
	c->failure.closed = true;
}

static void
set_watch(struct channel *c)
{
	c->watch.fd = c->fd;
	c->watch.events = c->length > 0 && !c->write_closed ? POLLIN | POLLOUT : POLLIN;
	c->watch.at_us = c->failure.kind != NO_FAILURE ? 0 : c->alarm_us;
}

static void
connect_now(struct channel *c)
{
	struct peer *p;
	int i;

	for (i = 0; i < PEERS && world.peer[i].fd >= 0; i++)
		;
	must(i < PEERS, "too many connections");
	p = &world.peer[i];
	*p = (struct peer){ .fd = world.readable[i], .piece = SIZE_MAX };
	(void)snprintf(p->host, sizeof(p->host), "%s", c->endpoint->host);
	(void)snprintf(p->port, sizeof(p->port), "%s", c->endpoint->port);
	c->fd = p->fd;
	c->state = CHANNEL_OPEN;
	world.moved = true;
	set_watch(c);
}

/* It usually connects at once.  It may also be refused, take a while, or never end. */
void
channel_open(struct channel *c, const struct endpoint *endpoint)
{
	const unsigned int how = input_byte(world.in);

	c->endpoint = endpoint;
	c->state = CHANNEL_CONNECTING;
	c->began_us = world.now_us;
	if (c->failure.kind != NO_FAILURE)
		return;
	if (how < 0xe0)
		connect_now(c);
	else if (how < 0xf0)
		fail_closed(c, "connection refused");
	else
		c->watch.at_us = how < 0xf8 ? world.now_us + (int64_t)(how & 7) * 40000 : CLOCK_NEVER;
}

static void
flush(struct channel *c)
{
	struct peer *const p = peer_of(c->fd);

	if (c->length > 0 && !c->write_closed && p->closed && p->output_at == p->output_length)
		c->write_closed = true;
	else if (c->length > 0 && !c->write_closed) {
		p->sent = realloc(p->sent, p->sent_length + c->length + 1);
		must(p->sent != NULL, "no memory");
		memcpy(p->sent + p->sent_length, c->buffer, c->length);
		p->sent_length += c->length;
		p->sent[p->sent_length] = '\0';
		c->written += c->length;
		c->length = 0;
		take_requests(p);
		world.moved = true;
	}
	set_watch(c);
}

void
channel_go_on(struct channel *c, int64_t now_us)
{
	if (c->failure.kind != NO_FAILURE) {
		c->watch.fd = -1;
		c->watch.at_us = CLOCK_NEVER;
		return;
	}
	if (c->state == CHANNEL_CONNECTING && now_us >= c->watch.at_us)
		connect_now(c);
	if (c->state == CHANNEL_OPEN)
		flush(c);
}

bool
channel_send(struct channel *c, const char *bytes, size_t length)
{
	c->buffer = realloc(c->buffer, c->length + length);
	must(c->buffer != NULL, "no memory");
	memcpy(c->buffer + c->length, bytes, length);
	c->length += length;
	c->queued += length;
	if (c->state == CHANNEL_OPEN && c->failure.kind == NO_FAILURE)
		flush(c);
	return true;
}

size_t
channel_read(struct channel *c, char *bytes, size_t size)
{
	struct peer *const p = peer_of(c->fd);
	size_t left = p->output_length - p->output_at;

	if (left == 0 && p->floods) {
		memset(bytes, '\n', size);
		memcpy(bytes, "+OK\r", 4);
		world.flooded += size;
		must(world.flooded < FLOOD_MOST, "it reads on for ever");
	} else if (left > 0) {
		left = left < size ? left : size;
		size = left < p->piece ? left : p->piece;
		memcpy(bytes, p->output + p->output_at, size);
		p->output_at += size;
	} else {
		if (p->closed)
			fail_closed(c, "the server closed the connection");
		return 0;
	}
	c->received = true;
	c->alarm_us = CLOCK_NEVER;
	world.moved = true;
	set_watch(c);
	return size;
}

const char *
channel_waits_for(const struct channel *c)
{
	return c->state == CHANNEL_OPEN ? "no answer in time" : "no connection in time";
}

const char *
channel_local(const struct channel *c)
{
	(void)c;
	return NULL;
}

void
channel_close(struct channel *c)
{
	struct peer *const p = c->fd >= 0 ? peer_of(c->fd) : NULL;

	if (p != NULL) {
		free(p->sent);
		free(p->output);
		*p = (struct peer){ .fd = -1 };
	}
	free(c->buffer);
	c->buffer = NULL;
	c->length = 0;
	c->queued = c->written = 0;
	c->fd = c->watch.fd = -1;
	c->state = CHANNEL_CLOSED;
	c->failure.kind = NO_FAILURE;
	c->received = c->write_closed = false;
	c->alarm_us = c->watch.at_us = CLOCK_NEVER;
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
	(void)to;
	channel_close(from);
}
