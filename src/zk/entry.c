/* SPDX-License-Identifier: MIT */
#include "zk/entry.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"

#define FENCE_LIMIT ((int64_t)1 << 53) /* below it, readers of JSON know each number */
#define PARENT_TRIES 8		       /* an empty container may be removed before we use it */
#define WRITES_MAX 8		       /* other holds may change the data between our read and our write */

#define NODES_MOST 3

/* The names of the nodes. */
static const char *const names_of[][NODES_MOST] = {
	/*
	 * Curator's InterProcessMutex and go-zookeeper, kazoo's Lock, the writer of Curator's
	 * InterProcessReadWriteLock.
	 */
	[ENTRY_LOCK] = { "-lock-", "-__lock__", "-__WRIT__" },
	/* The readers of Curator's InterProcessReadWriteLock and of kazoo. */
	[ENTRY_READER] = { "-__READ__", "-__rlock__" },
	[ENTRY_LEASE] = { "-lease-" },
};

static int
node_count(const struct entry *e)
{
	int count = 1;

	while (count < NODES_MOST && names_of[e->kind][count] != NULL)
		count++;
	return count;
}

/* The path of one of the nodes.  Their numbers are consecutive. */
static void
node_path(const struct entry *e, int node, char path[PATH_SIZE])
{
	const int32_t number = (int32_t)((uint32_t)e->token.number + (uint32_t)node);

	(void)snprintf(path, PATH_SIZE, "%s/%s%s%010" PRId32, e->lock, e->name, names_of[e->kind][node], number);
}

void
entry_init(struct entry *e, struct session *s, const char *key, const struct zk_token *token)
{
	int slot;

	memset(e, 0, sizeof(*e));
	e->session = s;
	e->token = *token;
	path_of_key(s->url->chroot, key, e->lock);
	slot = path_cut_slot(e->lock, strlen(s->url->chroot));
	e->kind = slot >= 0 ? ENTRY_LEASE : token->shared ? ENTRY_READER : ENTRY_LOCK;
	e->slot = slot > 0 ? slot : 0;
	memcpy(e->name, "_c_", 3);
	zk_uuid_write(token->uuid, e->name + 3);
	if (token->session.id != 0)
		node_path(e, 0, e->path);
}

static void
set_number(struct entry *e, int32_t number)
{
	e->token.number = number;
	node_path(e, 0, e->path);
}

/* -- The data of the lock node ---------------------------------------------- */

int32_t
entry_put_write(struct entry *e)
{
	char data[METADATA_SIZE];

	e->known = false;
	e->metadata.ttl_ms = e->session->granted.length_ms;
	metadata_write(&e->metadata, data);
	return session_put(e->session,
	    &(struct wire_request){ .op = WIRE_SET_DATA, .path = e->path, .data = data, .argument = e->version });
}

/*
 * Take the reply to a request about the lock node: to a read, with data, or to another one.  ZK_OK: the data is known.
 * Data that is not dlock's is read as empty.  ZK_NO_NODE: the node is gone, or is not of our session or slot.
 */
static enum zk_code
take(struct entry *e, int32_t xid, bool data, const struct wait *wait)
{
	struct wire_in body;
	struct wire_text text;
	struct wire_stat stat;
	const enum zk_code code = session_reply(e->session, xid, &body, wait);

	if (code != ZK_OK)
		return code;
	if (data) {
		text = wire_get_text(&body);
		if (!metadata_read(text.bytes, text.length, &e->metadata))
			memset(&e->metadata, 0, sizeof(e->metadata));
	}
	stat = wire_get_stat(&body);
	if (body.bad || stat.czxid <= 0 || stat.czxid >= FENCE_LIMIT)
		return ZK_SYSTEM_ERROR;
	if (stat.owner != e->session->granted.id || (data && e->slot > 0 && e->metadata.slot != e->slot))
		return ZK_NO_NODE;
	e->fence = stat.czxid;
	e->version = stat.version;
	e->known = true;
	return ZK_OK;
}

enum zk_code
entry_read(struct entry *e, const struct wait *wait)
{
	struct session *const s = e->session;
	int32_t xid = 0;
	enum zk_code code;

	if (!session_is_connected(s))
		session_begin(s);
	else if (e->known)
		return ZK_OK;
	if (!e->known)
		xid = session_put_path(s, WIRE_GET_DATA, e->path);
	code = session_send(s, wait);
	return code == ZK_OK && !e->known ? take(e, xid, true, wait) : code;
}

void
entry_forget(struct entry *e)
{
	e->known = false;
}

void
entry_note_written(struct entry *e)
{
	e->version++;
	e->known = true;
}

bool
entry_was_written(const struct entry *e)
{
	return e->version > 0;
}

enum zk_code
entry_write(struct entry *e, const struct wait *wait)
{
	struct session *const s = e->session;

	(void)entry_put_write(e);
	(void)session_put_watch(s, &s->ours, WIRE_EXISTS, e->path);
	entry_note_written(e);
	return session_send(s, wait);
}

/* Write the data on a new connection.  Before that, read it if it is not known, or is not what we know. */
static enum zk_code
write_behind(struct entry *e, const struct wait *wait)
{
	struct session *const s = e->session;
	struct metadata *const m = &e->metadata;
	enum zk_code code;
	bool known;
	int32_t xid;
	int i;

	session_begin(s);
	for (i = 0; i < 2 * WRITES_MAX; i++) {
		known = e->known;
		xid = known ? entry_put_write(e) : session_put_path(s, WIRE_GET_DATA, e->path);
		if (known)
			(void)session_put_watch(s, &s->ours, WIRE_EXISTS, e->path);
		code = session_send(s, wait);
		if (code == ZK_OK)
			code = take(e, xid, !known, wait);
		if ((code == ZK_OK && known) || (code != ZK_OK && code != ZK_BAD_VERSION))
			return code;
		if (code == ZK_OK && (!metadata_has_hold(m, e->token.hold) || m->kept_by[0] != '\0'))
			return ZK_NO_NODE;
		if (code == ZK_OK && e->added[0] != '\0' && !metadata_add_hold(m, e->added))
			return ZK_SYSTEM_ERROR;
	}
	return ZK_BAD_VERSION;
}

enum zk_code
entry_prove(void *entry, const struct wait *wait)
{
	struct entry *const e = entry;
	enum zk_code code;

	if (e->added[0] != '\0')
		e->known = false;
	code = write_behind(e, wait);
	if (code == ZK_OK)
		session_prove(e->session);
	else {
		e->known = false; /* the request that was sent may have been done or not */
		session_leave_server(e->session);
	}
	return code;
}

/* -- The place in the queue ------------------------------------------------- */

/* Take the reply to getChildren2 of the node of the KEY.  ZK_NO_NODE: our entry is not there. */
static enum zk_code
take_place(struct entry *e, int32_t xid, const struct wait *wait)
{
	struct place *const p = &e->place;
	struct names queue;
	enum zk_code code = zk_take_queue(e->session, xid, &queue, wait);
	size_t ours = queue_find(&queue, e->name), before;
	int32_t number = 0;

	memset(p, 0, sizeof(*p));
	if (code == ZK_OK)
		code = ours == QUEUE_NOBODY ? ZK_NO_NODE : zk_drop_keys(e->session, e->lock, &queue, ours, wait);
	if (code == ZK_OK) {
		ours = queue_find(&queue, e->name);
		(void)queue_number(queue.at[ours], strlen(queue.at[ours]), &number);
		set_number(e, number);
		p->holders = (int64_t)queue_entries(&queue, queue_holders(&queue));
		p->waiting = (int64_t)queue_entries(&queue, queue.count) - p->holders;
		before = queue_before(&queue, ours, e->kind == ENTRY_READER);
		p->first = e->kind == ENTRY_LEASE ? p->holders + p->waiting <= e->room : before == QUEUE_NOBODY;
		p->second = e->kind == ENTRY_READER ? queue_writers(&queue, ours) == 1
						    : e->kind == ENTRY_LOCK && queue_entries(&queue, ours) == 1;
		p->ahead = p->first || e->kind == ENTRY_LEASE
		    ? 0
		    : (int64_t)queue_entries(&queue, ours) - (e->room == 0 ? p->holders : 0);
		if (before != QUEUE_NOBODY &&
		    (!queue_path(&queue, before, e->lock, p->before) || !queue_path(&queue, 0, e->lock, p->head)))
			code = ZK_SYSTEM_ERROR;
	}
	names_free(&queue);
	return code;
}

enum zk_code
entry_find(struct entry *e, const struct wait *wait)
{
	struct session *const s = e->session;
	int32_t stat = 0, list;
	enum zk_code code;

	if (!session_is_connected(s)) {
		session_begin(s);
		(void)session_put_path(s, WIRE_SYNC, e->lock);
	}
	if (e->path[0] != '\0')
		stat = session_put_watch(s, &s->ours, WIRE_EXISTS, e->path);
	list = e->kind == ENTRY_LEASE ? session_put_watch(s, &s->before, WIRE_GET_CHILDREN2, e->lock)
				      : session_put_path(s, WIRE_GET_CHILDREN2, e->lock);
	code = session_send(s, wait);
	if (code == ZK_OK && stat != 0)
		code = take(e, stat, false, wait);
	if (code == ZK_OK)
		code = take_place(e, list, wait);
	return code;
}

/* -- The nodes -------------------------------------------------------------- */

/*
 * Make the node of the KEY and those above it that are missing: as containers, or on a server before 3.5.3, which has
 * none, as persistent nodes.  Even a create that fails is a transaction, but a look at a node is not.
 */
static enum zk_code
make_parents(struct entry *e, const struct wait *wait)
{
	struct session *const s = e->session;
	char path[PATH_LOCK_SIZE];
	struct wire_request node = { .op = WIRE_CREATE_CONTAINER,
		.path = path,
		.data = "",
		.argument = WIRE_CONTAINER,
		.guarded = s->url->user[0] != '\0' };
	enum zk_code code = ZK_OK;
	struct wire_in body;
	size_t i;

	for (i = 1; code == ZK_OK && e->lock[i - 1] != '\0'; i++) {
		if (e->lock[i] != '/' && e->lock[i] != '\0')
			continue;
		(void)snprintf(path, sizeof(path), "%.*s", (int)i, e->lock);
		code = session_call(s, session_put_path(s, WIRE_EXISTS, path), &body, wait);
		if (code == ZK_NO_NODE)
			code = session_call(s, session_put(s, &node), &body, wait);
		if (code == ZK_UNIMPLEMENTED) {
			node.op = WIRE_CREATE;
			node.argument = WIRE_PERSISTENT;
			code = session_call(s, session_put(s, &node), &body, wait);
		}
		if (code == ZK_NODE_EXISTS)
			code = ZK_OK;
	}
	return code == ZK_NO_AUTH ? ZK_FORBIDDEN : code;
}

/* Add the deletes of the nodes to a transaction, the first with this version. */
static void
put_deletes(struct entry *e, int32_t version)
{
	char path[PATH_SIZE];
	struct wire_request node = { .op = WIRE_DELETE, .path = path, .argument = version };
	int i;

	for (i = 0; i < node_count(e); i++) {
		node_path(e, i, path);
		wire_multi_put(&e->session->out, &node);
		node.argument = -1;
	}
}

int32_t
entry_put_delete(struct entry *e)
{
	struct session *const s = e->session;

	wire_begin_request(&s->out, ++s->xid, WIRE_MULTI);
	put_deletes(e, e->version);
	wire_multi_end(&s->out);
	return s->xid;
}

int32_t
entry_put_move(struct entry *e, struct entry *from)
{
	struct session *const s = e->session;
	char data[METADATA_SIZE];
	struct wire_request node = { .op = WIRE_SET_DATA, .path = e->path, .data = data, .argument = e->version };

	e->known = false;
	metadata_write(&e->metadata, data);
	wire_begin_request(&s->out, ++s->xid, WIRE_MULTI);
	wire_multi_put(&s->out, &node);
	put_deletes(from, -1);
	wire_multi_end(&s->out);
	return s->xid;
}

/* Make our nodes in one transaction, and look where they are.  ZK_NO_NODE: the node of the KEY is missing. */
static enum zk_code
add(struct entry *e, const struct wait *wait)
{
	struct session *const s = e->session;
	char name[PATH_SIZE], data[METADATA_SIZE];
	struct wire_request node = { .op = WIRE_CREATE,
		.path = name,
		.data = data,
		.argument = WIRE_EPHEMERAL_SEQUENTIAL,
		.guarded = s->url->user[0] != '\0' };
	struct wire_text path;
	struct wire_in body;
	int32_t nodes, list, watch, number;
	enum zk_code code;
	int i;

	e->metadata.ttl_ms = s->granted.length_ms;
	metadata_write(&e->metadata, data);
	wire_begin_request(&s->out, ++s->xid, WIRE_MULTI);
	for (i = 0; i < node_count(e); i++) {
		(void)snprintf(name, sizeof(name), "%s/%s%s", e->lock, e->name, names_of[e->kind][i]);
		wire_multi_put(&s->out, &node);
		node.data = e->metadata.owner;
	}
	wire_multi_end(&s->out);
	nodes = s->xid;
	list = session_put_path(s, WIRE_GET_CHILDREN2, e->lock);
	code = session_call(s, nodes, &body, wait);
	if (code == ZK_OK)
		code = wire_get_multi(&body, &path);
	if (code != ZK_OK)
		return code;
	if (!queue_number(path.bytes, path.length, &number))
		return ZK_SYSTEM_ERROR;
	set_number(e, number);
	session_prove(s);
	code = take_place(e, list, wait);
	if (code != ZK_OK)
		return code;
	watch = session_put_watch(s, &s->ours, WIRE_EXISTS, e->path);
	code = session_send(s, wait);
	return code == ZK_OK ? take(e, watch, false, wait) : code;
}

enum zk_code
entry_join(void *entry, const struct wait *wait)
{
	struct entry *const e = entry;
	enum zk_code code = ZK_NO_NODE;
	int tries;

	if (e->unsure) {
		session_log(e->session, e->session->tried.reason.text, "; looking for our nodes");
		e->path[0] = '\0';
		code = entry_find(e, wait);
		if (code == ZK_OK) /* the number is known now: once more, for the fence and the watch */
			code = entry_find(e, wait);
	}
	for (tries = 0; code == ZK_NO_NODE && tries < PARENT_TRIES; tries++) {
		code = add(e, wait);
		if (code == ZK_NO_NODE && (code = make_parents(e, wait)) == ZK_OK)
			code = ZK_NO_NODE;
	}
	e->unsure = session_is_lost(code);
	return code;
}
