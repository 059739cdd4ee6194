/* SPDX-License-Identifier: MIT */
#include "redis/conn.h"

#include <poll.h>
#include <stdlib.h>

#include "base/clock.h"
#include "redis/dial.h"
#include "redis/exchange.h"

/* A connection that nobody used for so long may have been closed meanwhile. */
#define IDLE_US 100000

/* BROKEN: the exchange has failed; what is unanswered is delivered as failures, then IDLE. */
enum state {
	IDLE,
	DIALLING,
	CONNECTED,
	BROKEN
};

struct conn {
	struct url url;
	enum state state;
	struct dial dial; /* while DIALLING */
	struct link link; /* while CONNECTED */
	struct exchange exchange;
	bool reached; /* the connection was established */
	int64_t dialled_at_us;
	bool doubtful;	  /* what is unanswered was asked when nobody had used the connection for a while */
	int64_t asked_us; /* when something was sent for the last time */
	int64_t dial_us;  /* what the last connection took to stand; 0: there was none */
};

/* The exchange may have failed. */
static void
heed(struct conn *c)
{
	if (c->exchange.failed)
		c->state = BROKEN;
}

static void
broken(struct conn *c, const char *what)
{
	exchange_fail(&c->exchange, what);
	c->state = BROKEN;
}

/* -- Connecting ------------------------------------------------------------- */

/* Close everything; what is unanswered stays, to be delivered as failed. */
static void
hang_up(struct conn *c)
{
	dial_stop(&c->dial);
	link_close(&c->link);
	exchange_end(&c->exchange);
}

/* What the dialling has come to. */
static void
dialled(struct conn *c, enum dial_state state)
{
	switch (state) {
	case DIAL_BUSY:
		c->state = DIALLING;
		break;
	case DIAL_FAILED:
		broken(c, c->dial.error);
		c->exchange.local = c->dial.local;
		c->exchange.closed = !c->dial.local;
		c->exchange.denied = c->dial.denied;
		break;
	case DIAL_CONNECTED:
		c->link = dial_take(&c->dial);
		dial_stop(&c->dial);
		c->state = CONNECTED;
		c->reached = true;
		c->dial_us = clock_now_us() - c->dialled_at_us;
		exchange_write(&c->exchange, &c->link);
		break;
	}
}

static void
start(struct conn *c)
{
	c->reached = c->doubtful = false;
	exchange_begin(&c->exchange, &c->url);
	heed(c);
	if (c->state == BROKEN)
		return;
	c->dialled_at_us = clock_now_us();
	dialled(c, dial_start(&c->dial, &c->url));
}

struct conn *
conn_open(const struct url *url)
{
	struct conn *c = calloc(1, sizeof(*c));

	if (c == NULL)
		return NULL;
	c->url = *url;
	c->state = IDLE;
	c->link.fd = -1;
	dial_init(&c->dial);
	return c;
}

void
conn_close(struct conn *c)
{
	if (c == NULL)
		return;
	if (c->state == CONNECTED && exchange_has_bytes(&c->exchange))
		exchange_write(&c->exchange, &c->link);
	hang_up(c);
	outbox_clear(&c->exchange.outbox);
	free(c);
}

/* -- Requests and answers --------------------------------------------------- */

static void
asked(struct conn *c)
{
	heed(c);
	c->asked_us = clock_now_us();
	if (c->state == CONNECTED)
		exchange_write(&c->exchange, &c->link);
}

void
conn_send(struct conn *c, unsigned int tag, const char *bytes, size_t length)
{
	if (c->state == IDLE)
		start(c);
	exchange_ask(&c->exchange, tag, bytes, length);
	asked(c);
}

void
conn_send_request(struct conn *c, unsigned int tag, const struct request *r)
{
	if (c->state == IDLE)
		start(c);
	exchange_ask_request(&c->exchange, tag, r);
	asked(c);
}

void
conn_send_asking(struct conn *c)
{
	if (c->state == IDLE)
		start(c);
	exchange_ask_asking(&c->exchange);
	heed(c);
}

bool
conn_take(struct conn *c, struct delivery *d)
{
	if (c->state == CONNECTED) {
		if (exchange_take(&c->exchange, d)) {
			d->broken = d->reply == NULL;
			d->connection = conn_number(c);
			return true;
		}
		heed(c);
	}
	if (c->state != BROKEN)
		return false;
	hang_up(c);
	if (exchange_take_failure(&c->exchange, d)) {
		d->broken = c->reached;
		return true;
	}
	c->state = IDLE;
	return false;
}

/* -- Waiting ---------------------------------------------------------------- */

int
conn_fd(const struct conn *c)
{
	if (c->state == DIALLING)
		return dial_fd(&c->dial);
	return c->state == CONNECTED ? c->link.fd : -1;
}

short
conn_events(const struct conn *c)
{
	if (c->state == DIALLING)
		return dial_events(&c->dial);
	return c->state == CONNECTED && exchange_has_bytes(&c->exchange) ? POLLIN | POLLOUT : POLLIN;
}

int64_t
conn_wake_us(const struct conn *c)
{
	if (c->state == BROKEN)
		return 0;
	return c->state == DIALLING ? c->dial.wake_us : CLOCK_NEVER;
}

void
conn_handle(struct conn *c, int64_t now_us)
{
	if (c->state == DIALLING) {
		dialled(c, dial_handle(&c->dial, now_us));
		return;
	}
	if (c->state == CONNECTED && exchange_has_bytes(&c->exchange))
		exchange_write(&c->exchange, &c->link);
	if (c->state == CONNECTED) {
		exchange_read(&c->exchange, &c->link);
		heed(c);
	}
}

void
conn_look(struct conn *c)
{
	if (c->state != CONNECTED || c->exchange.count > 0)
		return;
	c->doubtful = clock_now_us() - c->asked_us >= IDLE_US;
	if (!c->doubtful)
		return;
	exchange_read(&c->exchange, &c->link);
	if (c->exchange.failed) {
		hang_up(c);
		c->state = IDLE;
	}
}

/* -- Giving up -------------------------------------------------------------- */

void
conn_break(struct conn *c)
{
	if (c->state == CONNECTED && c->exchange.count > 0)
		broken(c, "no answer in time");
}

void
conn_stop_dialling(struct conn *c, bool in_time)
{
	if (c->state == DIALLING)
		broken(c, in_time ? "not waited for" : conn_silence(c));
}

/* -- What is known of it ---------------------------------------------------- */

int64_t
conn_number(const struct conn *c)
{
	return c->state == CONNECTED ? c->dialled_at_us : 0;
}

bool
conn_is_broken(const struct conn *c)
{
	return c->state == BROKEN;
}

bool
conn_ended(const struct conn *c)
{
	return c->state == IDLE && c->reached;
}

bool
conn_takes_long(const struct conn *c)
{
	return c->url.secure || (c->state == DIALLING && c->dial.by_name);
}

int64_t
conn_dial_us(const struct conn *c)
{
	return c->dial_us;
}

bool
conn_flushed(const struct conn *c)
{
	if (c->state == IDLE || c->exchange.deaf)
		return true;
	return c->exchange.outbox.length == 0 && (c->exchange.count == 0 || !(c->url.secure || c->doubtful));
}

const char *
conn_silence(const struct conn *c)
{
	if (c->state == DIALLING)
		return dial_silence(&c->dial);
	return c->state == CONNECTED ? "no answer in time" : "no connection in time";
}
