/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "zk/operations.h"

#define REPORTS_US 1200000 /* half a tick, which is mostly 2 s long, and a little */
#define TRIES_MAX 16	   /* other holds may change the data between our read and our write */

/* One release operation. */
struct release {
	struct entry *entry;
	int64_t keep_ms;
	const char *kept_by; /* the option */
	bool unsure;	     /* an earlier try may have been executed */
	bool shared;	     /* the lock node is there, and our hold is not: the session is that of other holds */
	bool left;	     /* other holds remain */
};

/* Send a change, and take its reply.  If the reply is lost, it may have been done.  Some errors say that it was not. */
static enum zk_code
change(struct release *r, int32_t xid, bool multi, const struct wait *wait)
{
	const bool unsure = r->unsure;
	struct wire_text none;
	struct wire_in body;
	enum zk_code code;

	r->unsure = true;
	code = session_call(r->entry->session, xid, &body, wait);
	if (code == ZK_OK && multi)
		code = wire_get_multi(&body, &none);
	if (code == ZK_BAD_VERSION || code == ZK_NO_NODE || code == ZK_NO_AUTH || code == ZK_EXPIRED)
		r->unsure = unsure;
	return code;
}

/*
 * Keep the lock for a while: attach with that length, and mark the data behind it.  If there are other holds after all,
 * the length is restored.
 */
static enum zk_code
keep_lock(struct release *r, const struct wait *wait)
{
	struct session *const s = r->entry->session;
	const int32_t length_ms = s->granted.length_ms;
	enum zk_code code;
	int32_t xid;

	s->granted.length_ms = r->keep_ms < length_ms ? (int32_t)r->keep_ms : length_ms;
	session_begin(s);
	(void)snprintf(r->entry->metadata.kept_by, METADATA_OPTION_SIZE, "%s", r->kept_by);
	xid = entry_put_write(r->entry); /* with the new length */
	s->granted.length_ms = length_ms;
	code = change(r, xid, false, wait);
	if (code == ZK_BAD_VERSION) {
		s->granted.length_ms = length_ms;
		session_disconnect(s); /* so that the next try attaches */
	}
	return code;
}

/*
 * The ACL of the node of the KEY does not let us delete our nodes, but they end with the session.  First the lock is
 * marked as released, so that nobody enters it again meanwhile; if we may not write either, it has no other holds.
 */
static enum zk_code
end_session(struct release *r, const struct wait *wait)
{
	enum zk_code code;

	log_debug(r->entry->session->log, "its ACL does not let us delete our nodes; ending the session");
	(void)snprintf(r->entry->metadata.kept_by, METADATA_OPTION_SIZE, "%s", r->kept_by);
	code = change(r, entry_put_write(r->entry), false, wait);
	if (code != ZK_OK && code != ZK_NO_AUTH)
		return code;
	r->unsure = true;
	return session_close(r->entry->session, wait);
}

/*
 * One of our nodes is not there.  If our lock node is, then the nodes that others look for have been removed by hand, and
 * the session is ended instead.
 */
static enum zk_code
end_the_rest(struct release *r, const struct wait *wait)
{
	enum zk_code code;

	r->entry->known = false;
	code = entry_read(r->entry, wait);
	if (code != ZK_OK)
		return code;
	return metadata_has_hold(&r->entry->metadata, r->entry->token.hold) ? session_close(r->entry->session, wait)
									    : ZK_NO_NODE;
}

/*
 * Delete our nodes in one transaction, if the data has not changed, and end the session behind it.  When the transaction
 * is answered the lock is free; the session, which has nothing any more, is not waited for.
 */
static enum zk_code
delete_nodes(struct release *r, const struct wait *wait)
{
	struct session *const s = r->entry->session;
	enum zk_code code = change(r, entry_put_delete(r->entry), true, wait);

	if (code == ZK_NO_AUTH)
		return end_session(r, wait);
	r->entry->known = false;
	if (code == ZK_NO_NODE)
		return end_the_rest(r, wait);
	if (code != ZK_OK)
		return code;
	(void)session_put_path(s, WIRE_CLOSE, NULL);
	(void)session_send(s, wait);
	session_disconnect(s);
	s->granted.id = 0;
	return ZK_OK;
}

/* ZK_BAD_VERSION: another hold has changed the data since it was read. */
static enum zk_code
release_once(struct release *r, const struct wait *wait)
{
	struct metadata *const m = &r->entry->metadata;
	enum zk_code code;

	if (r->keep_ms > 0)
		r->entry->known = false; /* what shortens the session must not rest on old data */
	code = entry_read(r->entry, wait);
	if (code != ZK_OK)
		return code;
	if (r->keep_ms == KEEP_NOTHING)
		return session_close(r->entry->session, wait);
	r->shared = !metadata_has_hold(m, r->entry->token.hold) || (m->kept_by[0] != '\0' && !r->unsure);
	r->left = r->shared && r->unsure;
	if (r->shared)
		return r->left ? ZK_OK : ZK_NO_NODE;
	if (metadata_holds(m) > 1) { /* write the data without our hold */
		(void)metadata_remove_hold(m, r->entry->token.hold);
		code = change(r, entry_put_write(r->entry), false, wait);
		r->left = code == ZK_OK;
		return code;
	}
	return r->keep_ms > 0 ? keep_lock(r, wait) : delete_nodes(r, wait);
}

static enum zk_code
try_release(void *context, const struct wait *wait)
{
	struct release *const r = context;
	enum zk_code code = ZK_BAD_VERSION;
	int tries;

	for (tries = 0; code == ZK_BAD_VERSION && tries < TRIES_MAX; tries++)
		code = release_once(r, wait);
	if (session_is_lost(code))
		r->entry->known = false;
	return r->unsure && (code == ZK_NO_NODE || code == ZK_EXPIRED) ? ZK_OK : code;
}

/*
 * A server that learns of a new session tells the leader of it with its full length, within half a tick.  A session is
 * at least two ticks long.
 */
static void
let_reports_pass(struct release *r)
{
	struct session *const s = r->entry->session;
	const int64_t began = clock_now_us(), quarter = (int64_t)s->granted.length_ms * 250;
	const int64_t until_us = clock_add(s->created_us, quarter < REPORTS_US ? quarter : REPORTS_US);

	if (r->keep_ms <= 0 || s->created_us == 0)
		return;
	while (clock_now_us() < until_us)
		(void)loop_turn(&s->loop, &(struct wait){ until_us, -1 });
	r->keep_ms -= (clock_now_us() - began) / 1000;
	if (r->keep_ms < 0)
		r->keep_ms = 0;
}

enum status
zk_release(struct backend *backend, const struct lease *lease, int64_t keep_ms, enum ownership *ownership,
    struct err *err)
{
	struct zk_backend *z = (struct zk_backend *)backend;
	struct release r = { .entry = &z->entry,
		.keep_ms = keep_ms,
		.unsure = lease->again,
		.kept_by = lease->kept_by != NULL ? lease->kept_by : "min-hold" };
	struct wait limit = { CLOCK_NEVER, -1 };
	enum zk_code code;

	if (!zk_adopt(z, lease, err))
		return ST_USAGE;
	log_debug(&z->log, keep_ms > 0 ? "releasing the lock in %d ms" : "releasing the lock", (int)keep_ms);
	let_reports_pass(&r);
	limit.until_us = clock_add(clock_now_us(), 2 * z->node_timeout_us);
	code = session_retry(&z->session, try_release, &r, &limit);
	if (code == ZK_NO_NODE && lease->owner != NULL && !r.shared)
		(void)session_close(&z->session, &limit); /* nobody else uses it */
	session_disconnect(&z->session);
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
