/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "lock/loss.h"
#include "zk/operations.h"

#define REPORTS_US 1200000 /* half a tick, which is mostly 2 s long, and a little */
#define TRIES_MAX 16	   /* other holds may change the data between our read and our write */

/* One release operation. */
struct release {
	struct zk_backend *backend;
	const char *hold;
	int64_t keep_ms;
	const char *kept_by; /* the option */
	struct wait limit;
	bool sent;   /* the lock node may have been deleted by an earlier try, or the session ended */
	bool left;   /* other holds remain */
	bool leaves; /* the data may have been written without our hold by an earlier try */
	bool shared; /* the lock node is there, and our hold is not: the session is that of other holds */
	bool keeps;  /* it may be kept by an earlier try */
};

/* Attach to the session if there is no connection.  With the data of the lock node, if it is not known. */
static enum zk_code
connect_and_read(struct release *r)
{
	struct zk_backend *const z = r->backend;
	struct session *const s = &z->session;
	const bool attach = !s->connection.open || s->connection.broken != ZK_OK;
	struct wire_in body;
	enum zk_code code = ZK_OK;
	int32_t xid = 0;

	if (attach)
		session_begin(s, s->length_ms);
	if (!z->entry.known)
		xid = session_put_path(s, WIRE_GET_DATA, z->entry.path, 0);
	if (attach)
		code = session_attach(s, &r->limit);
	else if (xid != 0)
		code = session_send(s, &r->limit);
	if (code == ZK_OK && xid != 0)
		code = session_reply(s, xid, &body, &r->limit);
	return code == ZK_OK && xid != 0 ? zk_read_entry(z, &body) : code;
}

/* Write the data without our hold. */
static enum zk_code
leave_lock(struct release *r)
{
	struct session *const s = &r->backend->session;
	struct wire_in body;
	enum zk_code code;
	int32_t xid;

	r->leaves = true;
	(void)metadata_remove_hold(&r->backend->entry.metadata, r->hold);
	xid = zk_put_metadata(r->backend);
	r->backend->entry.known = false;
	code = xid == 0 ? ZK_LOCAL : session_call(s, xid, &body, &r->limit);
	r->left = code == ZK_OK;
	return code;
}

/*
 * Keep the lock for a while: attach with that length, and mark the data behind it.  If there are other holds after all,
 * the length is restored.
 */
static enum zk_code
keep_lock(struct release *r)
{
	struct zk_backend *const z = r->backend;
	struct session *const s = &z->session;
	const int32_t length_ms = s->length_ms;
	struct wire_in body;
	enum zk_code code;
	int32_t xid;

	r->keeps = true;
	s->length_ms = r->keep_ms < length_ms ? (int32_t)r->keep_ms : length_ms;
	session_begin(s, s->length_ms);
	(void)snprintf(z->entry.metadata.kept_by, METADATA_OPTION_SIZE, "%s", r->kept_by);
	xid = zk_put_metadata(z); /* with the new length */
	s->length_ms = length_ms;
	z->entry.known = false;
	code = xid == 0 ? ZK_LOCAL : session_attach(s, &r->limit);
	if (code == ZK_OK)
		code = session_reply(s, xid, &body, &r->limit);
	if (code == ZK_BAD_VERSION) {
		s->length_ms = length_ms;
		connection_close(&s->connection); /* so that the next try attaches */
	}
	return code;
}

/*
 * The ACL of the node of the KEY does not let us delete our nodes, but they end with the session.  First the lock is
 * marked as released, so that nobody enters it again meanwhile; if we may not write either, it has no other holds.
 */
static enum zk_code
end_session(struct release *r)
{
	struct zk_backend *const z = r->backend;
	struct wire_in body;
	enum zk_code code;
	int32_t xid;

	log_debug(&z->log, "its ACL does not let us delete our nodes; ending the session");
	(void)snprintf(z->entry.metadata.kept_by, METADATA_OPTION_SIZE, "%s", r->kept_by);
	xid = zk_put_metadata(z);
	code = xid == 0 ? ZK_LOCAL : session_call(&z->session, xid, &body, &r->limit);
	r->keeps = code != ZK_BAD_VERSION;
	r->sent = code == ZK_OK || code == ZK_NO_AUTH;
	return r->sent ? session_close(&z->session, &r->limit) : code;
}

/*
 * Delete our nodes in one transaction, if the data has not changed, and end the session behind it.  When the transaction
 * is answered the lock is free; the session, which has nothing any more, is not waited for.
 */
static enum zk_code
delete_nodes(struct release *r)
{
	struct zk_backend *const z = r->backend;
	struct session *const s = &z->session;
	char path[PATH_SIZE];
	struct wire_text none;
	struct wire_in body;
	enum zk_code code;
	int i;

	wire_multi_begin(&s->out, ++s->xid);
	for (i = 0; i < ENTRY_NODES; i++) {
		entry_node_path(&z->entry, i, path);
		wire_multi_delete(&s->out, path, i == 0 ? z->entry.version : -1);
	}
	wire_multi_end(&s->out);
	r->sent = true;
	z->entry.known = false;
	code = session_call(s, s->xid, &body, &r->limit);
	if (code == ZK_OK)
		code = (enum zk_code)wire_get_multi(&body, &none);
	if (code == ZK_BAD_VERSION || code == ZK_NO_NODE || code == ZK_NO_AUTH)
		r->sent = false;
	if (code == ZK_NO_AUTH)
		return end_session(r);
	if (code != ZK_OK)
		return code;
	(void)session_put_close(s);
	(void)session_send(s, &r->limit);
	connection_close(&s->connection);
	s->id = 0;
	return ZK_OK;
}

/* One try.  ZK_BAD_VERSION: again. */
static enum zk_code
try_release(struct release *r)
{
	struct zk_backend *const z = r->backend;
	enum zk_code code;

	if (r->keep_ms > 0)
		z->entry.known = false; /* what shortens the session must not rest on old data */
	code = connect_and_read(r);
	if (code != ZK_OK)
		return code;
	if (r->keep_ms == KEEP_NOTHING)
		return session_close(&z->session, &r->limit);
	r->shared = !metadata_has_hold(&z->entry.metadata, r->hold) ||
	    (z->entry.metadata.kept_by[0] != '\0' && !r->keeps);
	r->left = r->shared && r->leaves;
	if (r->shared)
		return r->left ? ZK_OK : ZK_NO_NODE;
	if (metadata_holds(&z->entry.metadata) > 1)
		return leave_lock(r);
	return r->keep_ms > 0 ? keep_lock(r) : delete_nodes(r);
}

/*
 * Is our lock node there, although the transaction says that one of our nodes is not?  Then the nodes that others look
 * for have been removed by hand, and the session is ended instead.
 */
static enum zk_code
end_the_rest(struct release *r)
{
	enum zk_code code;

	r->backend->entry.known = false;
	code = connect_and_read(r);
	if (code != ZK_OK || !metadata_has_hold(&r->backend->entry.metadata, r->hold))
		return code == ZK_OK ? ZK_NO_NODE : code;
	return session_close(&r->backend->session, &r->limit);
}

/*
 * A server that learns of a new session tells the leader of it with its full length, within half a tick.  A session is
 * at least two ticks long.
 */
static void
let_reports_pass(struct release *r)
{
	struct session *const s = &r->backend->session;
	const int64_t began = clock_now_us(), quarter = (int64_t)s->length_ms * 250;
	const int64_t until_us = clock_add(s->created_us, quarter < REPORTS_US ? quarter : REPORTS_US);

	if (r->keep_ms <= 0 || s->created_us == 0)
		return;
	while (clock_now_us() < until_us)
		(void)loop_turn(&s->loop, until_us, -1);
	r->keep_ms -= (clock_now_us() - began) / 1000;
	if (r->keep_ms < 0)
		r->keep_ms = 0;
}

static enum zk_code
release(struct release *r)
{
	struct zk_backend *const z = r->backend;
	const struct wait most = { clock_add(clock_now_us(), 2 * z->node_timeout_us), -1 };
	enum zk_code code = ZK_TIMEOUT;
	unsigned int tries = 0;

	while (tries < TRIES_MAX && clock_now_us() < most.until_us) {
		r->limit = zk_limit(z, most.until_us, -1);
		code = try_release(r);
		if (code == ZK_NO_NODE && !r->sent && !r->shared)
			code = end_the_rest(r);
		if (session_is_lost(code)) {
			z->entry.known = false;
			session_leave_server(&z->session);
			(void)session_pause(&z->session, &tries, &most, &code);
		} else if (code == ZK_BAD_VERSION)
			tries++;
		else
			break;
	}
	return r->sent && (code == ZK_NO_NODE || code == ZK_EXPIRED) ? ZK_OK : code;
}

enum status
zk_release(struct backend *backend, const struct lease *lease, int64_t keep_ms, enum ownership *ownership,
    struct err *err)
{
	struct zk_backend *z = (struct zk_backend *)backend;
	struct zk_token token;
	struct release r = { .backend = z,
		.hold = token.hold,
		.keep_ms = keep_ms,
		.sent = lease->again,
		.leaves = lease->again,
		.keeps = lease->again,
		.kept_by = lease->kept_by != NULL ? lease->kept_by : "min-hold" };
	enum zk_code code;

	if (!zk_adopt(z, lease, &token, err))
		return ST_USAGE;
	log_debug(&z->log, keep_ms > 0 ? "releasing the lock in %d ms" : "releasing the lock", (int)keep_ms);
	let_reports_pass(&r);
	code = release(&r);
	if (code == ZK_NO_NODE && lease->owner != NULL && !r.shared)
		(void)session_close(&z->session, &r.limit); /* nobody else uses it */
	connection_close(&z->session.connection);
	if (code == ZK_OK) {
		zk_log_answer(z, "done");
		*ownership = r.left ? OWNED_STILL : OWNED;
		return ST_OK;
	}
	if (code != ZK_NO_NODE && code != ZK_EXPIRED)
		return zk_error(z, code, err);
	*ownership = lease->owner != NULL ? OWNED_BY_NOBODY : zk_look_owner(z, lease->key);
	return loss_error(*ownership, err);
}
