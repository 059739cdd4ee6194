/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "zk/operations.h"

enum {
	FLIGHT_MAX = 100 /* requests that are sent at once */
};

/* The waiters of one lock: the first node of each entry behind the first, in order. */
struct line {
	struct session session;
	char lock[PATH_LOCK_SIZE];
	char **name;
	size_t count;
	struct history *history;
};

/* Keep the names of the nodes, which end with the packet.  Such as no client makes are left out. */
static enum zk_code
keep_names(struct line *l, const struct queue *q)
{
	size_t i;

	l->name = calloc(q->count + 1, sizeof(*l->name));
	if (l->name == NULL)
		return ZK_LOCAL;
	for (i = 1; i < q->count; i++) {
		if (queue_is_same(q, i, 0) || queue_is_same(q, i, i - 1) ||
		    q->contender[i].length > PATH_NAME_MAX + PATH_KEY_MAX)
			continue;
		l->name[l->count] = strndup(q->contender[i].name, q->contender[i].length);
		if (l->name[l->count] == NULL)
			return ZK_LOCAL;
		l->count++;
	}
	return ZK_OK;
}

static enum zk_code
list_names(struct line *l, const struct limit *limit)
{
	struct queue queue;
	enum zk_code code;

	(void)session_put_path(&l->session, WIRE_SYNC, l->lock, 0);
	code = zk_ask_queue(&l->session, l->lock, &queue, limit);
	if (code != ZK_OK)
		return code == ZK_NO_NODE ? ZK_OK : code;
	code = keep_names(l, &queue);
	queue_free(&queue);
	return code;
}

/* Add a waiter, of which dlock's tell who they are.  NULL: its data may not be read. */
static enum zk_code
add_waiter(struct line *l, size_t index, struct wire_in *body)
{
	struct holder holder = { .fence = 0 };
	struct waiter w = { .place = index };

	if (body != NULL && !zk_read_holder(l->name[index], body, &holder, &w.since_ms))
		return ZK_SYSTEM_ERROR;
	(void)snprintf(w.id, sizeof(w.id), "%zu", index);
	(void)snprintf(w.owner, sizeof(w.owner), "%s", holder.owner);
	(void)snprintf(w.label, sizeof(w.label), holder.client != NULL ? "(%s)" : "%s",
	    holder.client != NULL ? holder.client : holder.label);
	return history_put_waiter(l->history, &w) ? ZK_OK : ZK_LOCAL;
}

/* Ask for the data of some of them. */
static enum zk_code
ask_some(struct line *l, size_t from, size_t to, const struct limit *limit)
{
	struct session *const s = &l->session;
	const int32_t first = s->xid + 1;
	char path[PATH_SIZE];
	struct wire_in body;
	enum zk_code code;
	size_t i;

	for (i = from; i < to; i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", l->lock, l->name[i]);
		(void)session_put_path(s, WIRE_GET_DATA, path, 0);
	}
	code = session_send(s, limit);
	for (i = from; i < to && code == ZK_OK; i++) {
		code = session_reply(s, first + (int32_t)(i - from), &body, limit);
		if (code == ZK_OK)
			code = add_waiter(l, i, &body);
		else if (code == ZK_NO_AUTH)
			code = add_waiter(l, i, NULL);
		else if (code == ZK_NO_NODE) /* it has left meanwhile */
			code = ZK_OK;
	}
	return code;
}

enum status
zk_history(struct backend *backend, const char *key, int interrupt_fd, struct history *history, struct err *err)
{
	struct zk_backend *z = (struct zk_backend *)backend;
	struct line l = { .history = history };
	struct limit limit = zk_limit(z, CLOCK_NEVER, interrupt_fd);
	enum zk_code code;
	size_t i, to;

	memset(history, 0, sizeof(*history));
	path_of_key(z->url.chroot, key, l.lock);
	code = zk_look_begin(z, &l.session, &limit);
	if (code == ZK_OK)
		code = list_names(&l, &limit);
	for (i = 0; i < l.count && code == ZK_OK; i = to) {
		to = l.count - i > FLIGHT_MAX ? i + FLIGHT_MAX : l.count;
		limit = zk_limit(z, CLOCK_NEVER, interrupt_fd);
		code = ask_some(&l, i, to, &limit);
	}
	zk_look_end(z, &l.session);
	for (i = 0; i < l.count; i++)
		free(l.name[i]);
	free(l.name);
	return code == ZK_OK ? ST_OK : zk_error(z, code, err);
}
