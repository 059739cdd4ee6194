/* SPDX-License-Identifier: MIT */
#include "redis/client.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/text.h"
#include "net/connect.h"
#include "net/stream.h"
#include "redis/command.h"

/* A connection that was idle for this long may have been closed by the server. */
#define IDLE_US 100000

enum client_state {
	CLIENT_IDLE,
	CLIENT_CONNECTING,
	CLIENT_CONNECTED
};

struct client {
	struct loop *loop;
	struct watch watch;
	struct url url;
	enum client_state state;
	struct connecting connecting; /* while CLIENT_CONNECTING */
	struct stream stream;
	struct parser *parser;
	struct pending *first, *last; /* sent, without a reply */
	int logins;		      /* replies to AUTH and SELECT that are pending */
	int ignored;		      /* replies to WAIT that come next and that nobody waits for */
	bool write_closed;	      /* writing has failed */
	bool replied;		      /* a reply was received on this connection */
	bool reached;		      /* the last connection was established */
	int64_t started_us;	      /* when the last connection was started */
	int64_t connect_us;
	int64_t sent_us; /* when a request was last sent */
	bool doubtful;	 /* the pipeline was started after the connection had been idle */
	/* The connection has failed: */
	bool failed;
	bool local;  /* because this host lacks a resource */
	bool closed; /* the server has closed it, or accepts none */
	bool denied; /* the server refused the login, though the connection may still be usable */
	struct reason reason;
	client_disconnected *disconnected;
	void *context;
};

/* Is any reply pending? */
static bool
is_busy(const struct client *c)
{
	return c->first != NULL || c->logins > 0 || c->ignored > 0;
}

/* -- Failures --------------------------------------------------------------- */

static void
fail(struct client *c, const char *why)
{
	reason_set(&c->reason, "%s", why);
	c->failed = true;
	c->watch.at_us = 0; /* the requests are failed from the loop */
}

static void
fail_locally(struct client *c, const char *why)
{
	fail(c, why);
	c->local = true;
}

static void
fail_to_connect(struct client *c)
{
	struct reason why;

	reason_set(&why, "%s%s", c->connecting.error, c->connecting.refused ? "; is Redis running there?" : "");
	fail(c, why.text);
	c->local = c->connecting.local;
	c->closed = !c->local;
	c->denied = c->connecting.denied;
}

static void
fail_by_stream(struct client *c)
{
	const int error = errno;
	bool denied = false;

	if (c->stream.tls == NULL && err_lack(error) != NULL)
		fail_locally(c, err_lack(error));
	else {
		fail(c, c->stream.tls != NULL ? tls_error(c->stream.tls, &denied) : strerror(error));
		c->closed = true;
	}
	c->denied = c->denied || denied;
}

static void
set_failure(const struct client *c, struct pending *p)
{
	p->replicas = -1;
	p->failure = c->denied ? DENIED : c->local ? LOCAL : FAILED;
	p->sent = p->begins < c->stream.written;
	p->closed = c->closed && !c->denied;
	p->disconnected = c->reached;
	p->reason = c->reason;
	if (c->url.of_service)
		reason_prefix(&p->reason, c->url.name);
}

/* Close the connection.  Returns the list of requests without a reply, with their failures set. */
static struct pending *
hang_up(struct client *c)
{
	struct pending *const first = c->first, *p;

	for (p = first; p != NULL; p = p->next)
		set_failure(c, p);
	c->first = c->last = NULL;
	connect_stop(&c->connecting);
	stream_close(&c->stream);
	parser_free(c->parser);
	c->parser = NULL;
	c->state = CLIENT_IDLE;
	c->failed = false;
	c->watch.fd = -1;
	c->watch.at_us = CLOCK_NEVER;
	return first;
}

static void
post_failures(struct client *c)
{
	struct pending *p, *next;

	for (p = hang_up(c); p != NULL; p = next) {
		next = p->next;
		loop_post(c->loop, &p->task);
	}
}

/* -- Writing and reading ---------------------------------------------------- */

static void
set_watch(struct client *c)
{
	c->watch.fd = c->stream.fd;
	c->watch.events = c->stream.length > 0 && !c->write_closed ? POLLIN | POLLOUT : POLLIN;
	c->watch.at_us = c->failed ? 0 : CLOCK_NEVER;
}

/* After a failed write, continue to read: a server that refuses the connection may have sent the reason. */
static void
write_queued(struct client *c)
{
	enum stream_result result;

	if (c->state != CLIENT_CONNECTED)
		return;
	if (c->stream.length > 0 && !c->write_closed) {
		result = stream_write(&c->stream);
		c->write_closed = result == STREAM_CLOSED || result == STREAM_FAILED;
	}
	set_watch(c);
}

/*
 * Store the server's error for AUTH or SELECT.  A server without AUTH repeats its arguments, or a part of them, so the
 * password is hidden.
 */
static void
quote_login(struct client *c, const char *text)
{
	char *repeated;

	reason_set(&c->reason, "%s", text);
	if (strncmp(text, "WRONGPASS", 9) == 0 || strncmp(text, "NOAUTH", 6) == 0)
		return; /* Redis's own text: a match with a password such as "pass" would be a coincidence */
	repeated = strstr(c->reason.text, "with args beginning");
	if (repeated != NULL)
		*repeated = '\0';
	text_hide(c->reason.text, c->url.password);
}

/* After an error for AUTH or SELECT, all later requests ran as another user, or in another database. */
static void
take_login_reply(struct client *c, struct reply *reply)
{
	c->logins--;
	if (reply_kind(reply) == REPLY_ERROR && !c->denied) {
		c->denied = true;
		quote_login(c, reply_text(reply));
	}
	reply_free(reply);
}

/* Does the reply report a write?  A refusal has written nothing that replicas could confirm. */
static bool
has_written(const struct reply *reply)
{
	const struct reply *number = reply_items(reply) > 0 ? reply_item(reply, 0) : reply;

	return reply_kind(number) == REPLY_INTEGER && reply_integer(number) > 0;
}

/* The reply to the request itself.  True: that to WAIT is needed, too.  If it is not, the next reply is ignored. */
static bool
take_own_reply(struct client *c, struct pending *p, struct reply *reply)
{
	const bool needed = p->waits && !c->denied && has_written(reply);

	if (c->denied) {
		set_failure(c, p);
		reply_free(reply);
	} else {
		p->reply = reply;
		p->connection = c->started_us;
	}
	c->ignored += p->waits && !needed;
	p->waits = needed;
	return needed;
}

static void
take_replicas(struct pending *p, struct reply *reply)
{
	const bool error = reply_kind(reply) == REPLY_ERROR;

	p->replicas = error ? -1 : reply_integer(reply) > 0 ? reply_integer(reply) : 0;
	if (error)
		(void)text_show(reply_text(reply), p->reason.text, sizeof(p->reason.text));
	reply_free(reply);
}

static void
take_reply(struct client *c, struct reply *reply)
{
	struct pending *const p = c->first;

	if (p->skip > 0) {
		p->skip--;
		reply_free(reply);
		return;
	}
	if (p->reply != NULL)
		take_replicas(p, reply);
	else if (take_own_reply(c, p, reply))
		return;
	c->first = p->next;
	loop_post(c->loop, &p->task);
}

static void
take_replies(struct client *c)
{
	struct reply *reply;

	while (is_busy(c) && (reply = parser_next(c->parser)) != NULL) {
		c->replied = true;
		if (c->logins > 0)
			take_login_reply(c, reply);
		else if (c->ignored > 0) {
			c->ignored--;
			reply_free(reply);
		} else
			take_reply(c, reply);
	}
	if (parser_lacks_memory(c->parser))
		fail_locally(c, OUT_OF_MEMORY);
	else if (parser_fault(c->parser) != NULL)
		fail(c, parser_fault(c->parser));
}

/*
 * poll(2) does not report data in the buffer of the TLS library, so read until it is empty.  Data that was not
 * requested ends the connection, since a server could send it without end.
 */
static void
read_bytes(struct client *c)
{
	char bytes[4096];
	size_t done = 0;

	do {
		switch (stream_read(&c->stream, bytes, sizeof(bytes), &done)) {
		case STREAM_DONE:
			if (!is_busy(c)) {
				fail(c, "this is no Redis server (it speaks without being asked)");
				return;
			}
			parser_feed(c->parser, bytes, done);
			break;
		case STREAM_LATER:
			return;
		case STREAM_CLOSED:
			fail(c,
			    c->replied ? "the server closed the connection"
				       : "the server closed the connection without an answer");
			c->closed = true;
			return;
		case STREAM_FAILED:
			fail_by_stream(c);
			return;
		}
	} while (stream_has_buffered(&c->stream));
}

/* -- Connecting ------------------------------------------------------------- */

static void
queue_login(struct client *c, const struct command *command)
{
	size_t length = 0, again;
	char *bytes = command_encode(command, &length, &again);

	if (bytes == NULL || !stream_queue(&c->stream, bytes, length))
		fail_locally(c, OUT_OF_MEMORY);
	c->logins++;
	free(bytes);
}

static void
log_in(struct client *c)
{
	struct command command;

	if (c->url.password[0] != '\0') {
		command_begin(&command, "AUTH");
		if (c->url.user[0] != '\0')
			command_add(&command, c->url.user);
		command_add(&command, c->url.password);
		queue_login(c, &command);
	}
	if (c->url.db != 0) {
		command_begin(&command, "SELECT");
		command_add_number(&command, c->url.db);
		queue_login(c, &command);
	}
}

static void
after_connecting(struct client *c, enum connect_state state)
{
	switch (state) {
	case CONNECT_PENDING:
		break;
	case CONNECT_FAILED:
		fail_to_connect(c);
		break;
	case CONNECT_DONE:
		c->stream.fd = c->connecting.fd;
		c->stream.tls = c->connecting.tls;
		c->connecting.fd = -1;
		c->connecting.tls = NULL;
		connect_stop(&c->connecting);
		c->state = CLIENT_CONNECTED;
		c->reached = true;
		c->connect_us = clock_now_us() - c->started_us;
		break;
	}
}

static void
start(struct client *c)
{
	c->state = CLIENT_CONNECTING;
	c->write_closed = c->replied = c->reached = c->doubtful = c->local = c->closed = c->denied = false;
	c->logins = c->ignored = 0;
	c->started_us = clock_now_us();
	c->parser = parser_new();
	if (c->parser == NULL)
		fail_locally(c, OUT_OF_MEMORY);
	else
		log_in(c);
	if (!c->failed)
		after_connecting(c, connect_start(&c->connecting, &c->url.endpoint, &c->watch));
}

/* -- The loop --------------------------------------------------------------- */

static void
ready(void *context, int64_t now_us)
{
	struct client *c = context;

	if (c->state == CLIENT_CONNECTING && !c->failed)
		after_connecting(c, connect_continue(&c->connecting, now_us));
	else if (c->state == CLIENT_CONNECTED && !c->failed) {
		write_queued(c);
		read_bytes(c);
		take_replies(c);
	}
	if (c->failed)
		c->disconnected(c->context, hang_up(c));
	else
		write_queued(c);
}

struct client *
client_open(struct loop *loop, const struct url *url, client_disconnected *disconnected, void *context)
{
	struct client *c = calloc(1, sizeof(*c));

	if (c == NULL)
		return NULL;
	c->loop = loop;
	c->url = *url;
	c->disconnected = disconnected;
	c->context = context;
	c->watch = (struct watch){ .fd = -1, .at_us = CLOCK_NEVER, .ready = ready, .context = c };
	connect_init(&c->connecting);
	stream_init(&c->stream);
	loop_add(loop, &c->watch);
	return c;
}

void
client_close(struct client *c)
{
	if (c == NULL)
		return;
	write_queued(c);
	(void)hang_up(c);
	loop_remove(c->loop, &c->watch);
	free(c);
}

void
client_send(struct client *c, struct pending *p, const char *bytes, size_t length)
{
	if (c->state == CLIENT_IDLE)
		start(c);
	p->next = NULL;
	p->reply = NULL;
	if (c->first == NULL)
		c->first = p;
	else
		c->last->next = p;
	c->last = p;
	p->begins = c->failed ? UINT64_MAX : c->stream.queued;
	if (!c->failed && (bytes == NULL || !stream_queue(&c->stream, bytes, length))) {
		p->begins = UINT64_MAX;
		fail_locally(c, OUT_OF_MEMORY);
	}
	c->sent_us = clock_now_us();
	write_queued(c);
}

void
client_send_command(struct client *c, struct pending *p, const struct command *command)
{
	size_t length = 0, again;
	char *bytes = command_encode(command, &length, &again);

	client_send(c, p, bytes, length);
	free(bytes);
}

/* -- Giving up -------------------------------------------------------------- */

void
client_disconnect(struct client *c)
{
	if (c->state != CLIENT_CONNECTED || !is_busy(c))
		return;
	if (!c->failed)
		fail(c, "no answer in time");
	post_failures(c);
}

void
client_stop_connecting(struct client *c, bool in_time)
{
	if (c->state != CLIENT_CONNECTING)
		return;
	if (!c->failed)
		fail(c, in_time ? "not waited for" : client_waits_for(c));
	post_failures(c);
}

void
client_check_idle(struct client *c)
{
	if (c->state != CLIENT_CONNECTED || is_busy(c))
		return;
	c->doubtful = clock_now_us() - c->sent_us >= IDLE_US;
	if (!c->doubtful)
		return;
	read_bytes(c);
	if (c->failed)
		(void)hang_up(c);
}

/* -- State ------------------------------------------------------------------ */

int64_t
client_connection(const struct client *c)
{
	return c->state == CLIENT_CONNECTED ? c->started_us : 0;
}

bool
client_was_closed(const struct pending *p)
{
	return p->reply == NULL && p->closed;
}

bool
client_ended(const struct client *c)
{
	return c->state == CLIENT_IDLE && c->reached;
}

bool
client_takes_long(const struct client *c)
{
	return c->url.endpoint.tls != NULL || (c->state == CLIENT_CONNECTING && c->connecting.by_name);
}

int64_t
client_connect_us(const struct client *c)
{
	return c->connect_us;
}

bool
client_flushed(const struct client *c)
{
	if (c->state == CLIENT_IDLE || c->write_closed)
		return true;
	return c->stream.length == 0 && (!is_busy(c) || !(c->url.endpoint.tls != NULL || c->doubtful));
}

const char *
client_waits_for(const struct client *c)
{
	if (c->state == CLIENT_CONNECTING)
		return connect_waits_for(&c->connecting);
	return c->state == CLIENT_CONNECTED ? "no answer in time" : "no connection in time";
}
