/* SPDX-License-Identifier: MIT */
/*
 * Looking at locks: their queues, the holders, which are the first entries, and those who wait behind them; listing
 * them.
 */
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/duration.h"
#include "lock/history.h"
#include "zk/backend.h"
#include "zk/slots.h"

#define LOOK_MS 30000 /* the length of a session that only looks; longer than it mostly is between two looks */

enum {
	FLIGHT_MAX = 100,      /* requests that are sent at once */
	NODES_WALKED = 1 << 20 /* a tree with more nodes is not for locks */
};

/* The state of one KEY. */
struct at_key {
	struct record *record;
	int slot; /* that it is, whose queue is that of the leases; 0: all slots, by the queue of the mutex; -1: none */
	char path[PATH_LOCK_SIZE];
	struct names queue;
	enum zk_code code; /* ZK_OK: it is held, or free if the queue is empty */
	int32_t xid;	   /* of the first request that is not answered; 0: none */
};

/* -- The session that looks ------------------------------------------------- */

enum zk_code
zk_look_begin(struct zk_backend *z, const struct wait *limit)
{
	struct session *const s = &z->look;

	if (s->url == NULL) {
		session_init(s, &z->url, &z->log);
		s->timeout_us = z->node_timeout_us;
	} else if (session_is_connected(s) && session_poll(s) == ZK_OK)
		return ZK_OK;
	return session_create(s, LOOK_MS, limit);
}

void
zk_look_end(struct zk_backend *z, enum zk_code code)
{
	z->session.server = z->look.server;
	z->session.tried = z->look.tried;
	if (code != ZK_OK)
		session_abandon(&z->look);
}

/* Did the session fail, and not only this request? */
static bool
is_broken(enum zk_code code)
{
	return session_is_lost(code) || code == ZK_EXPIRED || code == ZK_SASL_REQUIRED || (int)code > 0;
}

/* -- Rights ----------------------------------------------------------------- */

/* Get the rights that everybody has on a node. */
static enum zk_code
ask_rights(struct session *s, const char *path, int32_t *rights, const struct wait *limit)
{
	const int32_t xid = session_put_path(s, WIRE_GET_ACL, path[0] != '\0' ? path : "/");
	struct wire_in body;
	const enum zk_code code = session_call(s, xid, &body, limit);
	int32_t left = code == ZK_OK ? wire_get_count(&body, 12) : 0, given;
	struct wire_text scheme;

	for (*rights = 0; left > 0 && !body.bad; left--) {
		given = wire_get_int(&body);
		scheme = wire_get_text(&body);
		(void)wire_get_text(&body);
		if (scheme.length == 5 && memcmp(scheme.bytes, "world", 5) == 0)
			*rights |= given;
	}
	return code;
}

bool
zk_is_unguarded(struct session *s, const char *lock, const struct wait *limit)
{
	char path[PATH_CHROOT_MAX + 1];
	int32_t rights;

	(void)ask_rights(s, lock, &rights, limit);
	if ((rights & (WIRE_MAY_DELETE | WIRE_MAY_ADMIN)) != 0)
		return true;
	(void)snprintf(path, sizeof(path), "%s", s->url->chroot);
	while (ask_rights(s, path, &rights, limit) == ZK_NO_NODE && path[0] != '\0')
		*strrchr(path, '/') = '\0';
	return (rights & (WIRE_MAY_CREATE | WIRE_MAY_ADMIN)) != 0;
}

/* -- Holders ---------------------------------------------------------------- */

static int64_t
within(int64_t value, int64_t most)
{
	if (value < 0)
		return 0;
	return value > most ? most : value;
}

/*
 * The data of our own nodes has the rest.  The clock of the leader and ours may differ, and data may be anything: the
 * times are those that are safe for arithmetic.
 */
bool
zk_read_holder(const char *name, struct wire_in *body, struct holder *h, int64_t *made_ms, int64_t *slot)
{
	const char *const client = queue_client(name, strlen(name));
	const int64_t now_ms = clock_wall_us() / 1000;
	int64_t changed_ms;
	struct wire_text data;
	struct wire_stat stat;
	struct metadata m;

	*h = (struct holder){ .state = LOCK_OTHER_CLIENT, .left_ms = -1, .held_ms = -1 };
	if (body == NULL)
		return true;
	data = wire_get_text(body);
	stat = wire_get_stat(body);
	if (body->bad) {
		h->state = LOCK_FREE;
		return false;
	}
	h->fence = stat.czxid;
	*made_ms = within(stat.ctime_ms, LATEST_MS);
	if (!metadata_read(data.bytes, data.length, &m)) {
		(void)snprintf(h->client, sizeof(h->client), "%s", client != NULL ? client : "");
		return true;
	}
	changed_ms = within(stat.mtime_ms, LATEST_MS);
	memcpy(h->owner, m.owner, sizeof(h->owner));
	memcpy(h->label, m.label, sizeof(h->label));
	memcpy(h->kept_by, m.kept_by, sizeof(h->kept_by));
	h->holds = metadata_holds(&m);
	h->state = m.kept_by[0] != '\0' ? LOCK_KEPT : LOCK_HELD;
	h->ttl_ms = within(m.ttl_ms, INT32_MAX); /* of a session */
	h->ended_ms = within(now_ms - changed_ms, INT64_MAX);
	h->left_ms = within(changed_ms + h->ttl_ms - now_ms, h->ttl_ms);
	h->held_ms = within(now_ms - *made_ms - m.since_ms, INT64_MAX);
	if (slot != NULL)
		*slot = m.slot;
	(void)zk_token_begin(name, strlen(name), h->token);
	return true;
}

void
zk_hold_together(struct holder *h, const char *name, int64_t holders)
{
	if (!queue_is_reader(name) || (h->state != LOCK_HELD && (h->state != LOCK_KEPT || holders == 1)))
		return;
	h->state = LOCK_SHARED;
	h->holds = holders;
}

/* -- Queues ----------------------------------------------------------------- */

/* The owner who broke the last lock that was broken, as the node of the KEY says. */
static void
take_broken(struct wire_in *body, struct broken *broken)
{
	const struct wire_text data = wire_get_text(body);
	const struct wire_stat stat = wire_get_stat(body);
	struct metadata m;

	if (body->bad || !metadata_read(data.bytes, data.length, &m) || m.broken[0] == '\0')
		return;
	broken->ago_ms = within(clock_wall_us() / 1000 - within(stat.mtime_ms, LATEST_MS), INT64_MAX);
	memcpy(broken->token, m.broken, sizeof(broken->token));
	memcpy(broken->owner, m.owner, sizeof(broken->owner));
}

/* Ask for the queue of each lock, and for the node of its KEY, which says who broke the last one that was broken. */
static enum zk_code
ask_queues(struct session *s, struct at_key *keys, int count, const struct wait *limit)
{
	struct at_key *k;
	struct wire_in body;
	enum zk_code code;

	for (k = keys; k < keys + count; k++) {
		k->xid = session_put_path(s, WIRE_GET_CHILDREN2, k->path);
		(void)session_put_path(s, WIRE_GET_DATA, k->path);
	}
	code = session_send(s, limit);
	for (k = keys; k < keys + count && code == ZK_OK; k++) {
		k->code = zk_take_queue(s, k->xid, &k->queue, limit);
		if (is_broken(k->code))
			return k->code;
		if (k->code == ZK_NO_NODE)
			k->code = ZK_OK;
		code = session_reply(s, k->xid + 1, &body, limit);
		if (is_broken(code))
			return code;
		if (code != ZK_OK) {
			code = ZK_OK;
			continue;
		}
		take_broken(&body, &k->record->broken);
	}
	for (k = keys; k < keys + count && code == ZK_OK; k++)
		code = zk_drop_keys(s, k->path, &k->queue, k->queue.count, limit);
	return code;
}

/* Ask for the data of the heads; a holder whose data we may not read is another client. */
static enum zk_code
ask_heads(struct session *s, struct at_key *keys, int count, const struct wait *limit)
{
	char head[PATH_SIZE];
	struct holder *h;
	struct at_key *k;
	struct wire_in body;
	enum zk_code code;
	int64_t made_ms, holders;

	for (k = keys; k < keys + count; k++) {
		k->xid = 0;
		if (k->slot < 0 && k->code == ZK_OK && k->queue.count > 0 && queue_path(&k->queue, 0, k->path, head))
			k->xid = session_put_path(s, WIRE_GET_DATA, head);
	}
	code = s->out.length > 0 ? session_send(s, limit) : ZK_OK;
	for (k = keys; k < keys + count && code == ZK_OK; k++) {
		if (k->xid == 0)
			continue;
		k->code = session_reply(s, k->xid, &body, limit);
		if (is_broken(k->code))
			return k->code;
		h = &k->record->holder[0];
		if (k->code == ZK_NO_NODE) /* released between the two requests */
			k->code = ZK_OK;
		else if (k->code == ZK_OK || k->code == ZK_NO_AUTH) {
			k->code = zk_read_holder(k->queue.at[0], k->code == ZK_OK ? &body : NULL, h, &made_ms, NULL)
			    ? ZK_OK
			    : ZK_SYSTEM_ERROR;
			holders = (int64_t)queue_entries(&k->queue, queue_holders(&k->queue));
			zk_hold_together(h, k->queue.at[0], holders);
			h->waiting = (int64_t)queue_entries(&k->queue, k->queue.count) - holders;
			h->nodes = k->record->holders = 1;
		}
	}
	return code;
}

/* Write the path of the mutex of the slots with these leases. */
static void
mutex_path(const char *leases, char path[PATH_LOCK_SIZE])
{
	(void)snprintf(path, PATH_LOCK_SIZE, "%.*s/locks", (int)(strrchr(leases, '/') - leases), leases);
}

/* Ask how many wait for a slot, and read the leases. */
static enum zk_code
ask_leases(struct session *s, struct at_key *k, struct leases *leases, int64_t *waiting, const struct wait *limit)
{
	char path[PATH_LOCK_SIZE];
	struct names queue;
	enum zk_code code;
	int32_t list;

	mutex_path(k->path, path);
	list = session_put_path(s, WIRE_GET_CHILDREN2, path);
	code = session_send(s, limit);
	if (code == ZK_OK)
		code = zk_take_queue(s, list, &queue, limit);
	if (is_broken(code))
		return code;
	*waiting = code == ZK_OK ? (int64_t)queue_entries(&queue, queue.count) : 0;
	if (code == ZK_OK)
		names_free(&queue);
	return leases_read(s, k->path, &k->queue, leases, limit);
}

/* The holders of the slots.  Those of one KEY follow each other. */
static enum zk_code
ask_slots(struct session *s, struct at_key *keys, int count, const struct wait *limit)
{
	struct leases leases = { .count = 0 };
	const char *path = NULL;
	enum zk_code code = ZK_OK;
	struct at_key *k;
	struct holder *h;
	int64_t waiting = 0;
	size_t i;

	for (k = keys; k < keys + count && code == ZK_OK; k++) {
		if (k->slot <= 0 || k->code != ZK_OK)
			continue;
		if (path == NULL || strcmp(path, k->path) != 0) {
			leases_free(&leases);
			path = k->path;
			code = ask_leases(s, k, &leases, &waiting, limit);
		}
		h = &k->record->holder[0];
		h->waiting = waiting;
		for (i = 0; i < leases.count && code == ZK_OK; i++) {
			if (leases.view[i].slot != k->slot || k->record->holders > 0)
				continue;
			*h = leases.view[i].holder;
			h->waiting = waiting;
			h->nodes = k->record->holders = 1;
		}
	}
	leases_free(&leases);
	return code;
}

/* -- Waiters ---------------------------------------------------------------- */

/* Is it the first node of a waiter's entry?  The client that has the mutex of slots waits, too. */
static bool
is_waiter(const struct at_key *k, size_t i)
{
	const struct names *const q = &k->queue;

	return (i == 0 || !queue_is_same(q, i, i - 1)) && (k->slot == 0 || i >= queue_holders(q));
}

/* Ask for the data of some waiters of a lock; those of dlock tell who they are, unless their data may not be read. */
static enum zk_code
ask_waiters(struct session *s, struct at_key *k, size_t from, size_t to, const struct wait *limit)
{
	int32_t xid = s->xid + 1;
	char path[PATH_SIZE];
	struct holder h;
	struct waiter w;
	struct wire_in body;
	enum zk_code code;
	size_t i;

	for (i = from; i < to; i++) {
		(void)queue_path(&k->queue, i, k->path, path); /* a name that is too long has no node */
		if (is_waiter(k, i))
			(void)session_put_path(s, WIRE_GET_DATA, path);
	}
	code = session_send(s, limit);
	for (i = from; i < to && code == ZK_OK; i++) {
		if (!is_waiter(k, i))
			continue;
		code = session_reply(s, xid++, &body, limit);
		if (code == ZK_NO_NODE) { /* it has left meanwhile */
			code = ZK_OK;
			continue;
		}
		if (code != ZK_OK && code != ZK_NO_AUTH)
			return code;
		w = (struct waiter){ .place = k->record->waiters };
		if (!zk_read_holder(k->queue.at[i], code == ZK_OK ? &body : NULL, &h, &w.since_ms, NULL))
			return ZK_SYSTEM_ERROR;
		(void)snprintf(w.id, sizeof(w.id), "%zu", w.place);
		(void)snprintf(w.owner, sizeof(w.owner), "%s", h.owner);
		(void)snprintf(w.label, sizeof(w.label), h.client[0] != '\0' ? "(%s)" : "%s",
		    h.client[0] != '\0' ? h.client : h.label);
		code = history_put_waiter(k->record, &w) ? ZK_OK : ZK_LOCAL;
	}
	return code;
}

/* -- A look ----------------------------------------------------------------- */

enum status
zk_look(struct backend *backend, const struct look_args *args, struct record *record, struct err *err)
{
	struct zk_backend *z = (struct zk_backend *)backend;
	const struct wait limit = { CLOCK_NEVER, args->wait.interrupt_fd };
	struct at_key *const keys = calloc((size_t)args->count, sizeof(*keys));
	struct record *r;
	enum zk_code code, at;
	char path[PATH_LOCK_SIZE];
	size_t from, to;
	int i;

	if (keys == NULL)
		return err_set(err, ST_SYSTEM, OUT_OF_MEMORY);
	for (i = 0; i < args->count; i++) {
		keys[i].record = &record[i];
		path_of_key(z->url.chroot, record[i].key, keys[i].path);
		keys[i].slot = path_cut_slot(keys[i].path, strlen(z->url.chroot));
		if (keys[i].slot == 0 || (keys[i].slot > 0 && (args->what & LOOK_WAITERS) != 0)) {
			(void)memcpy(path, keys[i].path, sizeof(path));
			mutex_path(path, keys[i].path);
			keys[i].slot = 0;
		}
	}
	code = zk_look_begin(z, &limit);
	if (code == ZK_OK) {
		(void)session_put_path(&z->look, WIRE_SYNC, keys[0].path);
		code = ask_queues(&z->look, keys, args->count, &limit);
	}
	if (code == ZK_OK && (args->what & LOOK_STATE) != 0)
		code = ask_heads(&z->look, keys, args->count, &limit);
	if (code == ZK_OK && (args->what & LOOK_STATE) != 0)
		code = ask_slots(&z->look, keys, args->count, &limit);
	for (i = 0; i < args->count && (args->what & LOOK_WAITERS) != 0; i++) {
		for (from = 0; from < keys[i].queue.count && code == ZK_OK; from = to) {
			to = keys[i].queue.count - from > FLIGHT_MAX ? from + FLIGHT_MAX : keys[i].queue.count;
			code = ask_waiters(&z->look, &keys[i], from, to, &limit);
		}
	}
	zk_look_end(z, code);
	for (i = 0; i < args->count; i++) {
		r = &record[i];
		r->nodes = 1;
		r->answered = code == ZK_OK;
		r->node[0].name = z->url.name;
		r->state = r->node[0].state = LOCK_UNKNOWN;
		at = code != ZK_OK ? code : keys[i].code;
		if (at != ZK_OK) {
			reason_set(&r->node[0].reason, "error %d of ZooKeeper", (int)at);
			r->holders = 0;
			r->status = zk_error(z, at, &r->err);
		} else {
			r->agreeing = 1;
			r->state = r->node[0].state = r->holders > 0 ? r->holder[0].state : LOCK_FREE;
			r->node[0].left_ms = r->holder[0].left_ms;
		}
		names_free(&keys[i].queue);
	}
	free(keys);
	return code == ZK_INTERRUPTED || code == ZK_LOCAL ? zk_error(z, code, err) : ST_OK;
}

enum ownership
zk_look_owner(struct zk_backend *z, const char *key)
{
	static const struct look_args args = { .what = LOOK_STATE, .count = 1, .wait = { CLOCK_NEVER, -1 } };
	struct record *const record = calloc(1, sizeof(*record));
	enum ownership ownership = OWNED_BY_NOBODY;
	struct err ignored;

	if (z->entry.metadata.kept_by[0] != '\0')
		ownership = OWNED_NO_MORE;
	else if (record != NULL) {
		record->key = key;
		if (zk_look(&z->base, &args, record, &ignored) == ST_OK && record->holders > 0)
			ownership = OWNED_BY_ANOTHER;
	}
	free(record);
	return ownership;
}

/* -- Listing ---------------------------------------------------------------- */

/* A walk through the tree below the chroot. */
struct walk {
	struct session *session;
	size_t chroot; /* its length */
	struct wait limit;
	const char *pattern;	  /* without a leading slash; NULL: all */
	bool slash;		  /* the pattern has one */
	char prefix[KEY_MAX + 1]; /* of every KEY that matches */
	struct names paths;	  /* of the nodes that were found; those before `asked` have been asked */
	size_t asked;
	struct names *keys; /* that match */
};

/* Can a KEY at this path, or below it, begin with the prefix? */
static bool
may_match(const struct walk *w, const char *path)
{
	const size_t prefix = strlen(w->prefix);
	char key[KEY_MAX + 1];
	size_t length;

	if (path_is_reserved(path) || !path_to_key(path, w->chroot, key, sizeof(key)))
		return false;
	length = strlen(key);
	return strncmp(key, w->prefix, length < prefix ? length : prefix) == 0;
}

/* Is it the mutex of slots that were found, too? */
static bool
is_mutex(const struct walk *w, const char *path)
{
	const size_t length = strlen(path);
	char leases[PATH_LOCK_SIZE + 2];
	size_t i = 0;

	if (length < 6 || strcmp(path + length - 6, "/locks") != 0)
		return false;
	(void)snprintf(leases, sizeof(leases), "%.*s/leases", (int)length - 6, path);
	while (i < w->paths.count && strcmp(w->paths.at[i], leases) != 0)
		i++;
	return i < w->paths.count;
}

/* Add the KEY of this node, which has contenders, or the keys of all slots that may be held, if it matches. */
static enum zk_code
add_keys(struct walk *w, const char *path)
{
	char key[KEY_MAX + 2 + 8] = "/", leases[PATH_LOCK_SIZE];
	int slot = 0, last = 0;
	size_t length;

	if (is_mutex(w, path) || !path_to_key(path, w->chroot, key + 1, KEY_MAX + 1))
		return ZK_OK;
	(void)snprintf(leases, sizeof(leases), "%s", path);
	if (path_cut_slot(leases, w->chroot) == 0) {
		slot = 1;
		last = SLOTS_MAX;
	}
	for (length = strlen(key); slot <= last; slot++) {
		if (slot > 0)
			(void)snprintf(key + length, sizeof(key) - length, "/slot-%d", slot);
		if ((w->pattern == NULL || fnmatch(w->pattern, key + 1, 0) == 0) &&
		    !names_add(w->keys, w->slash ? key : key + 1))
			return ZK_LOCAL;
	}
	return ZK_OK;
}

/* The children of a node: contenders make it a lock, others are nodes to walk on. */
static enum zk_code
take_children(struct walk *w, const char *parent, struct wire_in *body)
{
	char path[PATH_SIZE];
	int32_t left = wire_get_count(body, 4), number;
	struct wire_text name;
	bool is_lock = false;

	for (; left > 0 && !body->bad; left--) {
		name = wire_get_text(body);
		if (queue_number(name.bytes, name.length, &number)) {
			is_lock = true;
			/* The last part of a KEY may end in ten digits, too. */
			if (queue_client(name.bytes, name.length) != NULL)
				continue;
		}
		if (strlen(parent) + 1 + name.length >= PATH_LOCK_SIZE)
			continue;
		(void)snprintf(path, sizeof(path), "%s/%.*s", parent, (int)name.length, name.bytes);
		if (may_match(w, path) && !names_add(&w->paths, path))
			return ZK_LOCAL;
	}
	if (body->bad || w->paths.count > NODES_WALKED)
		return ZK_SYSTEM_ERROR;
	return is_lock ? add_keys(w, parent) : ZK_OK;
}

/*
 * Ask the next nodes for their children.  A node that has gone, or that we may not read, has none; the chroot must be
 * read.
 */
static enum zk_code
ask_some(struct walk *w)
{
	struct session *const s = w->session;
	const size_t left = w->paths.count - w->asked, end = w->asked + (left < FLIGHT_MAX ? left : FLIGHT_MAX);
	int32_t xid = s->xid + 1;
	struct wire_in body;
	enum zk_code code;
	size_t i;

	for (i = w->asked; i < end; i++)
		(void)session_put_path(s, WIRE_GET_CHILDREN2, w->paths.at[i][0] != '\0' ? w->paths.at[i] : "/");
	code = session_send(s, &w->limit);
	for (; w->asked < end && code == ZK_OK; w->asked++, xid++) {
		code = session_reply(s, xid, &body, &w->limit);
		if (code == ZK_OK)
			code = take_children(w, w->paths.at[w->asked], &body);
		else if (code == ZK_NO_NODE || (code == ZK_NO_AUTH && w->asked > 0))
			code = ZK_OK;
	}
	return code;
}

enum status
zk_list(struct backend *backend, const char *pattern, const struct look_args *args, struct names *keys, struct err *err)
{
	struct zk_backend *z = (struct zk_backend *)backend;
	struct walk w = { .session = &z->look,
		.chroot = strlen(z->url.chroot),
		.limit = { CLOCK_NEVER, args->wait.interrupt_fd },
		.pattern = pattern,
		.keys = keys };
	enum zk_code code;

	w.slash = pattern != NULL && pattern[0] == '/';
	if (w.slash)
		w.pattern++;
	if (pattern != NULL)
		(void)snprintf(w.prefix, sizeof(w.prefix), "%.*s", (int)strcspn(w.pattern, "*?[\\"), w.pattern);
	code = zk_look_begin(z, &w.limit);
	if (code == ZK_OK && !names_add(&w.paths, z->url.chroot))
		code = ZK_LOCAL;
	if (code == ZK_OK)
		(void)session_put_path(&z->look, WIRE_SYNC, "/");
	while (code == ZK_OK && w.asked < w.paths.count)
		code = ask_some(&w);
	zk_look_end(z, code);
	names_sort(keys);
	names_free(&w.paths);
	return code == ZK_OK ? ST_OK : zk_error(z, code, err);
}
