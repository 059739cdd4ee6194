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

/* A connection is tried again if it takes longer than so many node timeouts. */
#define CONNECT_ROUNDS 4

enum client_state {
	CLIENT_IDLE,
	CLIENT_CONNECTING,
	CLIENT_CONNECTED
};

struct client {
	struct watch watch;
	struct url url;
	enum client_state state;
	struct connecting connecting; /* while CLIENT_CONNECTING */
	struct stream stream;
	struct pipeline pipeline;
	bool write_closed; /* writing has failed */
	int64_t connect_us;
	int64_t sent_us;    /* when a request was last sent */
	bool doubtful;	    /* the pipeline was started after the connection had been idle */
	int64_t give_up_us; /* then it counts as closed, if nothing has been received */
	client_disconnected *disconnected;
	void *context;
};

/* -- Failures --------------------------------------------------------------- */

static void
fail(struct client *c, const char *why)
{
	pipeline_fail(&c->pipeline, why);
	c->watch.at_us = 0; /* the requests are failed from the loop */
}

static void
fail_locally(struct client *c, const char *why)
{
	pipeline_fail_locally(&c->pipeline, why);
	c->watch.at_us = 0;
}

static void
fail_to_connect(struct client *c)
{
	struct reason why;

	reason_set(&why, "%s%s", c->connecting.error, c->connecting.refused ? "; is Redis running there?" : "");
	fail(c, why.text);
	c->pipeline.local = c->connecting.local;
	c->pipeline.closed = !c->pipeline.local;
	c->pipeline.denied = c->connecting.denied;
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
		c->pipeline.closed = true;
	}
	c->pipeline.denied = c->pipeline.denied || denied;
}

/* Close the connection.  Returns the list of requests without a reply, with their failures set. */
static struct pending *
hang_up(struct client *c)
{
	struct pending *const first = pipeline_close(&c->pipeline, c->stream.written);

	connect_stop(&c->connecting);
	stream_close(&c->stream);
	c->state = CLIENT_IDLE;
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
		loop_post(c->pipeline.loop, &p->task);
	}
}

/* -- Writing and reading ---------------------------------------------------- */

/* poll(2) does not report data in the buffer of the TLS library. */
static void
set_watch(struct client *c)
{
	c->watch.fd = c->stream.fd;
	c->watch.events = c->stream.length > 0 && !c->write_closed ? POLLIN | POLLOUT : POLLIN;
	c->watch.at_us = c->pipeline.failed || stream_has_buffered(&c->stream) ? 0 : c->give_up_us;
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
 * Read once, so that the tasks of complete requests run before more is read.  Data that was not requested ends the
 * connection, since a server could send it without end.
 */
static void
read_bytes(struct client *c)
{
	char bytes[4096];
	size_t done = 0;

	switch (stream_read(&c->stream, bytes, sizeof(bytes), &done)) {
	case STREAM_DONE:
		if (!pipeline_is_busy(&c->pipeline)) {
			fail(c, "this is not a Redis server (it sent data before a request)");
			return;
		}
		c->give_up_us = CLOCK_NEVER;
		pipeline_feed(&c->pipeline, bytes, done);
		return;
	case STREAM_LATER:
		return;
	case STREAM_CLOSED:
		fail(c,
		    c->pipeline.replied ? "the server closed the connection"
			: c->stream.tls != NULL || c->url.endpoint.host[0] == '\0'
			? "the server closed the connection without an answer"
			: "the server closed the connection without an answer; if it speaks TLS, use rediss://");
		c->pipeline.closed = true;
		return;
	case STREAM_FAILED:
		fail_by_stream(c);
		return;
	}
}

/* -- Connecting ------------------------------------------------------------- */

static void
queue_login(struct client *c, const struct command *command)
{
	size_t length = 0, again;
	char *bytes = command_encode(command, &length, &again);

	if (bytes == NULL || !stream_queue(&c->stream, bytes, length))
		fail_locally(c, OUT_OF_MEMORY);
	c->pipeline.logins++;
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
		c->pipeline.reached = true;
		c->connect_us = clock_now_us() - c->pipeline.connection;
		break;
	}
}

static void
start(struct client *c)
{
	c->state = CLIENT_CONNECTING;
	c->write_closed = c->doubtful = false;
	c->give_up_us = CLOCK_NEVER;
	if (!pipeline_open(&c->pipeline, clock_now_us()))
		fail_locally(c, OUT_OF_MEMORY);
	else
		log_in(c);
	if (!c->pipeline.failed)
		after_connecting(c, connect_start(&c->connecting, &c->url.endpoint, &c->watch));
}

/* -- The loop --------------------------------------------------------------- */

/*
 * Something in between, for example a firewall, may have forgotten the idle connection, and then nothing is received
 * on it.  Half of the round is left to send the request again on a new one.
 */
static void
check_silence(struct client *c, int64_t now_us)
{
	if (c->pipeline.failed || now_us < c->give_up_us)
		return;
	fail(c, "no answer in time");
	c->pipeline.closed = true;
}

static void
ready(void *context, int64_t now_us)
{
	struct client *c = context;

	if (c->state == CLIENT_CONNECTING && !c->pipeline.failed)
		after_connecting(c, connect_continue(&c->connecting, now_us));
	else if (c->state == CLIENT_CONNECTED && !c->pipeline.failed) {
		write_queued(c);
		read_bytes(c);
		check_silence(c, now_us);
	}
	if (!c->pipeline.failed)
		write_queued(c);
	else if (c->disconnected != NULL)
		c->disconnected(c->context, hang_up(c));
	else
		post_failures(c);
}

struct client *
client_open(struct loop *loop, const struct url *url, client_disconnected *disconnected, void *context)
{
	struct client *c = calloc(1, sizeof(*c));

	if (c == NULL)
		return NULL;
	c->url = *url;
	c->pipeline.loop = loop;
	c->pipeline.name = c->url.of_service ? c->url.name : NULL;
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
	loop_remove(c->pipeline.loop, &c->watch);
	free(c);
}

void
client_send(struct client *c, struct pending *p, const char *bytes, size_t length)
{
	if (c->state == CLIENT_CONNECTING &&
	    clock_now_us() - c->pipeline.connection > CONNECT_ROUNDS * c->url.node_timeout_us)
		client_stop_connecting(c, false);
	if (c->state == CLIENT_IDLE)
		start(c);
	if (p->impatient && c->doubtful && !pipeline_is_busy(&c->pipeline))
		c->give_up_us = clock_add(clock_now_us(), c->url.node_timeout_us / 2);
	pipeline_add(&c->pipeline, p);
	p->begins = c->pipeline.failed ? UINT64_MAX : c->stream.queued;
	if (!c->pipeline.failed && (bytes == NULL || !stream_send(&c->stream, bytes, length))) {
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
	if (c->state != CLIENT_CONNECTED || !pipeline_is_busy(&c->pipeline))
		return;
	if (!c->pipeline.failed)
		fail(c, "no answer in time");
	post_failures(c);
}

void
client_stop_connecting(struct client *c, bool in_time)
{
	if (c->state != CLIENT_CONNECTING)
		return;
	if (!c->pipeline.failed)
		fail(c, in_time ? "not waited for" : client_waits_for(c));
	post_failures(c);
}

void
client_check_idle(struct client *c)
{
	if (c->state != CLIENT_CONNECTED || pipeline_is_busy(&c->pipeline))
		return;
	c->doubtful = clock_now_us() - c->sent_us >= IDLE_US;
	if (!c->doubtful)
		return;
	read_bytes(c);
	if (c->pipeline.failed)
		(void)hang_up(c);
}

/* -- State ------------------------------------------------------------------ */

int64_t
client_connection(const struct client *c)
{
	return c->state == CLIENT_CONNECTED ? c->pipeline.connection : 0;
}

bool
client_was_closed(const struct pending *p)
{
	return p->reply == NULL && p->closed;
}

bool
client_ended(const struct client *c)
{
	return c->state == CLIENT_IDLE && c->pipeline.reached;
}

bool
client_takes_long(const struct client *c)
{
	return c->url.endpoint.tls != NULL || (c->state == CLIENT_CONNECTING && c->connecting.by_name);
}

const char *
client_local(const struct client *c)
{
	return stream_local(&c->stream);
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
	return c->stream.length == 0 &&
	    (!pipeline_is_busy(&c->pipeline) || !(c->url.endpoint.tls != NULL || c->doubtful));
}

const char *
client_waits_for(const struct client *c)
{
	if (c->state == CLIENT_CONNECTING)
		return connect_waits_for(&c->connecting);
	return c->state == CLIENT_CONNECTED ? "no answer in time" : "no connection in time";
}
