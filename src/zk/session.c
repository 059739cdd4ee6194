/* SPDX-License-Identifier: MIT */
#include "zk/session.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/random.h"
#include "lock/lease.h"
#include "net/password.h"

#define RETRY_US 20000 /* at most, before the second try; twice as long before each further one */
#define RETRY_MOST_US 1000000
#define PINGS 6		 /* while we wait, in the length of the session */
#define PLACE_TRIES 30	 /* a server still counts a connection for a moment after its end */
#define POLL_PACKETS 100 /* at most are taken at once; the next call takes the rest */
#define READ_SIZE 4096

static const struct wait at_once = { 0, -1 };

static const struct channel_words words = {
	.refused = "; is ZooKeeper running there?",
	.silent = "; it may have no leader, or too many connections of this host (maxClientCnxns): see dlock doctor",
	.silent_to_tcp = "; it may have no leader, or too many connections of this host (maxClientCnxns), or want TLS "
			 "(zks://): see dlock doctor",
};

/* The limit of a packet bounds the buffer. */
static void
ready(void *context, int64_t now_us)
{
	struct session *const s = context;
	struct channel *const channel = &s->channel;
	void *grown;

	channel_go_on(channel, now_us);
	if (channel->state != CHANNEL_OPEN || channel->failure.kind != NO_FAILURE)
		return;
	grown = array_room(s->in, s->in_length + READ_SIZE, &s->in_capacity, 1);
	if (grown == NULL) {
		channel_fail(channel, LOCAL, OUT_OF_MEMORY);
		return;
	}
	s->in = grown;
	s->in_length += channel_read(channel, (char *)s->in + s->in_length, READ_SIZE);
}

void
session_init(struct session *s, const struct zk_url *url, const struct log *log)
{
	memset(s, 0, sizeof(*s));
	s->url = url;
	s->log = log;
	s->server = (int)(random_u32() % (uint32_t)url->servers);
	channel_init(&s->channel, &s->loop, &words, ready, s);
	s->old.fd = -1;
}

void
session_disconnect(struct session *s)
{
	channel_close(&s->channel);
	free(s->in);
	s->in = NULL;
	s->in_length = s->in_capacity = s->in_taken = 0;
}

void
session_leave_server(struct session *s)
{
	if (s->channel.state == CHANNEL_OPEN)
		s->server = (s->server + 1) % s->url->servers;
	session_disconnect(s);
}

void
session_free(struct session *s)
{
	session_disconnect(s);
	channel_close(&s->old);
	wire_out_free(&s->out);
}

bool
session_is_connected(const struct session *s)
{
	return s->channel.state == CHANNEL_OPEN && s->channel.failure.kind == NO_FAILURE;
}

int
session_fd(const struct session *s)
{
	return s->channel.state == CHANNEL_OPEN ? s->channel.fd : -1;
}

const char *
session_local(const struct session *s)
{
	return channel_local(&s->channel);
}

void
session_log(const struct session *s, const char *what, const char *end)
{
	char name[ZK_SERVER_SIZE];

	log_debug(s->log, "%s: %s%s", zk_url_server(s->url, s->tried.server, name), what, end);
}

/* -- The connection --------------------------------------------------------- */

/*
 * These wait until they are done, until the limit ends (ZK_TIMEOUT), or until the interrupt descriptor is readable
 * (ZK_INTERRUPTED).  They return ZK_OK, or why not: ZK_CONNECTION_LOSS, ZK_REFUSED (TLS), ZK_LOCAL.
 */

/* ZK_OK: it works. */
static enum zk_code
state_of(struct session *s)
{
	const struct failure *const failure = &s->channel.failure;

	if (failure->kind == NO_FAILURE)
		return s->channel.state == CHANNEL_CLOSED ? ZK_CONNECTION_LOSS : ZK_OK;
	s->tried.reason = failure->reason;
	if (failure->kind == LOCAL)
		return ZK_LOCAL;
	return failure->kind == DENIED ? ZK_REFUSED : ZK_CONNECTION_LOSS;
}

/* The bytes that came in are not ZooKeeper's. */
static enum zk_code
refuse(struct session *s)
{
	channel_fail(&s->channel, FAILED,
	    "this is not a ZooKeeper server (it answered something else); check the host and the port");
	return state_of(s);
}

/* Run the loop once.  ZK_OK: look again. */
static enum zk_code
turn(struct session *s, const struct wait *limit)
{
	const enum loop_event event = loop_turn(&s->loop, limit);
	const enum zk_code code = state_of(s);

	if (code != ZK_OK || event == LOOP_ACTIVE)
		return code;
	if (event == LOOP_INTERRUPTED)
		return ZK_INTERRUPTED;
	reason_set(&s->tried.reason, "%s", channel_waits_for(&s->channel));
	return ZK_TIMEOUT;
}

/* Connect to the server that is due, with TLS if its endpoint has it. */
static enum zk_code
open_connection(struct session *s, const struct wait *limit)
{
	enum zk_code code = ZK_OK;

	s->tried.server = s->server;
	session_disconnect(s);
	channel_open(&s->channel, &s->url->server[s->server]);
	while (s->channel.state == CHANNEL_CONNECTING && code == ZK_OK)
		code = turn(s, limit);
	if (code != ZK_OK)
		session_disconnect(s);
	return code;
}

/* Hand what was put to the system. */
static enum zk_code
send_out(struct session *s, const struct wait *limit)
{
	enum zk_code code;

	if (s->out.failed)
		channel_fail(&s->channel, LOCAL, OUT_OF_MEMORY);
	else if (session_is_connected(s) && s->out.length > 0)
		(void)channel_send(&s->channel, (const char *)s->out.bytes, s->out.length);
	for (code = state_of(s); code == ZK_OK && s->channel.length > 0;)
		code = turn(s, limit);
	return code;
}

/* Take the next packet that came in.  It is valid until the next call. */
static enum zk_code
take(struct session *s, struct wire_in *packet, const struct wait *limit)
{
	enum zk_code code = ZK_OK;
	int64_t length;

	s->in_length -= s->in_taken;
	if (s->in_taken > 0)
		memmove(s->in, s->in + s->in_taken, s->in_length);
	s->in_taken = 0;
	for (;;) {
		length = wire_frame(s->in, s->in_length, packet);
		if (length > 0) {
			s->in_taken = (size_t)length;
			return ZK_OK;
		}
		if (length < 0)
			(void)refuse(s);
		if (code == ZK_OK)
			code = state_of(s);
		if (code != ZK_OK)
			return code;
		code = turn(s, limit);
	}
}

void
session_ask(const struct session *other, const char *command, char *text, size_t size, const struct wait *limit)
{
	struct session s;
	enum zk_code code;

	session_init(&s, other->url, other->log);
	s.server = other->server;
	code = open_connection(&s, limit);
	if (code == ZK_OK)
		(void)channel_send(&s.channel, command, strlen(command));
	while (code == ZK_OK && s.in_length < size)
		code = turn(&s, limit);
	if (code != ZK_OK && code != ZK_CONNECTION_LOSS)
		s.in_length = 0;
	(void)snprintf(text, size, "%.*s", (int)s.in_length, s.in != NULL ? (const char *)s.in : "");
	session_free(&s);
}

/* -- Putting requests ------------------------------------------------------- */

int32_t
session_put(struct session *s, const struct wire_request *request)
{
	wire_put(&s->out, ++s->xid, request);
	return s->xid;
}

int32_t
session_put_path(struct session *s, enum wire_op op, const char *path)
{
	return session_put(s, &(struct wire_request){ .op = op, .path = path });
}

int32_t
session_put_watch(struct session *s, struct watched *watched, enum wire_op op, const char *path)
{
	watched->path = path;
	watched->event = 0;
	watched->xid = session_put(s, &(struct wire_request){ .op = op, .path = path, .argument = 1 });
	return watched->xid;
}

/* -- Exchanges -------------------------------------------------------------- */

struct wait
session_limit(const struct session *s, const struct wait *wait)
{
	const int64_t most = s->timeout_us > 0 ? clock_add(clock_now_us(), s->timeout_us) : CLOCK_NEVER;

	return (struct wait){ clock_sooner(most, wait->until_us), wait->interrupt_fd };
}

/* -- Packets that come in --------------------------------------------------- */

/* Take the next packet, which is no ConnectResponse.  ZK_OK: s->in_xid, s->in_error and *packet have it. */
static enum zk_code
take_packet(struct session *s, struct wire_in *packet, const struct wait *limit)
{
	struct watched *const watched[] = { &s->ours, &s->before };
	const enum zk_code code = take(s, packet, limit);
	struct wire_text path;
	int32_t event, i;

	if (code != ZK_OK)
		return code;
	s->in_xid = wire_get_int(packet);
	(void)wire_get_long(packet); /* zxid */
	s->in_error = wire_get_int(packet);
	if (packet->bad)
		return refuse(s);
	if (s->in_xid == WIRE_XID_EVENT) {
		event = wire_get_int(packet);
		(void)wire_get_int(packet); /* the state of the session */
		path = wire_get_text(packet);
		for (i = 0; i < 2; i++) {
			if (watched[i]->path != NULL && strlen(watched[i]->path) == path.length &&
			    memcmp(watched[i]->path, path.bytes, path.length) == 0)
				watched[i]->event = event;
		}
	} else if (s->in_xid == s->ours.xid && s->in_error == ZK_NO_NODE)
		s->ours.event = WIRE_EVENT_DELETED;
	else if (s->in_xid == WIRE_XID_AUTH && s->in_error != ZK_OK)
		return ZK_AUTH_FAILED;
	/* The server answers one request so, whichever is the first, and closes the connection. */
	return s->in_error == ZK_SASL_REQUIRED ? ZK_SASL_REQUIRED : ZK_OK;
}

enum zk_code
session_reply(struct session *s, int32_t xid, struct wire_in *body, const struct wait *wait)
{
	const struct wait limit = { clock_sooner(s->until_us, wait->until_us), wait->interrupt_fd };
	enum zk_code code;

	for (;;) {
		code = take_packet(s, body, &limit);
		if (code != ZK_OK)
			return code;
		if (s->in_xid == xid)
			break;
		if (clock_now_us() >= limit.until_us) {
			reason_set(&s->tried.reason, "no answer in time");
			return ZK_TIMEOUT;
		}
	}
	/* A password is not refused at once: it is what the rights of the nodes are compared with. */
	if (s->in_error == ZK_NO_AUTH && s->url->shared != NULL)
		(void)password_refused(s->url->shared, s->version);
	return s->in_error > 0 ? ZK_SYSTEM_ERROR : (enum zk_code)s->in_error;
}

enum zk_code
session_call(struct session *s, int32_t xid, struct wire_in *body, const struct wait *wait)
{
	const enum zk_code code = session_send(s, wait);

	return code == ZK_OK ? session_reply(s, xid, body, wait) : code;
}

enum zk_code
session_wait(struct session *s, const struct wait *wait)
{
	const int64_t length_us = (int64_t)s->granted.length_ms * 1000;
	int64_t now = clock_now_us(), due = now + length_us / PINGS;
	struct wire_in packet;
	struct wait limit = *wait;
	enum zk_code code = ZK_OK;
	bool pinged = false;

	while (code == ZK_OK && s->ours.event == 0 && s->before.event == 0 && now < wait->until_us) {
		if (now >= due && pinged)
			return ZK_TIMEOUT;
		if (now >= due) {
			wire_put(&s->out, WIRE_XID_PING, &(struct wire_request){ .op = WIRE_PING });
			code = session_send(s, &(struct wait){ CLOCK_NEVER, wait->interrupt_fd });
			due = s->until_us;
			pinged = true;
		}
		limit.until_us = clock_sooner(due, wait->until_us);
		if (code == ZK_OK)
			code = take_packet(s, &packet, &limit);
		now = clock_now_us();
		if (code == ZK_OK && s->in_xid == WIRE_XID_PING) {
			due = now + length_us / PINGS;
			pinged = false;
		} else if (code == ZK_TIMEOUT) /* of this turn */
			code = ZK_OK;
	}
	return code == ZK_TIMEOUT && now >= wait->until_us ? ZK_OK : code;
}

enum zk_code
session_poll(struct session *s)
{
	struct wire_in packet;
	enum zk_code code;
	int packets = 0;

	do {
		code = take_packet(s, &packet, &at_once);
	} while (code == ZK_OK && ++packets < POLL_PACKETS);
	return code == ZK_TIMEOUT ? ZK_OK : code;
}

/* -- Connecting ------------------------------------------------------------- */

void
session_begin(struct session *s)
{
	const char *now;

	if (session_is_connected(s))
		channel_move(&s->old, &s->channel);
	session_disconnect(s);
	wire_out_free(&s->out);
	wire_put_connect(&s->out, &s->granted);
	if (s->url->user[0] != '\0') {
		/* Nodes belong to the password that they were made with. */
		wire_put_auth(&s->out, s->url->user, s->url->password);
		now = s->url->shared != NULL ? password_to_log_in(s->url->shared, &s->version) : s->url->password;
		if (strcmp(now, s->url->password) != 0)
			wire_put_auth(&s->out, s->url->user, now);
	}
	s->begun = true;
	s->ours.event = s->before.event = s->ours.xid = s->before.xid = 0;
}

/*
 * Does something else than ZooKeeper listen there?  Redis and web servers are silent until a line ends, so send one:
 * the command of an administrator, which ZooKeeper answers in one of three ways.
 */
static bool
is_other_server(const struct session *s, const struct wait *limit)
{
	char text[5];

	session_ask(s, "srvr\r\n\r\n", text, sizeof(text), limit);
	return text[0] != '\0' && strcmp(text, "Zook") != 0 && strcmp(text, "This") != 0 && strcmp(text, "srvr") != 0;
}

static enum zk_code
take_connected(struct session *s, const struct wait *limit)
{
	const int64_t now = clock_now_us(), id = s->granted.id;
	const struct wait half = { now + (limit->until_us - now) / 2, limit->interrupt_fd };
	struct wire_session granted;
	struct wire_in packet;
	enum zk_code code = take(s, &packet, id == 0 ? &half : limit);

	if (code == ZK_TIMEOUT && id == 0) {
		if (!s->channel.received && is_other_server(s, limit))
			return refuse(s);
		code = take(s, &packet, limit);
	}
	if (code != ZK_OK)
		return code;
	if (!wire_get_connected(&packet, &granted) || (id != 0 && granted.id != 0 && granted.id != id))
		return refuse(s);
	if (granted.id == 0)
		return ZK_EXPIRED;
	if (id != 0 && granted.length_ms > s->granted.length_ms)
		granted.length_ms = s->granted.length_ms;
	s->granted = granted;
	return ZK_OK;
}

/* Connect to this server within its share of the time, send what was put, and take the ConnectResponse. */
static enum zk_code
greet(struct session *s, const struct wait *share, const struct wait *limit)
{
	enum zk_code code = open_connection(s, share);

	s->accepted = code == ZK_OK;
	s->connected_us = clock_now_us();
	if (code == ZK_OK)
		code = send_out(s, limit);
	if (code == ZK_OK)
		code = take_connected(s, limit);
	s->silent = s->accepted && !s->channel.received;
	if (code != ZK_OK && code != ZK_EXPIRED && code != ZK_INTERRUPTED) {
		session_log(s, s->tried.reason.text, "");
		session_disconnect(s);
		s->server = (s->server + 1) % s->url->servers;
	}
	return code;
}

/*
 * Try the servers in turn, each with its share of the time, but not the one that was tried last.  With `first_only` all
 * are tried, and the first that accepts a connection gets all of the time: no other is tried after it.
 *
 * While the old connection is open, a server that hangs up may have no place for another one, so the next one is tried.
 * If all hang up, the old connection is closed, and the first one is tried again.
 */
static enum zk_code
try_servers(struct session *s, const struct wait *limit, bool first_only)
{
	enum zk_code code = ZK_CONNECTION_LOSS;
	struct pollfd fd = { .fd = s->old.fd, .events = POLLIN };
	struct wait share = *limit;
	struct timespec time_left;
	char unread[1024];
	bool done = false;
	int64_t now;
	int left;

	for (left = s->url->servers - !first_only; left > 0 && session_is_lost(code) && !done; left--) {
		now = clock_now_us();
		share.until_us = now + (limit->until_us - now) / left;
		code = greet(s, &share, first_only ? limit : &share);
		done = first_only && s->accepted && (s->old.fd < 0 || code == ZK_TIMEOUT);
	}
	if (code == ZK_CONNECTION_LOSS && s->old.fd >= 0) {
		/* Wait until the server has closed it, too: then it takes another one. */
		(void)shutdown(fd.fd, SHUT_WR);
		while (ppoll(&fd, 1, clock_until(clock_now_us(), limit->until_us, &time_left), NULL) > 0 &&
		    read(fd.fd, unread, sizeof(unread)) > 0)
			continue;
		channel_close(&s->old);
		for (left = PLACE_TRIES; left > 0 && code == ZK_CONNECTION_LOSS; left--)
			code = greet(s, limit, limit);
	}
	wire_out_free(&s->out);
	s->begun = false;
	return code;
}

enum zk_code
session_send(struct session *s, const struct wait *wait)
{
	const struct wait limit = session_limit(s, wait);
	enum zk_code code;

	s->until_us = limit.until_us;
	if (s->begun)
		return try_servers(s, &limit, true);
	code = send_out(s, &limit);
	wire_out_free(&s->out);
	return code;
}

enum zk_code
session_create(struct session *s, int64_t length_ms, const struct wait *wait)
{
	const struct wait limit = session_limit(s, wait);
	const int64_t time_us = limit.until_us - clock_now_us();
	struct wait others = limit;
	struct tried before;
	unsigned int tries = 0;
	enum zk_code code;
	bool any = false;

	s->granted = (struct wire_session){ .length_ms = length_ms > INT32_MAX ? INT32_MAX : (int32_t)length_ms };
	s->valid_until_us = 0;
	do {
		before = s->tried;
		session_begin(s);
		code = try_servers(s, &limit, true);
		any = any || s->silent;
	} while (code == ZK_CONNECTION_LOSS && any && session_pause(s, &tries, &limit, &code));
	if (code == ZK_TIMEOUT && tries > 0 && limit.until_us - s->connected_us < time_us / s->url->servers) {
		/* It had less than its share, so the reason of the try before it is better. */
		s->tried = before;
	} else if (code == ZK_TIMEOUT && s->accepted && s->url->servers > 1) {
		session_begin(s);
		others.until_us = clock_add(clock_now_us(), time_us);
		code = try_servers(s, &others, false);
	}
	if (code == ZK_OK) {
		s->created_us = s->connected_us;
		session_prove(s);
	}
	return code;
}

/* -- Proofs ----------------------------------------------------------------- */

void
session_prove(struct session *s)
{
	const int64_t until = lease_valid_until(s->connected_us, (int64_t)s->granted.length_ms * 1000);

	if (until > s->valid_until_us)
		s->valid_until_us = until;
	channel_close(&s->old);
}

bool
session_pause(struct session *s, unsigned int *tries, const struct wait *limit, enum zk_code *code)
{
	const int64_t most_us = clock_sooner((int64_t)RETRY_US << (*tries < 6 ? (*tries)++ : 6), RETRY_MOST_US);
	const int64_t end = clock_now_us() + most_us / 2 + random_u32() % (most_us / 2);
	enum loop_event event = LOOP_ACTIVE;

	while (event == LOOP_ACTIVE)
		event = loop_turn(&s->loop, &(struct wait){ clock_sooner(end, limit->until_us), limit->interrupt_fd });
	if (event == LOOP_INTERRUPTED)
		*code = ZK_INTERRUPTED;
	return event == LOOP_TIME && clock_now_us() < limit->until_us;
}

enum zk_code
session_retry(struct session *s, session_try *try, void *context, const struct wait *limit)
{
	unsigned int tries = 0;
	enum zk_code code;

	do {
		code = try(context, limit);
		if (session_is_lost(code))
			session_leave_server(s);
	} while (session_is_lost(code) && session_pause(s, &tries, limit, &code));
	return code;
}

/* -- The end ---------------------------------------------------------------- */

/* An error that another connection may not have, such as that the session has moved, counts as a loss of this one. */
static enum zk_code
try_close(void *context, const struct wait *limit)
{
	struct session *const s = context;
	struct wire_in body;
	enum zk_code code;

	if (session_is_connected(s))
		wire_out_free(&s->out);
	else
		session_begin(s);
	code = session_call(s, session_put_path(s, WIRE_CLOSE, NULL), &body, limit);
	return code == ZK_OK || code == ZK_EXPIRED || code == ZK_SASL_REQUIRED || code == ZK_INTERRUPTED
	    ? code
	    : ZK_CONNECTION_LOSS;
}

enum zk_code
session_close(struct session *s, const struct wait *wait)
{
	const struct wait limit = session_limit(s, wait);
	enum zk_code code = ZK_OK;

	if (s->granted.id != 0)
		code = session_retry(s, try_close, s, &limit);
	session_disconnect(s);
	channel_close(&s->old);
	if (code == ZK_OK || code == ZK_EXPIRED)
		s->granted.id = 0;
	return code == ZK_EXPIRED ? ZK_OK : code;
}

void
session_abandon(struct session *s)
{

	if (s->channel.state == CHANNEL_OPEN) {
		wire_out_free(&s->out);
		(void)session_put_path(s, WIRE_CLOSE, NULL);
		(void)session_send(s, &at_once);
	}
	session_leave_server(s);
	session_free(s);
}
