/* SPDX-License-Identifier: MIT */
#include "zk/enqueue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define FENCE_LIMIT ((int64_t)1 << 53) /* below it, readers of JSON know each number */

/* -- Reading the queue ------------------------------------------------------ */

static enum zk_code
find_place(struct zk_backend *z, struct queue *q, struct place *p, const struct wait *limit)
{
	size_t ours = queue_find(q, z->entry.name), before;
	enum zk_code code;

	memset(p, 0, sizeof(*p));
	p->present = ours != QUEUE_NOBODY;
	if (!p->present)
		return ZK_OK;
	code = zk_drop_keys(&z->session, z->entry.lock, q, ours, limit);
	if (code != ZK_OK)
		return code;
	ours = queue_find(q, z->entry.name);
	entry_set_number(&z->entry, q->contender[ours].number);
	p->waiting = (int64_t)queue_entries(q) - 1;
	before = queue_before(q, ours);
	p->first = before == QUEUE_NOBODY;
	if (p->first)
		return ZK_OK;
	p->second = queue_is_second(q, ours);
	return queue_path(q, before, z->entry.lock, p->before) && queue_path(q, 0, z->entry.lock, p->head)
	    ? ZK_OK
	    : ZK_SYSTEM_ERROR;
}

/* Take the reply to getChildren2 of the node of the KEY. */
static enum zk_code
take_place(struct zk_backend *z, int32_t xid, struct place *p, const struct wait *limit)
{
	struct wire_in body;
	struct queue queue;
	enum zk_code code = session_reply(&z->session, xid, &body, limit);

	if (code == ZK_OK)
		code = zk_read_queue(&body, &queue);
	if (code != ZK_OK)
		return code;
	code = find_place(z, &queue, p, limit);
	queue_free(&queue);
	return code;
}

/* Take the reply to exists of our lock node. */
static enum zk_code
take_stat(struct zk_backend *z, int32_t xid, const struct wait *limit)
{
	struct wire_in body;
	struct wire_stat stat;
	enum zk_code code = session_reply(&z->session, xid, &body, limit);

	if (code != ZK_OK)
		return code;
	stat = wire_get_stat(&body);
	if (body.bad || stat.czxid <= 0 || stat.czxid >= FENCE_LIMIT)
		return ZK_SYSTEM_ERROR;
	if (stat.owner != z->session.id)
		return ZK_NO_NODE;
	z->entry.fence = stat.czxid;
	z->entry.version = stat.version;
	z->entry.known = true; /* nobody else knows it yet */
	return ZK_OK;
}

enum zk_code
zk_find_place(struct zk_backend *z, struct place *p, const struct wait *limit)
{
	struct session *const s = &z->session;
	int32_t stat = 0, list;
	enum zk_code code;
	const bool attach = !s->connection.open || s->connection.broken != ZK_OK;

	if (attach) {
		session_begin(s, s->length_ms);
		(void)session_put_path(s, WIRE_SYNC, z->entry.lock, 0);
	}
	if (z->entry.path[0] != '\0')
		stat = session_put_watch(s, &s->ours, z->entry.path);
	list = session_put_path(s, WIRE_GET_CHILDREN2, z->entry.lock, 0);
	code = attach ? session_attach(s, limit) : session_send(s, limit);
	if (code == ZK_OK && stat != 0)
		code = take_stat(z, stat, limit);
	if (code == ZK_OK)
		code = take_place(z, list, p, limit);
	return code == ZK_OK && !p->present ? ZK_NO_NODE : code;
}

/* -- Making the nodes ------------------------------------------------------- */

/*
 * Make the node of the KEY and those above it that are missing: as containers, or on a server before 3.5.3, which has
 * none, as persistent nodes.  Even a create that fails is a transaction, but a look at a node is not.
 */
static enum zk_code
make_parents(struct zk_backend *z, const struct wait *limit)
{
	struct session *const s = &z->session;
	char path[PATH_LOCK_SIZE];
	enum zk_code code = ZK_OK;
	struct wire_in body;
	size_t i;

	for (i = 1; code == ZK_OK && z->entry.lock[i - 1] != '\0'; i++) {
		if (z->entry.lock[i] != '/' && z->entry.lock[i] != '\0')
			continue;
		(void)snprintf(path, sizeof(path), "%.*s", (int)i, z->entry.lock);
		code = session_call(s, session_put_path(s, WIRE_EXISTS, path, 0), &body, limit);
		if (code == ZK_NO_NODE)
			code = session_call(s, session_put_create(s, WIRE_CREATE_CONTAINER, path), &body, limit);
		if (code == ZK_UNIMPLEMENTED)
			code = session_call(s, session_put_create(s, WIRE_CREATE, path), &body, limit);
		if (code == ZK_NODE_EXISTS)
			code = ZK_OK;
	}
	return code == ZK_NO_AUTH ? ZK_FORBIDDEN : code;
}

/* Put the transaction that makes our nodes.  Returns its xid; 0: out of memory. */
static int32_t
put_nodes(struct zk_backend *z)
{
	struct session *const s = &z->session;
	struct wire_node node = { .authenticated = z->url.user[0] != '\0' };
	char path[PATH_SIZE], *data;
	int i;

	z->entry.metadata.ttl_ms = s->length_ms;
	data = metadata_write(&z->entry.metadata);
	if (data == NULL)
		return 0;
	wire_multi_begin(&s->out, ++s->xid);
	for (i = 0; i < ENTRY_NODES; i++) {
		entry_new_path(&z->entry, i, path);
		node.path = path;
		node.data = i == 0 ? data : z->entry.metadata.owner;
		wire_multi_create(&s->out, &node);
	}
	wire_multi_end(&s->out);
	free(data);
	return s->xid;
}

/* Take the number of the lock node from the path that the transaction returned. */
static enum zk_code
take_number(struct zk_backend *z, int32_t xid, const struct wait *limit)
{
	struct wire_text path;
	struct wire_in body;
	int32_t number;
	enum zk_code code = session_reply(&z->session, xid, &body, limit);

	if (code != ZK_OK)
		return code;
	code = (enum zk_code)wire_get_multi(&body, &path);
	if (body.bad || (int)code > 0)
		return ZK_SYSTEM_ERROR;
	if (code != ZK_OK)
		return code;
	if (!queue_number(path.bytes, path.length, &number))
		return ZK_SYSTEM_ERROR;
	entry_set_number(&z->entry, number);
	session_prove(&z->session);
	return ZK_OK;
}

/* Make our nodes, and look where they are.  ZK_NO_NODE: the node of the KEY is missing. */
static enum zk_code
add_entry(struct zk_backend *z, struct place *p, const struct wait *limit)
{
	struct session *const s = &z->session;
	enum zk_code code;
	int32_t nodes, list;

	nodes = put_nodes(z);
	list = session_put_path(s, WIRE_GET_CHILDREN2, z->entry.lock, 0);
	code = nodes == 0 ? ZK_LOCAL : session_send(s, limit);
	if (code == ZK_OK)
		code = take_number(z, nodes, limit);
	if (code == ZK_OK)
		code = take_place(z, list, p, limit);
	if (code != ZK_OK)
		return code;
	list = session_put_watch(s, &s->ours, z->entry.path);
	code = session_send(s, limit);
	if (code == ZK_OK)
		code = take_stat(z, list, limit);
	return code == ZK_OK && !p->present ? ZK_NO_NODE : code;
}

/* The reply was lost: have our nodes been made?  ZK_NO_NODE: no. */
static enum zk_code
recover(struct zk_backend *z, struct place *p, const struct wait *limit)
{
	enum zk_code code;

	log_debug(&z->log, "%s; looking for our nodes", z->session.reason.text);
	session_leave_server(&z->session);
	z->entry.path[0] = '\0';
	code = zk_find_place(z, p, limit);
	/* The number is known now: once more, for the fence and the watch. */
	return code == ZK_OK ? zk_find_place(z, p, limit) : code;
}

/* Make our nodes, and before them the node of the KEY if there is none. */
static enum zk_code
add_with_parents(struct zk_backend *z, struct place *p, const struct wait *limit)
{
	enum zk_code code = add_entry(z, p, limit);

	if (code != ZK_NO_NODE)
		return code;
	code = make_parents(z, limit);
	return code == ZK_OK ? add_entry(z, p, limit) : code;
}

enum zk_code
zk_enqueue(struct zk_backend *z, struct place *p, const struct wait *limit)
{
	struct wait step = zk_limit(z, limit->until_us, limit->interrupt_fd);
	enum zk_code code = add_with_parents(z, p, &step);
	unsigned int tries = 0;

	while ((code == ZK_NO_NODE || session_is_lost(code)) && session_pause(&z->session, &tries, limit, &code)) {
		step = zk_limit(z, limit->until_us, limit->interrupt_fd);
		code = session_is_lost(code) ? recover(z, p, &step) : add_with_parents(z, p, &step);
	}
	return code;
}
