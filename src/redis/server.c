/* SPDX-License-Identifier: MIT */
#include "redis/server.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "net/password.h"
#include "redis/command.h"

/* A connection that was idle for this long may have been closed by the server. */
#define IDLE_US 100000

/* A connection is tried again if it takes longer than so many node timeouts. */
#define CONNECT_ROUNDS 4

static const struct channel_words words = { .refused = "; is Redis running there?",
	.silent = "",
	.silent_to_tcp = "; if it speaks TLS, use rediss://" };

static bool
has_failed(const struct server *s)
{
	return s->channel.failure.kind != NO_FAILURE;
}

/* Is any reply pending? */
static bool
is_busy(const struct server *s)
{
	return s->first != NULL || s->logins > 0 || s->ignored > 0;
}

/* -- Failures --------------------------------------------------------------- */

static void
set_failure(const struct server *s, struct pending *p, uint64_t written)
{
	struct failure *const f = &p->result.failure;

	*f = s->refusal.kind != NO_FAILURE ? s->refusal : s->channel.failure;
	f->sent = p->begins < written;
	if (s->url.of_service)
		reason_prefix(&f->reason, s->url.name);
}

/* Close the connection.  Returns the list of requests without a result, with their failures set. */
static struct pending *
hang_up(struct server *s)
{
	struct pending *const first = s->first, *p;

	for (p = first; p != NULL; p = p->next)
		set_failure(s, p, s->channel.written);
	s->first = NULL;
	s->logins = s->ignored = 0;
	s->ended = s->channel.state == CHANNEL_OPEN;
	parser_free(s->parser);
	s->parser = NULL;
	channel_close(&s->channel);
	return first;
}

static void
post_failures(struct server *s)
{
	struct pending *p, *next;

	for (p = hang_up(s); p != NULL; p = next) {
		next = p->next;
		loop_post(s->loop, &p->task);
	}
}

/* -- Replies ---------------------------------------------------------------- */

/*
 * Keep the server's error for AUTH or SELECT: all later requests ran as another user, or in another database.  A server
 * without AUTH repeats its arguments, or a part of them, so that part is left out.
 */
static void
take_login_reply(struct server *s, const struct reply *reply)
{
	/* Redis's own: a match with a password such as "pass" would be a coincidence, and reveal it. */
	static const char known[] = "WRONGPASS invalid username-password pair or user is disabled.|"
				    "NOAUTH Authentication required.|ERR invalid password";
	const char *const text = reply_text(reply), *const repeated = strstr(text, "with args beginning");
	struct failure *const f = &s->refusal;
	struct text quoted;

	s->logins--;
	if (reply_kind(reply) != REPLY_ERROR || f->kind != NO_FAILURE)
		return;
	f->kind = DENIED;
	f->connected = true;
	f->login = reply_is_error(reply, (const char *const[]){ "WRONGPASS", "NOAUTH", "ERR invalid password", NULL });
	if (strstr(known, text) != NULL)
		reason_set(&f->reason, "%s", text);
	else {
		quoted = text_in(f->reason.text, sizeof(f->reason.text));
		text_add_quoted(&quoted, text, repeated != NULL ? (size_t)(repeated - text) : strlen(text));
	}
}

/* The reply to WAIT: the number of replicas that have the writes of the request. */
static void
take_replicas(struct pending *p, int wanted, const struct reply *reply)
{
	const int64_t replicas = reply_integer(reply) > 0 ? reply_integer(reply) : 0;
	struct failure *const f = &p->result.failure;

	p->waits = false;
	if (reply_kind(reply) == REPLY_ERROR)
		(void)text_quote(reply_text(reply), f->reason.text, sizeof(f->reason.text));
	else if (replicas < wanted)
		reason_set(&f->reason, "%d of %d replicas confirmed it in time (--replicas)", (int)replicas, wanted);
	else
		return;
	f->kind = FAILED;
}

/*
 * The reply to the oldest request.  True: it is the request's own, and must not be freed.  The reply to WAIT is ignored
 * if nothing was written that replicas could confirm.
 */
static bool
take_reply(struct server *s, struct reply *reply)
{
	struct pending *const p = s->first;
	const struct reply *const number = reply_items(reply) > 0 ? reply_item(reply, 0) : reply;
	const bool refused = s->refusal.kind != NO_FAILURE, waited = p->waits;

	if (p->asking) {
		p->asking = false;
		return false;
	}
	if (p->result.reply != NULL)
		take_replicas(p, s->url.replicas, reply);
	else {
		p->waits = waited && !refused && reply_kind(number) == REPLY_INTEGER && reply_integer(number) > 0;
		s->ignored += waited && !p->waits;
		if (refused)
			set_failure(s, p, UINT64_MAX);
		else {
			p->result.reply = reply;
			p->result.connection = s->channel.began_us;
		}
	}
	if (!p->waits) {
		s->first = p->next;
		loop_post(s->loop, &p->task);
	}
	return p->result.reply == reply;
}

/* Match received bytes. */
static void
feed(struct server *s, const char *bytes, size_t length)
{
	struct reply *reply;

	parser_feed(s->parser, bytes, length);
	while (is_busy(s) && (reply = parser_next(s->parser)) != NULL) {
		if (s->logins > 0)
			take_login_reply(s, reply);
		else if (s->ignored > 0)
			s->ignored--;
		else if (take_reply(s, reply))
			continue;
		reply_free(reply);
	}
	if (parser_failure(s->parser)->kind != NO_FAILURE)
		channel_fail(&s->channel, parser_failure(s->parser)->kind, parser_failure(s->parser)->reason.text);
}

/* -- The loop --------------------------------------------------------------- */

/*
 * Read once, so that the tasks of complete requests run before more is read.  Data that was not requested ends the
 * connection, since a server could send it without end.
 */
static void
read_bytes(struct server *s)
{
	char bytes[4096];
	const size_t length = channel_read(&s->channel, bytes, sizeof(bytes));

	if (length > 0 && is_busy(s))
		feed(s, bytes, length);
	else if (length > 0)
		channel_fail(&s->channel, FAILED, "this is not a Redis server (it sent data before a request)");
}

static void
ready(void *context, int64_t now_us)
{
	struct server *const s = context;
	const bool was_open = s->channel.state == CHANNEL_OPEN;

	channel_go_on(&s->channel, now_us);
	if (was_open && !has_failed(s)) {
		read_bytes(s);
		/*
		 * Something in between, for example a firewall, may have forgotten the idle connection, and then
		 * nothing is received on it.  Half of the round is left to send the request again on a new one.
		 */
		if (now_us >= s->channel.alarm_us && !has_failed(s)) {
			channel_fail(&s->channel, FAILED, "no answer in time");
			s->channel.failure.closed = true;
		}
	}
	if (!has_failed(s))
		return;
	if (s->disconnected != NULL)
		s->disconnected(s->context, hang_up(s));
	else
		post_failures(s);
}

void
server_open(struct server *s)
{
	memset(s, 0, offsetof(struct server, loop));
	channel_init(&s->channel, s->loop, &words, ready, s);
}

void
server_close(struct server *s)
{
	if (s->channel.state == CHANNEL_OPEN)
		channel_go_on(&s->channel, 0);
	(void)hang_up(s);
	channel_end(&s->channel);
}

/* -- Sending ---------------------------------------------------------------- */

static void
queue_login(struct server *s, const struct command *command)
{
	size_t length = 0, again;
	char *bytes = command_encode(command, &length, &again);

	if (bytes == NULL)
		channel_fail(&s->channel, LOCAL, OUT_OF_MEMORY);
	else
		(void)channel_send(&s->channel, bytes, length);
	s->logins++;
	free(bytes);
}

/* Begin with a new connection.  Until it is open the login is queued, so that it is written with the first request. */
static void
connect_and_log_in(struct server *s)
{
	const char *const password = s->url.shared != NULL ? password_to_log_in(s->url.shared, &s->version)
							   : s->url.password;
	struct command command;

	s->doubtful = s->ended = false;
	s->refusal = (struct failure){ .kind = NO_FAILURE };
	s->parser = parser_new();
	if (s->parser == NULL)
		channel_fail(&s->channel, LOCAL, OUT_OF_MEMORY);
	if (password[0] != '\0') {
		command_begin(&command, "AUTH");
		if (s->url.user[0] != '\0')
			command_add(&command, s->url.user);
		command_add(&command, password);
		queue_login(s, &command);
	}
	if (s->url.db != 0) {
		command_begin(&command, "SELECT");
		command_add_number(&command, s->url.db);
		queue_login(s, &command);
	}
	channel_open(&s->channel, &s->url.endpoint);
}

void
server_send(struct server *s, struct pending *p, const char *bytes, size_t length)
{
	static const char asking[] = "*1\r\n$6\r\nASKING\r\n";
	struct channel *const c = &s->channel;
	struct pending **end = &s->first;

	if (c->state == CHANNEL_CONNECTING && clock_now_us() - c->began_us > CONNECT_ROUNDS * s->url.node_timeout_us)
		server_give_up(s, CHANNEL_CONNECTING, false);
	if (c->state == CHANNEL_CLOSED)
		connect_and_log_in(s);
	if (p->impatient && s->doubtful && !is_busy(s))
		c->alarm_us = clock_add(clock_now_us(), s->url.node_timeout_us / 2);
	p->next = NULL;
	p->result.reply = NULL;
	p->result.failure.kind = NO_FAILURE;
	while (*end != NULL)
		end = &(*end)->next;
	*end = p;
	p->begins = has_failed(s) || bytes == NULL ? UINT64_MAX : c->queued;
	if (bytes == NULL)
		channel_fail(c, LOCAL, OUT_OF_MEMORY);
	else if (!has_failed(s) &&
	    ((p->asking && !channel_send(c, asking, sizeof(asking) - 1)) || !channel_send(c, bytes, length)))
		p->begins = UINT64_MAX;
	s->sent_us = clock_now_us();
}

void
server_send_command(struct server *s, struct pending *p, const struct command *command)
{
	size_t length = 0, again;
	char *bytes = command_encode(command, &length, &again);

	server_send(s, p, bytes, length);
	free(bytes);
}

/* -- Giving up -------------------------------------------------------------- */

void
server_give_up(struct server *s, enum channel_state state, bool in_time)
{
	if (s->channel.state != state || !is_busy(s))
		return;
	channel_fail(&s->channel, FAILED, in_time ? "not waited for" : channel_waits_for(&s->channel));
	post_failures(s);
}

void
server_check_idle(struct server *s)
{
	if (s->channel.state != CHANNEL_OPEN || is_busy(s))
		return;
	s->doubtful = clock_now_us() - s->sent_us >= IDLE_US;
	if (!s->doubtful)
		return;
	if (!has_failed(s))
		read_bytes(s);
	if (has_failed(s))
		(void)hang_up(s);
}

/* -- State ------------------------------------------------------------------ */

bool
server_wants_login(const struct result *r)
{
	return r->reply != NULL ? reply_is_error(r->reply, (const char *const[]){ "NOAUTH", NULL }) : r->failure.login;
}

bool
server_was_closed(const struct result *r)
{
	return r->reply == NULL && r->failure.closed;
}

bool
server_flushed(const struct server *s)
{
	if (s->channel.state == CHANNEL_CLOSED || s->channel.write_closed)
		return true;
	return s->channel.length == 0 && (!is_busy(s) || !(s->url.endpoint.tls != NULL || s->doubtful));
}
