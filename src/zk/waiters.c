/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "zk/operations.h"

enum {
	FLIGHT_MAX = 100 /* requests that are sent at once */
};

/* The waiters of one lock. */
struct line {
	struct session *session;
	char lock[PATH_LOCK_SIZE];
	struct queue queue;
	size_t waiters; /* so many have been added */
	struct history *history;
};

/* Is it the first node of a waiter's entry? */
static bool
is_waiter(const struct queue *q, size_t i)
{
	return i > 0 && !queue_is_same(q, i, 0) && !queue_is_same(q, i, i - 1);
}

/* Add a waiter; those of dlock tell who they are.  NULL: its data may not be read. */
static enum zk_code
add_waiter(struct line *l, const char *name, struct wire_in *body)
{
	struct holder holder = { .fence = 0 };
	struct waiter w = { .place = l->waiters++ };

	if (body != NULL && !zk_read_holder(name, body, &holder, &w.since_ms))
		return ZK_SYSTEM_ERROR;
	(void)snprintf(w.id, sizeof(w.id), "%zu", w.place);
	(void)snprintf(w.owner, sizeof(w.owner), "%s", holder.owner);
	(void)snprintf(w.label, sizeof(w.label), holder.client != NULL ? "(%s)" : "%s",
	    holder.client != NULL ? holder.client : holder.label);
	return history_put_waiter(l->history, &w) ? ZK_OK : ZK_LOCAL;
}

/* Ask for the data of some of them. */
static enum zk_code
ask_some(struct line *l, size_t from, size_t to, const struct wait *limit)
{
	struct session *const s = l->session;
	int32_t xid = s->xid + 1;
	char path[PATH_SIZE];
	struct wire_in body;
	enum zk_code code;
	size_t i;

	for (i = from; i < to; i++) {
		(void)queue_path(&l->queue, i, l->lock, path); /* a name that is too long has no node */
		if (is_waiter(&l->queue, i))
			(void)session_put_path(s, WIRE_GET_DATA, path, 0);
	}
	code = session_send(s, limit);
	for (i = from; i < to && code == ZK_OK; i++) {
		if (!is_waiter(&l->queue, i))
			continue;
		code = session_reply(s, xid++, &body, limit);
		if (code == ZK_OK || code == ZK_NO_AUTH)
			code = add_waiter(l, l->queue.contender[i].name, code == ZK_OK ? &body : NULL);
		else if (code == ZK_NO_NODE) /* it has left meanwhile */
			code = ZK_OK;
	}
	return code;
}

enum status
zk_history(struct backend *backend, const char *key, const struct wait *wait, struct history *history, struct err *err)
{
	struct zk_backend *z = (struct zk_backend *)backend;
	struct line l = { .session = &z->look, .history = history };
	struct wait limit = zk_limit(z, CLOCK_NEVER, wait->interrupt_fd);
	enum zk_code code;
	size_t i, to;

	memset(history, 0, sizeof(*history));
	path_of_key(z->url.chroot, key, l.lock);
	code = zk_look_begin(z, &limit);
	if (code == ZK_OK) {
		(void)session_put_path(l.session, WIRE_SYNC, l.lock, 0);
		code = zk_ask_queue(l.session, l.lock, &l.queue, &limit);
	}
	if (code == ZK_NO_NODE)
		code = ZK_OK;
	for (i = 0; i < l.queue.count && code == ZK_OK; i = to) {
		to = l.queue.count - i > FLIGHT_MAX ? i + FLIGHT_MAX : l.queue.count;
		limit = zk_limit(z, CLOCK_NEVER, wait->interrupt_fd);
		code = ask_some(&l, i, to, &limit);
	}
	zk_look_end(z, code);
	queue_free(&l.queue);
	return code == ZK_OK ? ST_OK : zk_error(z, code, err);
}
