/* SPDX-License-Identifier: MIT */
#include "wire.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>

#include "base/clock.h"
#include "base/random.h"
#include "redis/dial.h"
#include "redis/link.h"

enum {
	PEERS = 64,
	FLOOD_MOST = 64 << 20,
	TURNS_MOST = 50000
};

#define EPOCH_US INT64_C(1763749000000000)
#define TURN_US 50

static struct {
	struct input *in;
	void (*request)(void *context, struct peer *, const struct wire_request *);
	void *context;
	struct peer peer[PEERS];
	int readable[PEERS + 1];
	int64_t now_us, limit_us;
	uint32_t random;
	bool moved; /* bytes have moved since everybody waited */
	long turns;
	size_t flooded;
} world;

void
wire_begin(struct input *in, void (*request)(void *context, struct peer *, const struct wire_request *), void *context)
{
	int i;

	for (i = 0; i <= PEERS && world.readable[PEERS] == 0; i++) {
		world.readable[i] = eventfd(1, EFD_CLOEXEC);
		must(world.readable[i] > 0, "no descriptor");
	}
	for (i = 0; i < PEERS; i++)
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
	int i;

	for (i = 0; i < PEERS; i++)
		must(world.peer[i].fd < 0, "a connection was left open");
}

void
wire_say(struct peer *p, const char *bytes, size_t length)
{
	if (length == 0)
		return;
	p->said = realloc(p->said, p->said_length + length);
	must(p->said != NULL, "no memory");
	memcpy(p->said + p->said_length, bytes, length);
	p->said_length += length;
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

/* Called where everybody waits. */
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

/* -- Dialling --------------------------------------------------------------- */

void
dial_init(struct dial *d)
{
	memset(d, 0, sizeof(*d));
	d->link.fd = -1;
	d->wake_us = CLOCK_NEVER;
}

static enum dial_state
connect_now(struct dial *d)
{
	struct peer *p;
	int i;

	for (i = 0; i < PEERS && world.peer[i].fd >= 0; i++)
		;
	must(i < PEERS, "too many connections");
	p = &world.peer[i];
	*p = (struct peer){ .fd = world.readable[i], .piece = SIZE_MAX };
	(void)snprintf(p->host, sizeof(p->host), "%s", d->url->host);
	(void)snprintf(p->port, sizeof(p->port), "%s", d->url->port);
	d->link = (struct link){ p->fd, NULL };
	world.moved = true;
	return DIAL_CONNECTED;
}

/* Mostly it works, at once; or it is refused, or takes a while, or goes on for ever. */
enum dial_state
dial_start(struct dial *d, const struct url *url)
{
	const unsigned int how = input_byte(world.in);

	dial_init(d);
	d->url = url;
	if (how < 0xe0)
		return connect_now(d);
	if (how < 0xf0) {
		d->error = "connection refused";
		return DIAL_FAILED;
	}
	if (how < 0xf8)
		d->wake_us = world.now_us + (int64_t)(how & 7) * 40000;
	return DIAL_BUSY;
}

enum dial_state
dial_handle(struct dial *d, int64_t now_us)
{
	return now_us < d->wake_us ? DIAL_BUSY : connect_now(d);
}

int
dial_fd(const struct dial *d)
{
	(void)d;
	return -1;
}

short
dial_events(const struct dial *d)
{
	(void)d;
	return 0;
}

const char *
dial_silence(const struct dial *d)
{
	(void)d;
	return "no connection in time";
}

struct link
dial_take(struct dial *d)
{
	const struct link taken = d->link;

	d->link.fd = -1;
	return taken;
}

void
dial_stop(struct dial *d)
{
	link_close(&d->link);
}

/* -- Links ------------------------------------------------------------------ */

static struct peer *
peer_of(const struct link *l)
{
	int i;

	for (i = 0; i < PEERS && world.peer[i].fd != l->fd; i++)
		;
	must(i < PEERS, "a link to nobody");
	return &world.peer[i];
}

/* "*3" or "$12": the number; the line must be there whole, and nothing else. */
static const char *
read_head(const char *at, const char *end, char kind, size_t *number)
{
	const char *line;
	char *digits_end;

	if (at == end || (line = memchr(at, '\n', (size_t)(end - at))) == NULL)
		return NULL;
	must(*at == kind && at[1] >= '0' && at[1] <= '9', "no request: %.40s", at);
	*number = (size_t)strtoul(at + 1, &digits_end, 10);
	must(digits_end + 1 == line && *digits_end == '\r', "no request: %.40s", at);
	return line + 1;
}

/* A whole request at the start; returns how many bytes it has, 0 if it isn't there yet. */
static size_t
read_request(const char *bytes, size_t length, struct wire_request *r, char *copy)
{
	const char *const end = bytes + length;
	const char *at;
	size_t words, size, i;

	at = read_head(bytes, end, '*', &words);
	must(at == NULL || (words > 0 && words <= REQUEST_WORDS), "a request of %zu words", words);
	for (i = 0; at != NULL && i < words; i++) {
		at = read_head(at, end, '$', &size);
		if (at == NULL || (size_t)(end - at) < size + 2)
			return 0;
		must(memcmp(at + size, "\r\n", 2) == 0, "a word that is longer than announced");
		memcpy(copy, at, size);
		copy[size] = '\0';
		r->argv[i] = copy;
		r->length[i] = size;
		copy += size + 1;
		at += size + 2;
	}
	r->argc = (int)words;
	return at != NULL ? (size_t)(at - bytes) : 0;
}

/* Every whole request goes to the target. */
static void
take_requests(struct peer *p)
{
	struct wire_request r;
	char *copy = malloc(p->sent_length + REQUEST_WORDS);
	size_t length;

	must(copy != NULL, "no memory");
	while (p->sent_length > 0 && (length = read_request(p->sent, p->sent_length, &r, copy)) > 0) {
		if (!p->closed)
			world.request(world.context, p, &r);
		p->sent_length -= length;
		memmove(p->sent, p->sent + length, p->sent_length);
	}
	free(copy);
}

enum link_result
link_write(const struct link *l, const char *bytes, size_t length, size_t *done)
{
	struct peer *const p = peer_of(l);

	if (p->closed && p->said_at == p->said_length)
		return LINK_CLOSED;
	p->sent = realloc(p->sent, p->sent_length + length + 1);
	must(p->sent != NULL, "no memory");
	memcpy(p->sent + p->sent_length, bytes, length);
	p->sent_length += length;
	p->sent[p->sent_length] = '\0';
	take_requests(p);
	world.moved = true;
	*done = length;
	return LINK_DONE;
}

enum link_result
link_read(const struct link *l, char *bytes, size_t size, size_t *done)
{
	struct peer *const p = peer_of(l);
	size_t left = p->said_length - p->said_at;

	if (left == 0 && p->floods) {
		memset(bytes, '\n', size);
		memcpy(bytes, "+OK\r", 4);
		world.flooded += size;
		must(world.flooded < FLOOD_MOST, "it reads on for ever");
		*done = size;
	} else if (left > 0) {
		left = left < size ? left : size;
		*done = left < p->piece ? left : p->piece;
		memcpy(bytes, p->said + p->said_at, *done);
		p->said_at += *done;
	} else
		return p->closed ? LINK_CLOSED : LINK_LATER;
	world.moved = true;
	return LINK_DONE;
}

bool
link_holds_bytes(const struct link *l)
{
	(void)l;
	return false;
}

void
link_close(struct link *l)
{
	struct peer *p;

	if (l->fd < 0)
		return;
	p = peer_of(l);
	free(p->sent);
	free(p->said);
	*p = (struct peer){ .fd = -1 };
	l->fd = -1;
}
