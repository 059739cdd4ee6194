/* SPDX-License-Identifier: MIT */
#include "zk/session.h"

#include <string.h>

#include "base/clock.h"
#include "base/random.h"
#include "lock/lease.h"

#define PAUSE_US 20000
#define POLL_PACKETS 100 /* so many at most are taken at once; what is left comes with the next call */

void
session_init(struct session *s, const struct zk_url *url, const struct log *log)
{
	memset(s, 0, sizeof(*s));
	s->url = url;
	s->log = log;
	s->server = (int)(random_u32() % (uint32_t)url->servers);
	connection_init(&s->connection, &s->loop);
}

void
session_free(struct session *s)
{
	connection_close(&s->connection);
	wire_out_free(&s->out);
}

static void
next_server(struct session *s)
{
	connection_close(&s->connection);
	s->server = (s->server + 1) % s->url->servers;
}

void
session_leave_server(struct session *s)
{
	if (s->connection.open)
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

/* This server did not do: on to the next one. */
static void
pass_server(struct session *s, enum zk_code code)
{
	if (blame_server(s, code) == ZK_INTERRUPTED)
		return;
	log_debug(s->log, "%s", s->reason.text);
	next_server(s);
}

/* -- Putting requests ------------------------------------------------------- */

int32_t
session_put_path(struct session *s, enum wire_op op, const char *path, int32_t argument)
{
	wire_put_path(&s->out, ++s->xid, op, path, argument);
	return s->xid;
}

int32_t
session_put_set_data(struct session *s, const char *path, const char *data, int32_t version)
{
	wire_put_set_data(&s->out, ++s->xid, path, data, version);
	return s->xid;
}

int32_t
session_put_create(struct session *s, enum wire_op op, const char *path)
{
	const struct wire_node node = { path, "", s->url->user[0] != '\0' };

	wire_put_create(&s->out, ++s->xid, op, &node);
	return s->xid;
}

int32_t
session_put_close(struct session *s)
{
	wire_put_close(&s->out, ++s->xid);
	return s->xid;
}

int32_t
session_put_watch(struct session *s, struct watched *watched, const char *path)
{
	watched->path = path;
	watched->event = 0;
	watched->xid = session_put_path(s, WIRE_EXISTS, path, 1);
	return watched->xid;
}

void
session_put_ping(struct session *s)
{
	wire_put_ping(&s->out);
	s->pinged = true;
}

enum zk_code
session_send(struct session *s, const struct limit *limit)
{
	const enum zk_code code = connection_send(&s->connection, &s->out, limit);

	wire_out_free(&s->out);
	return blame_server(s, code);
}

/* -- Packets that come in --------------------------------------------------- */

static void
take_event(struct session *s, struct wire_in *packet)
{
	const struct wire_event event = wire_get_event(packet);
	struct watched *const watched[] = { &s->ours, &s->before };
	int i;

	for (i = 0; i < 2; i++) {
		if (watched[i]->path != NULL && strlen(watched[i]->path) == event.path.length &&
		    memcmp(watched[i]->path, event.path.bytes, event.path.length) == 0)
			watched[i]->event = event.type;
	}
}

/* Take the next packet.  ZK_OK: *header and *packet have it. */
static enum zk_code
take_packet(struct session *s, struct wire_header *header, struct wire_in *packet, const struct limit *limit)
{
	enum zk_code code = connection_take(&s->connection, packet, limit);

	if (code != ZK_OK)
		return blame_server(s, code);
	*header = wire_get_header(packet);
	if (packet->bad) {
		reason_set(&s->connection.reason, "this is no ZooKeeper server (it answered something else)");
		connection_close(&s->connection);
		return blame_server(s, ZK_CONNECTION_LOSS);
	}
	if (header->xid == WIRE_XID_EVENT)
		take_event(s, packet);
	else if (header->xid == WIRE_XID_PING)
		s->pinged = false;
	else if (header->xid == s->ours.xid && header->error == ZK_NO_NODE)
		s->ours.event = WIRE_EVENT_DELETED;
	else if (header->xid == WIRE_XID_AUTH && header->error != ZK_OK)
		return ZK_AUTH_FAILED;
	return ZK_OK;
}

enum zk_code
session_reply(struct session *s, int32_t xid, struct wire_in *body, const struct limit *limit)
{
	struct wire_header header;
	enum zk_code code;

	for (;;) {
		code = take_packet(s, &header, body, limit);
		if (code != ZK_OK)
			return code;
		if (header.xid == xid)
			break;
		if (clock_now_us() >= limit->until_us) {
			reason_set(&s->connection.reason, "no answer in time");
			return blame_server(s, ZK_TIMEOUT);
		}
	}
	return header.error > 0 ? ZK_SYSTEM_ERROR : (enum zk_code)header.error;
}

enum zk_code
session_call(struct session *s, int32_t xid, struct wire_in *body, const struct limit *limit)
{
	const enum zk_code code = session_send(s, limit);

	return code == ZK_OK ? session_reply(s, xid, body, limit) : code;
}

enum zk_code
session_wait(struct session *s, const struct limit *limit)
{
	struct wire_header header;
	struct wire_in packet;
	enum zk_code code = ZK_OK;
	const bool pinged = s->pinged;

	while (code == ZK_OK && s->ours.event == 0 && s->before.event == 0 && s->pinged == pinged) {
		code = take_packet(s, &header, &packet, limit);
		if (code == ZK_OK && clock_now_us() >= limit->until_us)
			return ZK_TIMEOUT;
	}
	return code;
}

enum zk_code
session_poll(struct session *s)
{
	const struct limit at_once = { 0, -1 };
	struct wire_header header;
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
	struct wire_connect request = { .timeout_ms = length_ms, .session = s->id };

	connection_close(&s->connection);
	wire_out_free(&s->out);
	memcpy(request.password, s->password, sizeof(request.password));
	wire_put_connect(&s->out, &request);
	if (s->url->user[0] != '\0')
		wire_put_auth(&s->out, s->url->user, s->url->password);
	s->pinged = false;
	s->ours.event = s->before.event = s->ours.xid = s->before.xid = 0;
}

static enum zk_code
take_connected(struct session *s, const struct limit *limit)
{
	struct wire_connected connected;
	struct wire_in packet;
	enum zk_code code = connection_take(&s->connection, &packet, limit);

	if (code != ZK_OK)
		return code;
	if (!wire_get_connected(&packet, &connected) ||
	    (s->id != 0 && connected.session != 0 && connected.session != s->id)) {
		reason_set(&s->connection.reason, "this is no ZooKeeper server (it answered something else)");
		return ZK_CONNECTION_LOSS;
	}
	if (connected.session == 0)
		return ZK_EXPIRED;
	if (s->id == 0 || connected.timeout_ms < s->length_ms)
		s->length_ms = connected.timeout_ms;
	s->id = connected.session;
	memcpy(s->password, connected.password, sizeof(s->password));
	return ZK_OK;
}

/* Send what was put to this server, which has accepted a connection, and take the ConnectResponse. */
static enum zk_code
greet(struct session *s, const struct limit *limit)
{
	enum zk_code code;

	s->connected_us = clock_now_us();
	code = connection_send(&s->connection, &s->out, limit);
	if (code == ZK_OK)
		code = take_connected(s, limit);
	if (code != ZK_OK && code != ZK_EXPIRED)
		pass_server(s, code);
	return code;
}

/*
 * Try the servers in turn, each with its share of the time.  `first_only`: the first that accepts a connection gets all of
 * the time, and no other is tried after it.
 */
static enum zk_code
try_servers(struct session *s, const struct limit *limit, bool first_only)
{
	enum zk_code code = ZK_CONNECTION_LOSS;
	struct limit share = *limit;
	int64_t now;
	int left;

	for (left = s->url->servers; left > 0 && (code == ZK_CONNECTION_LOSS || code == ZK_TIMEOUT); left--) {
		now = clock_now_us();
		share.until_us = now + (limit->until_us - now) / left;
		code = connection_open(&s->connection, &s->url->server[s->server], &share);
		if (code == ZK_OK) {
			code = greet(s, first_only ? limit : &share);
			if (first_only)
				break;
		} else
			pass_server(s, code);
	}
	wire_out_free(&s->out);
	return code;
}

enum zk_code
session_attach(struct session *s, const struct limit *limit)
{
	return try_servers(s, limit, true);
}

enum zk_code
session_create(struct session *s, int64_t length_ms, const struct limit *limit)
{
	enum zk_code code;

	s->id = 0;
	memset(s->password, 0, sizeof(s->password));
	s->valid_until_us = 0;
	session_begin(s, length_ms > INT32_MAX ? INT32_MAX : (int32_t)length_ms);
	code = try_servers(s, limit, false);
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
}

bool
session_is_fresh(const struct session *s)
{
	return clock_now_us() < s->valid_until_us - (int64_t)s->length_ms * 500;
}

enum zk_code
session_pause(struct session *s, const struct limit *limit)
{
	const int64_t end = clock_add(clock_now_us(), PAUSE_US);
	enum loop_event event = LOOP_ACTIVE;

	while (event == LOOP_ACTIVE)
		event = loop_turn(&s->loop, clock_sooner(end, limit->until_us), limit->interrupt_fd);
	if (event == LOOP_INTERRUPTED)
		return ZK_INTERRUPTED;
	return clock_now_us() < limit->until_us ? ZK_OK : ZK_TIMEOUT;
}

/* -- The end ---------------------------------------------------------------- */

enum zk_code
session_close(struct session *s, const struct limit *limit)
{
	enum zk_code code = ZK_CONNECTION_LOSS;
	struct wire_in body;
	int32_t xid;

	if (s->id == 0)
		return ZK_OK;
	if (s->connection.open && s->connection.broken == ZK_OK) {
		wire_out_free(&s->out);
		xid = session_put_close(s);
		code = session_call(s, xid, &body, limit);
	}
	while (code != ZK_OK && code != ZK_EXPIRED && code != ZK_INTERRUPTED && clock_now_us() < limit->until_us) {
		if (session_pause(s, limit) != ZK_OK)
			break;
		session_begin(s, s->length_ms);
		xid = session_put_close(s);
		code = session_attach(s, limit);
		if (code == ZK_OK)
			code = session_reply(s, xid, &body, limit);
	}
	connection_close(&s->connection);
	if (code == ZK_OK || code == ZK_EXPIRED)
		s->id = 0;
	return code == ZK_EXPIRED ? ZK_OK : code;
}
