/* SPDX-License-Identifier: MIT */
#include "redis/node.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "redis/dial.h"
#include "redis/outbox.h"

#define PENDING_MAX 64
#define TAG_LOGIN 0u /* AUTH and SELECT; callers' tags start at 1 */

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

struct node {
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
	bool reached;	/* the connection was established */
	bool deaf;	/* the server takes no more bytes */
	struct err err; /* why it is BROKEN, or why the login failed */
};

static void
broken(struct node *n, const char *what)
{
	(void)err_set(&n->err, ST_NO_QUORUM, "%s", what);
	n->state = BROKEN;
}

/* -- Sending ---------------------------------------------------------------- */

static void
queue_command(struct node *n, unsigned int tag, int argc, const char *const *argv, const size_t *length)
{
	const struct pending p = { tag, n->outbox.given };

	if (n->count == PENDING_MAX)
		broken(n, "too many requests without an answer");
	else if (!outbox_add(&n->outbox, argc, argv, length))
		broken(n, "out of memory");
	else
		n->pending[(n->first + n->count++) % PENDING_MAX] = p;
}

static void
queue_words(struct node *n, const char *command, const char *first, const char *second)
{
	const char *const argv[3] = { command, first, second };
	const size_t length[3] = { strlen(command), strlen(first), second != NULL ? strlen(second) : 0 };

	queue_command(n, TAG_LOGIN, second != NULL ? 3 : 2, argv, length);
}

static void
queue_login(struct node *n)
{
	char db[16];

	if (n->url.password[0] != '\0' && n->url.user[0] != '\0')
		queue_words(n, "AUTH", n->url.user, n->url.password);
	else if (n->url.password[0] != '\0')
		queue_words(n, "AUTH", n->url.password, NULL);
	if (n->url.db != 0) {
		(void)snprintf(db, sizeof(db), "%d", n->url.db);
		queue_words(n, "SELECT", db, NULL);
	}
}

/* What can't be written any more may have been answered all the same (a server that refuses us says why): read on. */
static void
write_out(struct node *n)
{
	const enum link_result result = outbox_write(&n->outbox, &n->link);

	n->deaf = result == LINK_CLOSED || result == LINK_FAILED;
}

/* -- Connecting ------------------------------------------------------------- */

/* Close everything; what is pending stays, to be delivered as failed. */
static void
hang_up(struct node *n)
{
	dial_stop(&n->dial);
	link_close(&n->link);
	parser_free(n->parser);
	n->parser = NULL;
}

/* What the dialling has come to. */
static void
dialled(struct node *n, enum dial_state state)
{
	switch (state) {
	case DIAL_BUSY:
		n->state = DIALLING;
		break;
	case DIAL_FAILED:
		broken(n, n->dial.error);
		n->login_failed = n->dial.denied;
		break;
	case DIAL_CONNECTED:
		n->link = dial_take(&n->dial);
		dial_stop(&n->dial);
		n->state = CONNECTED;
		n->reached = true;
		write_out(n);
		break;
	}
}

static void
start(struct node *n)
{
	outbox_clear(&n->outbox);
	n->answered = n->login_failed = n->deaf = n->reached = false;
	n->parser = parser_new();
	if (n->parser == NULL) {
		broken(n, "out of memory");
		return;
	}
	queue_login(n);
	if (n->state == BROKEN)
		return;
	dialled(n, dial_start(&n->dial, &n->url));
}

/* -- Receiving -------------------------------------------------------------- */

static void
closed(struct node *n)
{
	broken(n,
	    n->answered ? "the server closed the connection" : "the server closed the connection without an answer");
}

static void
failed(struct node *n)
{
	const int error = errno;
	bool denied = false;

	broken(n, n->link.tls != NULL ? tls_fault(n->link.tls, &denied) : strerror(error));
	n->login_failed = n->login_failed || denied;
}

/* Take in what has come; what lies in TLS's own buffer is not told by poll(2). */
static void
read_in(struct node *n)
{
	char bytes[16 * 1024];
	size_t done = 0;

	do {
		switch (link_read(&n->link, bytes, sizeof(bytes), &done)) {
		case LINK_DONE:
			parser_feed(n->parser, bytes, done);
			break;
		case LINK_LATER:
			return;
		case LINK_CLOSED:
			closed(n);
			return;
		case LINK_FAILED:
			failed(n);
			return;
		}
	} while (link_holds_bytes(&n->link));
}

static struct pending
pop_pending(struct node *n)
{
	const struct pending p = n->pending[n->first];

	n->first = (n->first + 1) % PENDING_MAX;
	n->count--;
	return p;
}

/* AUTH or SELECT were answered.  After an error whatever follows ran as somebody else, or in another database. */
static void
note_login(struct node *n, const struct reply *reply)
{
	if (reply_kind(reply) == REPLY_ERROR && !n->login_failed) {
		n->login_failed = true;
		(void)err_set(&n->err, ST_DENIED, "%s", reply_text(reply));
		text_hide(n->err.text, n->url.password); /* a server that knows no AUTH repeats it */
	}
}

static void
deliver_failure(const struct node *n, struct pending p, struct delivery *d)
{
	d->tag = p.tag;
	d->reply = NULL;
	d->unsent = p.start >= n->outbox.written;
	d->denied = n->login_failed;
	d->broken = n->reached;
	d->err = n->err;
}

/* Take one reply off the wire.  False if there is none. */
static bool
take_reply(struct node *n, struct delivery *d)
{
	struct reply *reply;
	struct pending p;

	while (n->count > 0 && (reply = parser_next(n->parser)) != NULL) {
		p = pop_pending(n);
		n->answered = true;
		if (p.tag == TAG_LOGIN) {
			note_login(n, reply);
			reply_free(reply);
			continue;
		}
		if (n->login_failed) {
			deliver_failure(n, p, d);
			reply_free(reply);
		} else
			*d = (struct delivery){ .tag = p.tag, .reply = reply };
		return true;
	}
	if (parser_fault(n->parser) != NULL)
		broken(n, parser_fault(n->parser));
	return false;
}

bool
node_take(struct node *n, struct delivery *d)
{
	struct pending p;

	if (n->state == CONNECTED && take_reply(n, d))
		return true;
	if (n->state != BROKEN)
		return false;
	hang_up(n);
	while (n->count > 0) {
		p = pop_pending(n);
		if (p.tag != TAG_LOGIN) {
			deliver_failure(n, p, d);
			return true;
		}
	}
	n->state = IDLE;
	return false;
}

/* -- The rest of the room's door -------------------------------------------- */

struct node *
node_open(const struct url *url, const char *password)
{
	struct node *n = calloc(1, sizeof(*n));

	if (n == NULL)
		return NULL;
	n->url = *url;
	if (n->url.password[0] == '\0')
		(void)snprintf(n->url.password, sizeof(n->url.password), "%s", password);
	n->state = IDLE;
	n->link.fd = -1;
	dial_init(&n->dial);
	return n;
}

struct node *
node_twin(const struct node *n)
{
	return node_open(&n->url, "");
}

/* Are there bytes that may still be written? */
static bool
has_bytes(const struct node *n)
{
	return !n->deaf && n->outbox.length > 0;
}

void
node_close(struct node *n)
{
	if (n == NULL)
		return;
	if (n->state == CONNECTED && has_bytes(n))
		write_out(n);
	hang_up(n);
	outbox_clear(&n->outbox);
	free(n);
}

const char *
node_name(const struct node *n)
{
	return n->url.name;
}

void
node_send(struct node *n, unsigned int tag, const struct request *r)
{
	if (n->state == IDLE)
		start(n);
	if (n->state == BROKEN) {
		/* Its failure is due like those of the requests before it; nothing of it was sent. */
		if (n->count < PENDING_MAX) {
			n->pending[(n->first + n->count) % PENDING_MAX] = (struct pending){ tag, UINT64_MAX };
			n->count++;
		}
		return;
	}
	queue_command(n, tag, r->argc, r->argv, r->length);
	if (n->state == CONNECTED)
		write_out(n);
}

int
node_fd(const struct node *n)
{
	if (n->state == DIALLING)
		return dial_fd(&n->dial);
	return n->state == CONNECTED ? n->link.fd : -1;
}

short
node_events(const struct node *n)
{
	if (n->state == DIALLING)
		return dial_events(&n->dial);
	return n->state == CONNECTED && has_bytes(n) ? POLLIN | POLLOUT : POLLIN;
}

int64_t
node_wake_us(const struct node *n)
{
	if (n->state == BROKEN)
		return 0;
	return n->state == DIALLING ? n->dial.wake_us : CLOCK_NEVER;
}

void
node_handle(struct node *n, int64_t now_us)
{
	if (n->state == DIALLING) {
		dialled(n, dial_handle(&n->dial, now_us));
		return;
	}
	if (n->state == CONNECTED && has_bytes(n))
		write_out(n);
	if (n->state == CONNECTED)
		read_in(n);
}

void
node_break(struct node *n)
{
	if (n->state == CONNECTED && n->count > 0)
		broken(n, "no answer in time");
}

void
node_stop_dialling(struct node *n, bool in_time)
{
	if (n->state == DIALLING)
		broken(n, in_time ? "not waited for" : node_silence(n));
}

bool
node_takes_long(const struct node *n)
{
	return n->url.secure || (n->state == DIALLING && n->dial.by_name);
}

bool
node_flushed(const struct node *n)
{
	if (n->state == IDLE || n->deaf)
		return true;
	return n->outbox.length == 0 && (!n->url.secure || n->count == 0);
}

const char *
node_silence(const struct node *n)
{
	if (n->state == DIALLING)
		return dial_silence(&n->dial);
	return n->state == CONNECTED ? "no answer in time" : "no connection in time";
}
