/* SPDX-License-Identifier: MIT */
#include "redis/conn.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "redis/dial.h"
#include "redis/outbox.h"
#include "redis/request.h"

#define PENDING_MAX 64
#define NEVER_SENT UINT64_MAX /* where a request would begin */
#define TAG_LOGIN 0u	      /* AUTH and SELECT; callers' tags start at 1 */

/* BROKEN: err says why; what is pending is delivered as failures, then IDLE. */
enum state {
	IDLE,
	DIALLING,
	CONNECTED,
	BROKEN
};

/* A request whose answer is outstanding, and where in the connection's stream of bytes it begins. */
struct pending {
	unsigned int tag;
	uint64_t start;
};

struct conn {
	struct url url;
	enum state state;
	struct dial dial; /* while DIALLING */
	struct link link; /* while CONNECTED */
	struct parser *parser;
	struct outbox outbox;
	struct pending pending[PENDING_MAX];
	size_t first, count;
	bool answered; /* this connection has brought an answer */
	bool login_failed;
	bool reached; /* the connection was established */
	bool deaf;    /* the server takes no more bytes */
	bool local;   /* it is BROKEN for what this host lacks */
	int64_t dialled_at_us;
	int64_t dial_us; /* what the last connection took to stand; 0: there was none */
	struct err err;	 /* why it is BROKEN, or why the login failed */
};

static void
broken(struct conn *c, const char *what)
{
	(void)err_set(&c->err, ST_NO_QUORUM, "%s", what);
	c->state = BROKEN;
}

static void
broken_locally(struct conn *c, const char *what)
{
	broken(c, what);
	c->local = true;
}

/* -- Sending ---------------------------------------------------------------- */

static void
await(struct conn *c, unsigned int tag, uint64_t begins)
{
	if (c->count < PENDING_MAX)
		c->pending[(c->first + c->count++) % PENDING_MAX] = (struct pending){ tag, begins };
}

static void
queue_bytes(struct conn *c, unsigned int tag, const char *bytes, size_t length)
{
	const uint64_t begins = c->outbox.given;

	if (c->count == PENDING_MAX)
		broken(c, "too many requests without an answer");
	else if (bytes == NULL || !outbox_add(&c->outbox, bytes, length)) {
		await(c, tag, NEVER_SENT);
		broken_locally(c, OUT_OF_MEMORY);
	} else
		await(c, tag, begins);
}

static void
queue_login_command(struct conn *c, const struct request *r)
{
	size_t length = 0;
	char *bytes = request_encode(r, &length);

	queue_bytes(c, TAG_LOGIN, bytes, length);
	free(bytes);
}

static void
queue_login(struct conn *c)
{
	struct request r;

	if (c->url.password[0] != '\0') {
		request_begin(&r, "AUTH");
		if (c->url.user[0] != '\0')
			request_add(&r, c->url.user);
		request_add(&r, c->url.password);
		queue_login_command(c, &r);
	}
	if (c->url.db != 0) {
		request_begin(&r, "SELECT");
		request_add_number(&r, c->url.db);
		queue_login_command(c, &r);
	}
}

/* What can't be written any more may have been answered all the same (a server that refuses us says why): read on. */
static void
write_out(struct conn *c)
{
	const enum link_result result = outbox_write(&c->outbox, &c->link);

	c->deaf = result == LINK_CLOSED || result == LINK_FAILED;
}

/* -- Connecting ------------------------------------------------------------- */

/* Close everything; what is pending stays, to be delivered as failed. */
static void
hang_up(struct conn *c)
{
	dial_stop(&c->dial);
	link_close(&c->link);
	parser_free(c->parser);
	c->parser = NULL;
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
		c->local = c->dial.local;
		c->login_failed = c->dial.denied;
		break;
	case DIAL_CONNECTED:
		c->link = dial_take(&c->dial);
		dial_stop(&c->dial);
		c->state = CONNECTED;
		c->reached = true;
		c->dial_us = clock_now_us() - c->dialled_at_us;
		write_out(c);
		break;
	}
}

static void
start(struct conn *c)
{
	outbox_clear(&c->outbox);
	c->answered = c->login_failed = c->deaf = c->reached = c->local = false;
	c->parser = parser_new();
	if (c->parser == NULL) {
		broken_locally(c, OUT_OF_MEMORY);
		return;
	}
	queue_login(c);
	if (c->state == BROKEN)
		return;
	c->dialled_at_us = clock_now_us();
	dialled(c, dial_start(&c->dial, &c->url));
}

/* -- Receiving -------------------------------------------------------------- */

static void
closed(struct conn *c)
{
	broken(c,
	    c->answered ? "the server closed the connection" : "the server closed the connection without an answer");
}

static void
failed(struct conn *c)
{
	const int error = errno;
	bool denied = false;

	if (c->link.tls == NULL && err_lack(error) != NULL)
		broken_locally(c, err_lack(error));
	else
		broken(c, c->link.tls != NULL ? tls_fault(c->link.tls, &denied) : strerror(error));
	c->login_failed = c->login_failed || denied;
}

/*
 * Take in what has come; what lies in TLS's own buffer is not told by poll(2).  A server that speaks without being asked could
 * do so for ever, and what it says would be taken for the next answer.
 */
static void
read_in(struct conn *c)
{
	char bytes[4096];
	size_t done = 0;

	do {
		switch (link_read(&c->link, bytes, sizeof(bytes), &done)) {
		case LINK_DONE:
			if (c->count == 0) {
				broken(c, "this is no Redis server (it speaks without being asked)");
				return;
			}
			parser_feed(c->parser, bytes, done);
			break;
		case LINK_LATER:
			return;
		case LINK_CLOSED:
			closed(c);
			return;
		case LINK_FAILED:
			failed(c);
			return;
		}
	} while (link_holds_bytes(&c->link));
}

static struct pending
pop_pending(struct conn *c)
{
	const struct pending p = c->pending[c->first];

	c->first = (c->first + 1) % PENDING_MAX;
	c->count--;
	return p;
}

/* What the server says of AUTH.  One that knows no AUTH repeats what it got, or a part of it. */
static void
quote_login(struct conn *c, const char *text)
{
	char *repeated;

	(void)err_set(&c->err, ST_DENIED, "%s", text);
	if (strncmp(text, "WRONGPASS", 9) == 0 || strncmp(text, "NOAUTH", 6) == 0)
		return; /* Redis's own words, in which a password such as "pass" is none */
	repeated = strstr(c->err.text, "with args beginning");
	if (repeated != NULL)
		*repeated = '\0';
	text_hide(c->err.text, c->url.password);
}

/* AUTH or SELECT were answered.  After an error whatever follows ran as somebody else, or in another database. */
static void
note_login(struct conn *c, const struct reply *reply)
{
	if (reply_kind(reply) == REPLY_ERROR && !c->login_failed) {
		c->login_failed = true;
		quote_login(c, reply_text(reply));
	}
}

static void
deliver_failure(const struct conn *c, struct pending p, struct delivery *d)
{
	d->tag = p.tag;
	d->reply = NULL;
	d->unsent = p.start >= c->outbox.written;
	d->denied = c->login_failed;
	d->broken = c->reached;
	d->local = c->local;
	d->err = c->err;
}

/* Take one reply off the wire.  False if there is none. */
static bool
take_reply(struct conn *c, struct delivery *d)
{
	struct reply *reply;
	struct pending p;

	while (c->count > 0 && (reply = parser_next(c->parser)) != NULL) {
		p = pop_pending(c);
		c->answered = true;
		if (p.tag == TAG_LOGIN) {
			note_login(c, reply);
			reply_free(reply);
			continue;
		}
		if (c->login_failed) {
			deliver_failure(c, p, d);
			reply_free(reply);
		} else
			*d = (struct delivery){ .tag = p.tag, .reply = reply };
		return true;
	}
	if (parser_lacks_memory(c->parser))
		broken_locally(c, OUT_OF_MEMORY);
	else if (parser_fault(c->parser) != NULL)
		broken(c, parser_fault(c->parser));
	return false;
}

bool
conn_take(struct conn *c, struct delivery *d)
{
	struct pending p;

	if (c->state == CONNECTED && take_reply(c, d))
		return true;
	if (c->state != BROKEN)
		return false;
	hang_up(c);
	while (c->count > 0) {
		p = pop_pending(c);
		if (p.tag != TAG_LOGIN) {
			deliver_failure(c, p, d);
			return true;
		}
	}
	c->state = IDLE;
	return false;
}

/* -- The rest -------------------------------------------- */

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

/* Are there bytes that may still be written? */
static bool
has_bytes(const struct conn *c)
{
	return !c->deaf && c->outbox.length > 0;
}

void
conn_close(struct conn *c)
{
	if (c == NULL)
		return;
	if (c->state == CONNECTED && has_bytes(c))
		write_out(c);
	hang_up(c);
	outbox_clear(&c->outbox);
	free(c);
}

void
conn_send(struct conn *c, unsigned int tag, const char *bytes, size_t length)
{
	if (c->state == IDLE)
		start(c);
	if (c->state == BROKEN) {
		await(c, tag, NEVER_SENT); /* its failure is due like those of the requests before it */
		return;
	}
	queue_bytes(c, tag, bytes, length);
	if (c->state == CONNECTED)
		write_out(c);
}

void
conn_send_asking(struct conn *c)
{
	struct request r;

	if (c->state == IDLE)
		start(c);
	request_begin(&r, "ASKING");
	if (c->state != BROKEN)
		queue_login_command(c, &r);
}

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
	return c->state == CONNECTED && has_bytes(c) ? POLLIN | POLLOUT : POLLIN;
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
	if (c->state == CONNECTED && has_bytes(c))
		write_out(c);
	if (c->state == CONNECTED)
		read_in(c);
}

void
conn_break(struct conn *c)
{
	if (c->state == CONNECTED && c->count > 0)
		broken(c, "no answer in time");
}

void
conn_stop_dialling(struct conn *c, bool in_time)
{
	if (c->state == DIALLING)
		broken(c, in_time ? "not waited for" : conn_silence(c));
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
	if (c->state == IDLE || c->deaf)
		return true;
	return c->outbox.length == 0 && (!c->url.secure || c->count == 0);
}

const char *
conn_silence(const struct conn *c)
{
	if (c->state == DIALLING)
		return dial_silence(&c->dial);
	return c->state == CONNECTED ? "no answer in time" : "no connection in time";
}
