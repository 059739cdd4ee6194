/* SPDX-License-Identifier: MIT */
#include "net.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "arena.h"
#include "event.h"
#include "kernel.h"
#include "server.h"

#define RETRANSMIT_US 200000 /* maximum delay of the TCP retransmission after a partition */

/* Bytes that were sent by one write: in transit, or waiting to be read. */
struct piece {
	struct piece *next;
	struct conn *conn;
	char *bytes;
	size_t length;
};

struct conn {
	struct conn *next; /* list of all connections */
	int process, server;
	int64_t there_us, back_us; /* arrival of the last piece, in each direction */

	/* the process side */
	bool connected, closed, ended, floods;
	int error;
	struct piece *first, **last; /* received */
	size_t read;		     /* bytes of the first piece */

	/* the server side */
	void *state;	/* NULL: not accepted, or closed */
	bool lost;	/* a fault has dropped the bytes in transit to the server */
	bool lost_back; /* the same for bytes from the server */
	bool was_reset; /* the host of the client has sent a reset */
	int64_t used_us;
};

static struct net_plan plan;
static struct chance *chance;
static struct conn *conns;
static int64_t parted_until[PROCESSES][SERVERS], mute_until[SERVERS];
static bool refuses[SERVERS];

void
net_reset(const struct net_plan *p, struct chance *from)
{
	plan = *p;
	chance = from;
	conns = NULL;
	memset(parted_until, 0, sizeof(parted_until));
	memset(mute_until, 0, sizeof(mute_until));
	memset(refuses, 0, sizeof(refuses));
}

/* -- Delays ----------------------------------------------------------------------- */

static int64_t
delay(int server)
{
	const int64_t far = plan.far_us[server];

	if (plan.slow_per_mille > 0 && chance_between(chance, 1, 1000) <= plan.slow_per_mille)
		return far + chance_between(chance, plan.delay_us, plan.slow_us);
	return far + chance_between(chance, plan.delay_us / 2, plan.delay_us * 2);
}

static int64_t
after_partition(int64_t at_us, int64_t until_us)
{
	return at_us < until_us ? until_us + chance_between(chance, 0, RETRANSMIT_US) : at_us;
}

/* When bytes that are sent now arrive at the server: after all earlier ones. */
static int64_t
arrival_there(struct conn *c)
{
	const int64_t at = after_partition(event_now() + delay(c->server), parted_until[c->process][c->server]);

	c->there_us = at > c->there_us ? at : c->there_us + 1;
	return c->there_us;
}

static int64_t
arrival_back(struct conn *c)
{
	const int64_t parted = parted_until[c->process][c->server], mute = mute_until[c->server];
	const int64_t at = after_partition(event_now() + delay(c->server), parted > mute ? parted : mute);

	c->back_us = at > c->back_us ? at : c->back_us + 1;
	return c->back_us;
}

void
net_part(int process, int server, int64_t until_us)
{
	int64_t *until = process < 0 ? &mute_until[server] : &parted_until[process][server];

	if (until_us > *until)
		*until = until_us;
}

/* -- What arrives at the process ---------------------------------------------------- */

/* The connection ends for the process.  Error 0: an orderly close. */
static void
end_here(void *subject, unsigned int error)
{
	struct conn *c = subject;

	if (c->closed || c->ended)
		return;
	c->ended = true;
	c->error = (int)error;
	kernel_wake(c->process);
}

static void
connected(void *subject, unsigned int number)
{
	struct conn *c = subject;

	if (c->closed || c->ended)
		return;
	c->connected = true;
	kernel_wake(c->process);
}

/* The connection ends for the server, by a reset of the client's host or in order. */
static void
end_there(void *subject, unsigned int reset)
{
	struct conn *c = subject;

	if (c->state != NULL)
		(reset ? server_reset : server_end)(c->state);
}

static void
deliver_back(void *subject, unsigned int number)
{
	struct piece *p = subject;
	struct conn *c = p->conn;

	if (c->lost_back || c->ended)
		return;
	if (c->closed) {
		if (!c->was_reset && !kernel_is_killed(c->process))
			event_at(arrival_there(c), end_there, c, true);
		c->was_reset = true;
		return;
	}
	*c->last = p;
	c->last = &p->next;
	kernel_wake(c->process);
}

/* -- Idle connections ----------------------------------------------------------------- */

/* The server closes it, or a middlebox drops it and sends a reset at the next use. */
static void
close_idle(void *subject, unsigned int number)
{
	struct conn *c = subject;

	if (c->state == NULL || c->used_us + plan.idle_us > event_now() || !server_is_idle(c->state))
		return;
	server_end(c->state);
	c->state = NULL;
	if (chance_one_in(chance, 2))
		event_at(arrival_back(c), end_here, c, 0);
}

static void
used(struct conn *c)
{
	c->used_us = event_now();
	if (plan.idle_us > 0)
		event_at(event_now() + plan.idle_us, close_idle, c, 0);
}

/* -- What arrives at the server ----------------------------------------------------- */

static void
arrive_there(void *subject, unsigned int number)
{
	struct conn *c = subject;

	if (refuses[c->server]) {
		event_at(arrival_back(c), end_here, c, ECONNREFUSED);
		return;
	}
	c->state = server_accept(c->server, c);
	used(c);
	event_at(arrival_back(c), connected, c, 0);
}

static void
deliver_there(void *subject, unsigned int number)
{
	const struct piece *p = subject;
	struct conn *c = p->conn;

	if (c->lost)
		return;
	if (c->state == NULL)
		event_at(arrival_back(c), end_here, c, ECONNRESET);
	else {
		used(c);
		server_take(c->state, p->bytes, p->length);
	}
}

/* -- The process side ----------------------------------------------------------------- */

struct conn *
net_connect(int process, const struct sockaddr *address)
{
	struct conn *c = arena_alloc(sizeof(*c));
	struct sockaddr_in in;

	memcpy(&in, address, sizeof(in));
	c->process = process;
	c->server = (int)(ntohl(in.sin_addr.s_addr) & 0xff) - 1;
	c->last = &c->first;
	c->next = conns;
	conns = c;
	event_at(arrival_there(c), arrive_there, c, 0);
	return c;
}

short
net_events(const struct conn *c)
{
	if (c->ended)
		return c->error != 0 ? POLLIN | POLLOUT | POLLERR : POLLIN | POLLOUT;
	return (short)((c->connected ? POLLOUT : 0) | (c->first != NULL || c->floods ? POLLIN : 0));
}

int
net_error(const struct conn *c)
{
	return c->error;
}

ssize_t
net_read(struct conn *c, char *bytes, size_t size)
{
	struct piece *p = c->first;
	size_t n;

	if (p == NULL && c->floods && !c->ended) {
		memset(bytes, '\n', size);
		memcpy(bytes, "+OK\r", size < 4 ? size : 4);
		return (ssize_t)size;
	}
	if (p == NULL) {
		errno = c->ended ? c->error : EAGAIN;
		return c->ended && c->error == 0 ? 0 : -1;
	}
	n = p->length - c->read < size ? p->length - c->read : size;
	memcpy(bytes, p->bytes + c->read, n);
	c->read += n;
	if (c->read == p->length) {
		c->first = p->next;
		c->read = 0;
		if (c->first == NULL)
			c->last = &c->first;
	}
	return (ssize_t)n;
}

/* The number of bytes that this write accepts, which may be a part. */
static size_t
torn(size_t length)
{
	if (length < 2 || plan.torn_per_mille == 0 || chance_between(chance, 1, 1000) > plan.torn_per_mille)
		return length;
	return (size_t)chance_between(chance, 1, (int64_t)length - 1);
}

static struct piece *
new_piece(struct conn *c, const char *bytes, size_t length)
{
	struct piece *p = arena_alloc(sizeof(*p));

	p->conn = c;
	p->bytes = arena_copy(bytes, length);
	p->length = length;
	return p;
}

ssize_t
net_write(struct conn *c, const char *bytes, size_t length)
{
	const size_t n = torn(length);

	if (c->ended) {
		errno = c->error != 0 ? c->error : EPIPE;
		return -1;
	}
	event_at(arrival_there(c), deliver_there, new_piece(c, bytes, n), 0);
	return (ssize_t)n;
}

/* The kernel closes the connection, or resets it if there are unread bytes. */
void
net_close(struct conn *c)
{
	if (c->closed)
		return;
	c->closed = true;
	if (c->ended)
		return;
	c->was_reset = c->first != NULL;
	event_at(arrival_there(c), end_there, c, c->was_reset);
}

/* -- The server side ------------------------------------------------------------------ */

int
net_client(const struct conn *c)
{
	return c->process;
}

void
net_reply(struct conn *c, const char *bytes, size_t length)
{
	const size_t n = torn(length);

	used(c);
	event_at(arrival_back(c), deliver_back, new_piece(c, bytes, n), 0);
	if (n < length)
		event_at(arrival_back(c), deliver_back, new_piece(c, bytes + n, length - n), 0);
}

void
net_flood(struct conn *c)
{
	c->floods = true;
	kernel_wake(c->process);
}

void
net_cut(int server)
{
	struct conn *c;

	for (c = conns; c != NULL; c = c->next) {
		if (c->server != server || c->state == NULL)
			continue;
		c->lost = chance_one_in(chance, 2);
		c->lost_back = chance_one_in(chance, 2);
		event_at(arrival_back(c), end_here, c, c->lost_back ? ECONNRESET : 0);
		if (c->lost)
			server_reset(c->state);
		else
			event_at(c->there_us, end_there, c, false);
	}
}

void
net_refuse(int server, bool refused)
{
	struct conn *c;

	refuses[server] = refused;
	for (c = conns; c != NULL && refused; c = c->next) {
		if (c->server == server)
			c->state = NULL;
	}
}
