/* SPDX-License-Identifier: MIT */
/* The operations on a lock that is held: its renewal, its release, its break. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/duration.h"
#include "zk/backend.h"

#define REPORTS_US 1200000 /* half a tick, which is mostly 2 s long, and a little */
#define TRIES_MAX 16	   /* other holds may change the data between our read and our write */

static const struct wait forever = { CLOCK_NEVER, -1 };

/* -- Renewing ---------------------------------------------------------------- */

enum status
zk_renew(struct backend *backend, struct lease *lease, const struct wait *limit, struct renewed *renewed,
    struct err *err)
{
	struct zk_backend *z = (struct zk_backend *)backend;
	struct wait round;
	enum zk_code code;
	char length[32];

	if (!zk_adopt(z, lease, err))
		return ST_USAGE;
	if (lease->ttl_ms != 0 && lease->owner == NULL && lease->ttl_ms != z->session.granted.length_ms) {
		duration_show(z->session.granted.length_ms, length, sizeof(length));
		return err_set(err, ST_USAGE, "the length of a ZooKeeper lease cannot be changed; it is %s", length);
	}
	log_debug(&z->log, "renewing the lease");
	round = session_limit(&z->session, limit);
	code = session_retry(&z->session, entry_prove, &z->entry, &round);
	if (code == ZK_NO_NODE || code == ZK_EXPIRED) {
		/* A supervisor must know at once: it does not look for the new owner. */
		renewed->ownership = lease->owner != NULL ? OWNED_BY_NOBODY : zk_look_owner(z, lease->key);
		return loss_error(renewed->ownership, err);
	}
	if (code != ZK_OK)
		return zk_error(z, code, err);
	session_log(&z->session, "done", "");
	lease->ttl_ms = z->session.granted.length_ms;
	renewed->sent_us = z->session.connected_us;
	renewed->valid_until_us = z->session.valid_until_us;
	renewed->ownership = OWNED;
	memcpy(renewed->asked_by, z->entry.metadata.asked_by, sizeof(renewed->asked_by));
	z->asked = renewed->asked_by[0] != '\0';
	return ST_OK;
}

int
zk_alert_fd(struct backend *backend)
{
	const struct zk_backend *z = (const struct zk_backend *)backend;

	return session_fd(&z->session);
}

/*
 * The data of the lock node changes when another process enters the lock again.  That is no reason to renew, but the
 * watch must be set again.  It also changes when somebody asks the holder to end, which the next renewal reports.
 *
 * The end of the connection means nothing either, but without one a break is not noticed, so a renewal makes a new one.
 * If the lock was entered again, another process renews the session as well, and each renewal ends the connection of
 * the other: then the next one is made when it is due.
 */
bool
zk_alerted(struct backend *backend)
{
	struct zk_backend *z = (struct zk_backend *)backend;
	struct session *const s = &z->session;
	struct entry read = z->entry; /* a copy: a renewal still writes the data of z->entry */
	struct wait round;
	enum zk_code code = session_poll(s);
	const bool changed = code == ZK_OK && s->ours.event == WIRE_EVENT_CHANGED;

	if (changed) {
		entry_forget(&read);
		round = session_limit(s, &forever);
		(void)session_put_watch(s, &s->ours, WIRE_EXISTS, z->entry.path);
		code = entry_read(&read, &round);
	}
	if (code == ZK_OK)
		return s->ours.event != 0 || (changed && !z->asked && read.metadata.asked_by[0] != '\0');
	session_disconnect(s);
	return metadata_holds(&z->entry.metadata) == 1;
}

/* -- Releasing --------------------------------------------------------------- */

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
 * Delete our nodes in one transaction, if the data has not changed, and end the session behind it.  When the
 * transaction is answered the lock is free; the session, which has nothing any more, is not waited for.
 */
static enum zk_code
delete_nodes(struct release *r, const struct wait *wait)
{
	struct entry *const e = r->entry;
	struct session *const s = e->session;
	enum zk_code code = change(r, entry_put_delete(e), true, wait);

	if (code == ZK_NO_AUTH)
		return end_session(r, wait);
	entry_forget(e);
	if (code == ZK_NO_NODE) {
		/*
		 * One of our nodes is not there.  If our lock node is, then the nodes that others look for have been
		 * removed by hand, and the session is ended instead.
		 */
		code = entry_read(e, wait);
		if (code != ZK_OK)
			return code;
		return metadata_has_hold(&e->metadata, e->token.hold) ? session_close(s, wait) : ZK_NO_NODE;
	}
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
		entry_forget(r->entry); /* a shorter session must not rest on old data */
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
		entry_forget(r->entry);
	return r->unsure && (code == ZK_NO_NODE || code == ZK_EXPIRED) ? ZK_OK : code;
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
	const int64_t began_us = clock_now_us();
	struct wait limit = { CLOCK_NEVER, -1 };
	int64_t reported_us;
	enum zk_code code;

	if (!zk_adopt(z, lease, err))
		return ST_USAGE;
	log_debug(&z->log, keep_ms > 0 ? "releasing the lock in %d ms" : "releasing the lock", (int)keep_ms);
	/*
	 * A server that learns of a new session tells the leader of it with its full length, within half a tick.  A
	 * session is at least two ticks long.
	 */
	reported_us = clock_add(z->session.created_us,
	    clock_sooner((int64_t)z->session.granted.length_ms * 250, REPORTS_US));
	if (keep_ms > 0 && z->session.created_us != 0) {
		while (clock_now_us() < reported_us)
			(void)loop_turn(&z->session.loop, &(struct wait){ reported_us, -1 });
		r.keep_ms -= (clock_now_us() - began_us) / 1000;
		r.keep_ms = r.keep_ms < 0 ? 0 : r.keep_ms;
	}
	limit.until_us = clock_add(clock_now_us(), 2 * z->node_timeout_us);
	code = session_retry(&z->session, try_release, &r, &limit);
	if (code == ZK_NO_NODE && lease->owner != NULL && !r.shared)
		(void)session_close(&z->session, &limit); /* nobody else uses it */
	session_disconnect(&z->session);
	if (code == ZK_OK) {
		session_log(&z->session, "done", "");
		*ownership = r.left ? OWNED_STILL : OWNED;
		return ST_OK;
	}
	if (code != ZK_NO_NODE && code != ZK_EXPIRED)
		return zk_error(z, code, err);
	*ownership = lease->owner != NULL ? OWNED_BY_NOBODY : zk_look_owner(z, lease->key);
	return loss_error(*ownership, err);
}

/* -- Breaking --------------------------------------------------------------- */

/*
 * Find the first node of the entry of the holder that was looked at, as its number tells, which never comes again.  It
 * is the first entry, or for a slot any of the leases.  ZK_NO_NODE: it is gone.
 */
static enum zk_code
find_holder(struct session *s, const struct names *q, const struct break_args *args, char *lock, size_t *holder)
{
	const size_t end = path_cut_slot(lock, strlen(s->url->chroot)) == 0 ? q->count : 1;
	enum zk_code code = ZK_OK;
	char path[PATH_SIZE];
	struct wire_in body;

	for (*holder = 0; *holder < q->count && *holder < end && code == ZK_OK; ++*holder) {
		if (!queue_path(q, *holder, lock, path))
			return ZK_NO_NODE;
		code = session_call(s, session_put_path(s, WIRE_EXISTS, path), &body, &forever);
		if (code == ZK_OK && wire_get_stat(&body).czxid == args->holder->fence)
			return ZK_OK;
		code = code == ZK_NO_NODE ? ZK_OK : code;
	}
	return code == ZK_OK ? ZK_NO_NODE : code;
}

/* Delete the entry of the holder, and those of the readers that hold the lock with it. */
static enum zk_code
delete_holder(struct session *s, const struct break_args *args, char *lock, const char *record, int32_t version)
{
	const int32_t list = session_put_path(s, WIRE_GET_CHILDREN2, lock);
	char path[PATH_SIZE];
	struct wire_request step = { .op = WIRE_DELETE, .path = path, .argument = -1 };
	struct names queue = { .count = 0 };
	enum zk_code code = session_send(s, &forever);
	struct wire_text none;
	struct wire_in body;
	size_t i, holder = 0, readers = 0;

	if (code == ZK_OK)
		code = zk_take_queue(s, list, &queue, &forever);
	if (code == ZK_OK)
		code = zk_drop_keys(s, lock, &queue, queue.count, &forever);
	if (code == ZK_OK)
		code = find_holder(s, &queue, args, lock, &holder);
	if (code != ZK_OK)
		goto out;
	if (queue_is_reader(queue.at[holder])) /* they hold the lock together */
		readers = queue_holders(&queue);
	wire_begin_request(&s->out, ++s->xid, WIRE_MULTI);
	for (i = 0; i < queue.count; i++) {
		if ((queue_is_same(&queue, i, holder) || i < readers) && queue_path(&queue, i, lock, path))
			wire_multi_put(&s->out, &step);
	}
	step = (struct wire_request){ .op = WIRE_SET_DATA, .path = lock, .data = record, .argument = version };
	if (record[0] != '\0')
		wire_multi_put(&s->out, &step);
	wire_multi_end(&s->out);
	code = session_call(s, s->xid, &body, &forever);
	if (code == ZK_OK)
		code = wire_get_multi(&body, &none);
out:
	names_free(&queue);
	return code;
}

/*
 * The record of who broke the lock is kept by the node of the KEY, as long as it is there.  Data that is not dlock's,
 * or that we may not read, belongs to somebody else, and stays.
 */
enum status
zk_break(struct backend *backend, const struct break_args *args, enum ownership *ownership, struct err *err)
{
	struct zk_backend *z = (struct zk_backend *)backend;
	struct metadata m, broken = { .holds = 0 };
	char lock[PATH_LOCK_SIZE], record[METADATA_SIZE] = ""; /* "": none is written */
	struct wire_stat stat = { .version = 0 };
	struct wire_text data;
	struct wire_in body;
	enum zk_code code;

	path_of_key(z->url.chroot, args->key, lock);
	(void)path_cut_slot(lock, strlen(z->url.chroot));
	code = zk_look_begin(z, &forever);
	if (code == ZK_OK) {
		(void)session_put_path(&z->look, WIRE_SYNC, lock);
		code = session_call(&z->look, session_put_path(&z->look, WIRE_GET_DATA, lock), &body, &forever);
	}
	if (code == ZK_OK && args->by != NULL && args->holder->token[0] != '\0') {
		data = wire_get_text(&body);
		stat = wire_get_stat(&body);
		(void)snprintf(broken.owner, sizeof(broken.owner), "%s", args->by);
		(void)snprintf(broken.broken, sizeof(broken.broken), "%.*s", ZK_UUID_LENGTH, args->holder->token);
		if (!body.bad && (data.length == 0 || metadata_read(data.bytes, data.length, &m)))
			metadata_write(&broken, record);
	}
	if (code == ZK_OK || code == ZK_NO_AUTH)
		code = delete_holder(&z->look, args, lock, record, stat.version);
	if ((code == ZK_BAD_VERSION || code == ZK_NO_AUTH) && record[0] != '\0')
		code = delete_holder(&z->look, args, lock, "", 0); /* that was the matter */
	zk_look_end(z, code);
	*ownership = OWNED;
	if (code == ZK_OK)
		return ST_OK;
	if (code != ZK_NO_NODE)
		return zk_error(z, code, err);
	*ownership = zk_look_owner(z, args->key);
	return loss_error(*ownership, err);
}

/* -- Asking ------------------------------------------------------------------ */

enum zk_code
zk_ask_node(struct session *s, const char *path, const struct zk_request *r, const struct wait *wait)
{
	char text[METADATA_SIZE];
	struct wire_request write = { .op = WIRE_SET_DATA, .path = path, .data = text };
	struct wire_text data;
	struct wire_stat stat;
	struct metadata m;
	struct wire_in body;
	enum zk_code code;
	int tries = 0;

	do {
		code = session_call(s, session_put_path(s, WIRE_GET_DATA, path), &body, wait);
		if (code != ZK_OK)
			return code;
		data = wire_get_text(&body);
		stat = wire_get_stat(&body);
		if (body.bad)
			return ZK_SYSTEM_ERROR;
		if (!metadata_read(data.bytes, data.length, &m))
			return r->again ? ZK_NO_NODE : ZK_OK;
		if (m.kept_by[0] != '\0')
			return ZK_NO_NODE;
		if (m.asked_by[0] != '\0' || (r->to_waiter && !m.replaces))
			return ZK_OK;
		if (r->again)
			return ZK_NO_NODE;
		(void)snprintf(m.asked_by, sizeof(m.asked_by), "%s", r->by);
		metadata_write(&m, text);
		write.argument = stat.version;
		code = session_call(s, session_put(s, &write), &body, wait);
	} while (code == ZK_BAD_VERSION && ++tries < TRIES_MAX);
	return code;
}

enum status
zk_ask(struct backend *backend, const struct break_args *args, enum ownership *ownership, struct err *err)
{
	struct zk_backend *z = (struct zk_backend *)backend;
	struct zk_request request = { .by = args->by };
	struct names queue = { .count = 0 };
	char lock[PATH_LOCK_SIZE], path[PATH_SIZE];
	enum zk_code code = zk_look_begin(z, &forever);
	size_t i, holder = 0, end = 0;
	bool asked = false;
	int32_t list;

	path_of_key(z->url.chroot, args->key, lock);
	(void)path_cut_slot(lock, strlen(z->url.chroot));
	if (code == ZK_OK) {
		(void)session_put_path(&z->look, WIRE_SYNC, lock);
		list = session_put_path(&z->look, WIRE_GET_CHILDREN2, lock);
		code = session_send(&z->look, &forever);
		if (code == ZK_OK)
			code = zk_take_queue(&z->look, list, &queue, &forever);
	}
	if (code == ZK_OK)
		code = zk_drop_keys(&z->look, lock, &queue, queue.count, &forever);
	if (code == ZK_OK)
		code = find_holder(&z->look, &queue, args, lock, &holder);
	if (code == ZK_NO_NODE && args->holder->state == LOCK_SHARED && queue.count > 0 &&
	    queue_is_reader(queue.at[0])) {
		holder = 0; /* the first reader has ended; the others were asked with it */
		request.again = true;
		code = ZK_OK;
	}
	if (code == ZK_OK) /* readers hold the lock together */
		end = queue_is_reader(queue.at[holder]) ? queue_holders(&queue) : holder + 1;
	for (i = holder; i < end && (code == ZK_OK || code == ZK_NO_NODE); i++) {
		if ((i == holder || !queue_is_same(&queue, i, i - 1)) && queue_path(&queue, i, lock, path)) {
			code = zk_ask_node(&z->look, path, &request, &forever);
			asked = asked || code == ZK_OK;
		}
	}
	if (code == ZK_NO_NODE && asked) /* the others have ended, or their locks are kept */
		code = ZK_OK;
	names_free(&queue);
	zk_look_end(z, code);
	*ownership = code == ZK_OK ? OWNED : OWNED_NO_MORE;
	if (code == ZK_NO_NODE)
		return loss_error(*ownership, err);
	return code == ZK_OK ? ST_OK : zk_error(z, code, err);
}
