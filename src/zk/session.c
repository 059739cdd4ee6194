/* SPDX-License-Identifier: MIT */
#include "zk/session.h"

#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/random.h"
#include "lock/lease.h"

#define PAUSE_US 20000 /* at most, before the second try; twice as long before each further one */
#define PAUSE_MOST_US 1000000
#define PINGS 6		 /* while we wait, in the length of the session */
#define PLACE_TRIES 30	 /* a server still counts a connection for a moment after its end */
#define POLL_PACKETS 100 /* at most are taken at once; the next call takes the rest */

void
session_init(struct session *s, const struct zk_url *url, const struct log *log)
{
	memset(s, 0, sizeof(*s));
	s->url = url;
	s->log = log;
	s->server = (int)(random_u32() % (uint32_t)url->servers);
	connection_init(&s->connection, &s->loop);
	s->old.fd = -1;
}

void
session_free(struct session *s)
{
	connection_close(&s->connection);
	channel_close(&s->old);
	wire_out_free(&s->out);
}

static void
next_server(struct session *s)
{
	connection_close(&s->connection);
	s->server = (s->server + 1) % s->url->servers;
}

bool
session_is_connected(const struct session *s)
{
	return connection_works(&s->connection);
}

int
session_fd(const struct session *s)
{
	return s->connection.channel.state == CHANNEL_OPEN ? s->connection.channel.fd : -1;
}

const char *
session_local(const struct session *s)
{
	return channel_local(&s->connection.channel);
}

const struct reason *
session_reason(const struct session *s)
{
	return &s->connection.reason;
}

void
session_disconnect(struct session *s)
{
	connection_close(&s->connection);
}

void
session_leave_server(struct session *s)
{
	if (s->connection.channel.state == CHANNEL_OPEN)
		next_server(s);
}

/* Note why a function of the connection failed. */
static enum zk_code
blame_server(struct session *s, enum zk_code code)
{
	char name[300];

	if (code == ZK_OK || code == ZK_INTERRUPTED)
		return code;
	s->reason = s->connection.reason;
	if (code != ZK_LOCAL)
		reason_prefix(&s->reason, zk_url_server(s->url, s->server, name, sizeof(name)));
	return code;
}

/* -- Putting requests ------------------------------------------------------- */

int32_t
session_put(struct session *s, const struct wire_request *request)
{
	wire_put(&s->out, ++s->xid, request);
	return s->xid;
}

int32_t
session_put_path(struct session *s, enum wire_op op, const char *path, int32_t argument)
{
	return session_put(s, &(struct wire_request){ .op = op, .path = path, .argument = argument });
}

int32_t
session_put_watch(struct session *s, struct watched *watched, const char *path)
{
	watched->path = path;
	watched->event = 0;
	watched->xid = session_put_path(s, WIRE_EXISTS, path, 1);
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

/* The first fields of a packet that is no ConnectResponse. */
struct header {
	int32_t xid;
	int32_t error;
};

static void
take_event(struct session *s, struct wire_in *packet)
{
	struct watched *const watched[] = { &s->ours, &s->before };
	const int32_t type = wire_get_int(packet);
	struct wire_text path;
	int i;

	(void)wire_get_int(packet); /* the state of the session */
	path = wire_get_text(packet);
	for (i = 0; i < 2; i++) {
		if (watched[i]->path != NULL && strlen(watched[i]->path) == path.length &&
		    memcmp(watched[i]->path, path.bytes, path.length) == 0)
			watched[i]->event = type;
	}
}

/* Take the next packet.  ZK_OK: *header and *packet have it. */
static enum zk_code
take_packet(struct session *s, struct header *header, struct wire_in *packet, const struct wait *limit)
{
	enum zk_code code = connection_take(&s->connection, packet, limit);

	if (code != ZK_OK)
		return blame_server(s, code);
	header->xid = wire_get_int(packet);
	(void)wire_get_long(packet); /* zxid */
	header->error = wire_get_int(packet);
	if (packet->bad)
		return blame_server(s, connection_refuse(&s->connection));
	if (header->xid == WIRE_XID_EVENT)
		take_event(s, packet);
	else if (header->xid == s->ours.xid && header->error == ZK_NO_NODE)
		s->ours.event = WIRE_EVENT_DELETED;
	else if (header->xid == WIRE_XID_AUTH && header->error != ZK_OK)
		return ZK_AUTH_FAILED;
	/* The server answers one request so, whichever is the first, and closes the connection. */
	return header->error == ZK_SASL_REQUIRED ? ZK_SASL_REQUIRED : ZK_OK;
}

enum zk_code
session_reply(struct session *s, int32_t xid, struct wire_in *body, const struct wait *wait)
{
	const struct wait limit = { clock_sooner(s->until_us, wait->until_us), wait->interrupt_fd };
	struct header header;
	enum zk_code code;

	for (;;) {
		code = take_packet(s, &header, body, &limit);
		if (code != ZK_OK)
			return code;
		if (header.xid == xid)
			break;
		if (clock_now_us() >= limit.until_us) {
			reason_set(&s->connection.reason, "no answer in time");
			return blame_server(s, ZK_TIMEOUT);
		}
	}
	return header.error > 0 ? ZK_SYSTEM_ERROR : (enum zk_code)header.error;
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
	const int64_t length_us = (int64_t)s->length_ms * 1000;
	int64_t now = clock_now_us(), due = now + length_us / PINGS;
	struct header header;
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
			code = take_packet(s, &header, &packet, &limit);
		now = clock_now_us();
		if (code == ZK_OK && header.xid == WIRE_XID_PING) {
			due = now + length_us / PINGS;
			pinged = false;
		} else if (code == ZK_TIMEOUT && !pinged)
			code = ZK_OK;
	}
	return code == ZK_TIMEOUT && now >= wait->until_us ? ZK_OK : code;
}

enum zk_code
session_poll(struct session *s)
{
	const struct wait at_once = { 0, -1 };
	struct header header;
	struct wire_in packet;
	enum zk_code code;
	int packets = 0;

	do {
		code = take_packet(s, &header, &packet, &at_once);
	} while (code == ZK_OK && ++packets < POLL_PACKETS);
	return code == ZK_TIMEOUT ? ZK_OK : code;
}

/* -- Connecting ------------------------------------------------------------- */

void
session_begin(struct session *s, int32_t length_ms)
{
	struct wire_session request = { .id = s->id, .length_ms = length_ms };

	if (session_is_connected(s)) {
		channel_move(&s->old, &s->connection.channel);
	}
	connection_close(&s->connection);
	wire_out_free(&s->out);
	memcpy(request.password, s->password, sizeof(request.password));
	wire_put_connect(&s->out, &request);
	if (s->url->user[0] != '\0')
		wire_put_auth(&s->out, s->url->user, s->url->password);
	s->begun = true;
	s->ours.event = s->before.event = s->ours.xid = s->before.xid = 0;
}

/*
 * Does something else than ZooKeeper listen there?  Redis and web servers are silent until a line ends, so send one: the
 * command of an administrator, which ZooKeeper answers in one of three ways.
 */
static bool
is_other_server(struct session *s, const struct wait *limit)
{
	struct loop loop = { .watches = NULL };
	struct connection c;
	char text[5] = "";

	connection_init(&c, &loop);
	if (connection_open(&c, &s->url->server[s->server], limit) == ZK_OK)
		(void)connection_ask(&c, "srvr\r\n\r\n", text, sizeof(text), limit);
	connection_close(&c);
	return text[0] != '\0' && strcmp(text, "Zook") != 0 && strcmp(text, "This") != 0 && strcmp(text, "srvr") != 0;
}

static enum zk_code
take_connected(struct session *s, const struct wait *limit)
{
	const int64_t now = clock_now_us();
	const struct wait half = { now + (limit->until_us - now) / 2, limit->interrupt_fd };
	struct wire_session granted;
	struct wire_in packet;
	enum zk_code code = connection_take(&s->connection, &packet, s->id == 0 ? &half : limit);

	if (code == ZK_TIMEOUT && s->id == 0) {
		if (!s->connection.channel.received && is_other_server(s, limit))
			return connection_refuse(&s->connection);
		code = connection_take(&s->connection, &packet, limit);
	}
	if (code != ZK_OK)
		return code;
	if (!wire_get_connected(&packet, &granted) || (s->id != 0 && granted.id != 0 && granted.id != s->id))
		return connection_refuse(&s->connection);
	if (granted.id == 0)
		return ZK_EXPIRED;
	if (s->id == 0 || granted.length_ms < s->length_ms)
		s->length_ms = granted.length_ms;
	s->id = granted.id;
	memcpy(s->password, granted.password, sizeof(s->password));
	return ZK_OK;
}

/* Connect to this server within its share of the time, send what was put, and take the ConnectResponse. */
static enum zk_code
greet(struct session *s, const struct wait *share, const struct wait *limit)
{
	enum zk_code code = connection_open(&s->connection, &s->url->server[s->server], share);

	s->accepted = code == ZK_OK;
	s->connected_us = clock_now_us();
	if (code == ZK_OK)
		code = connection_send(&s->connection, &s->out, limit);
	if (code == ZK_OK)
		code = take_connected(s, limit);
	s->silent = s->accepted && !s->connection.channel.received;
	if (code != ZK_EXPIRED && blame_server(s, code) != ZK_OK && code != ZK_INTERRUPTED) {
		log_debug(s->log, "%s", s->reason.text);
		next_server(s);
	}
	return code;
}

/* Close the old connection, and wait until the server has, too: then it takes another one. */
static void
give_place_up(struct session *s, const struct wait *limit)
{
	struct pollfd fd = { .fd = s->old.fd, .events = POLLIN };
	struct timespec left;
	char unread[1024];

	(void)shutdown(fd.fd, SHUT_WR);
	while (ppoll(&fd, 1, clock_until(clock_now_us(), limit->until_us, &left), NULL) > 0 &&
	    read(fd.fd, unread, sizeof(unread)) > 0)
		continue;
	channel_close(&s->old);
}

/*
 * Try the servers in turn, each with its share of the time, but not the one that was tried last.  With `first_only` all are
 * tried, and the first that accepts a connection gets all of the time: no other is tried after it.
 *
 * While the old connection is open, a server that hangs up may have no place for another one, so the next one is tried.  If
 * all hang up, the old connection is closed, and the first one is tried again.
 */
static enum zk_code
try_servers(struct session *s, const struct wait *limit, bool first_only)
{
	enum zk_code code = ZK_CONNECTION_LOSS;
	struct wait share = *limit;
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
		give_place_up(s, limit);
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
	code = connection_send(&s->connection, &s->out, &limit);
	wire_out_free(&s->out);
	return blame_server(s, code);
}

enum zk_code
session_create(struct session *s, int64_t length_ms, const struct wait *wait)
{
	const int32_t asked_ms = length_ms > INT32_MAX ? INT32_MAX : (int32_t)length_ms;
	const struct wait limit = session_limit(s, wait);
	const int64_t time_us = limit.until_us - clock_now_us();
	struct wait others = limit;
	struct reason why[2];
	unsigned int tries = 0;
	enum zk_code code;
	bool any = false;

	s->id = 0;
	memset(s->password, 0, sizeof(s->password));
	s->valid_until_us = 0;
	do {
		why[0] = s->reason;
		why[1] = s->connection.reason;
		session_begin(s, asked_ms);
		code = try_servers(s, &limit, true);
		any = any || s->silent;
	} while (code == ZK_CONNECTION_LOSS && any && session_pause(s, &tries, &limit, &code));
	if (code == ZK_TIMEOUT && tries > 0 && limit.until_us - s->connected_us < time_us / s->url->servers) {
		/* It had less than its share, so the reason of the try before it is better. */
		s->reason = why[0];
		s->connection.reason = why[1];
	} else if (code == ZK_TIMEOUT && s->accepted && s->url->servers > 1) {
		session_begin(s, asked_ms);
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
	const int64_t until = lease_valid_until(s->connected_us, (int64_t)s->length_ms * 1000);

	if (until > s->valid_until_us)
		s->valid_until_us = until;
	channel_close(&s->old);
}

bool
session_is_fresh(const struct session *s)
{
	return clock_now_us() < s->valid_until_us - (int64_t)s->length_ms * 500;
}

bool
session_pause(struct session *s, unsigned int *tries, const struct wait *limit, enum zk_code *code)
{
	const int64_t most_us = clock_sooner((int64_t)PAUSE_US << (*tries < 6 ? (*tries)++ : 6), PAUSE_MOST_US);
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
		session_begin(s, s->length_ms);
	code = session_call(s, session_put_path(s, WIRE_CLOSE, NULL, 0), &body, limit);
	return code == ZK_OK || code == ZK_EXPIRED || code == ZK_SASL_REQUIRED || code == ZK_INTERRUPTED
	    ? code
	    : ZK_CONNECTION_LOSS;
}

enum zk_code
session_close(struct session *s, const struct wait *wait)
{
	const struct wait limit = session_limit(s, wait);
	enum zk_code code = ZK_OK;

	if (s->id != 0)
		code = session_retry(s, try_close, s, &limit);
	session_disconnect(s);
	channel_close(&s->old);
	if (code == ZK_OK || code == ZK_EXPIRED)
		s->id = 0;
	return code == ZK_EXPIRED ? ZK_OK : code;
}

void
session_abandon(struct session *s)
{
	const struct wait at_once = { 0, -1 };

	if (s->connection.channel.state == CHANNEL_OPEN) {
		wire_out_free(&s->out);
		(void)session_put_path(s, WIRE_CLOSE, NULL, 0);
		(void)session_send(s, &at_once);
	}
	session_leave_server(s);
	session_free(s);
}
