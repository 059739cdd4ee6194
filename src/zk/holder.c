/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "zk/operations.h"

/* -- Queues ----------------------------------------------------------------- */

enum zk_code
zk_read_queue(struct wire_in *body, struct queue *q)
{
	const int32_t count = wire_get_count(body, 4);
	struct wire_text name;
	int32_t i;

	memset(q, 0, sizeof(*q));
	for (i = 0; i < count && !body->bad; i++) {
		name = wire_get_text(body);
		if (!queue_add(q, name.bytes, name.length)) {
			queue_free(q);
			return ZK_LOCAL;
		}
	}
	if (body->bad) {
		queue_free(q);
		return ZK_SYSTEM_ERROR;
	}
	queue_sort(q);
	return ZK_OK;
}

/* May it be the node of a KEY?  Then path is its path. */
static bool
is_doubtful(const struct queue *q, size_t i, const char *lock, char path[PATH_SIZE])
{
	return queue_client(q->contender[i].name, q->contender[i].length) == NULL && queue_path(q, i, lock, path);
}

enum zk_code
zk_drop_keys(struct session *s, const char *lock, struct queue *q, size_t end, const struct wait *limit)
{
	int32_t xid = s->xid + 1;
	char path[PATH_SIZE];
	struct wire_in body;
	enum zk_code code;
	size_t i, kept = 0;

	for (i = 0; i < end; i++) {
		if (is_doubtful(q, i, lock, path))
			(void)session_put_path(s, WIRE_EXISTS, path, 0);
	}
	code = xid <= s->xid ? session_send(s, limit) : ZK_OK;
	for (i = 0; i < q->count; i++) {
		if (i < end && code == ZK_OK && is_doubtful(q, i, lock, path)) {
			code = session_reply(s, xid++, &body, limit);
			if (code == ZK_NO_NODE || (code == ZK_OK && wire_get_stat(&body).owner == 0)) {
				free(q->contender[i].name);
				code = ZK_OK;
				continue;
			}
		}
		q->contender[kept++] = q->contender[i];
	}
	q->count = kept;
	return code;
}

enum zk_code
zk_ask_queue(struct session *s, const char *lock, struct queue *q, const struct wait *limit)
{
	const int32_t xid = session_put_path(s, WIRE_GET_CHILDREN2, lock, 0);
	struct wire_in body;
	enum zk_code code = session_call(s, xid, &body, limit);

	if (code == ZK_OK)
		code = zk_read_queue(&body, q);
	if (code == ZK_OK)
		code = zk_drop_keys(s, lock, q, q->count, limit);
	return code;
}

/* -- Rights ----------------------------------------------------------------- */

/* Get the rights that everybody has on a node. */
static enum zk_code
ask_rights(struct session *s, const char *path, int32_t *rights, const struct wait *limit)
{
	const int32_t xid = session_put_path(s, WIRE_GET_ACL, path[0] != '\0' ? path : "/", 0);
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

/* Our own node: its data has the rest.  The clock of the leader and ours may differ. */
static void
describe_ours(const char *name, const struct wire_stat *stat, const struct metadata *m, struct holder *h)
{
	const int64_t now_ms = clock_wall_us() / 1000;

	(void)snprintf(h->owner, sizeof(h->owner), "%s", m->owner);
	(void)snprintf(h->label, sizeof(h->label), "%s", m->label);
	h->holds = metadata_holds(m);
	h->handover = h->kept = m->kept_by[0] != '\0';
	(void)snprintf(h->kept_by, sizeof(h->kept_by), "%s", m->kept_by);
	h->ttl_ms = m->ttl_ms;
	h->ended_ms = within(now_ms - stat->mtime_ms, INT64_MAX);
	h->left_ms = within(stat->mtime_ms + m->ttl_ms - now_ms, m->ttl_ms);
	h->held_ms = within(now_ms - stat->ctime_ms - m->since_ms, INT64_MAX);
	(void)zk_token_begin(name, strlen(name), h->token);
}

static void
describe_other(const char *name, struct holder *h)
{
	h->other_client = true;
	h->left_ms = h->held_ms = -1;
	h->client = queue_client(name, strlen(name));
}

void
zk_read_broken(struct wire_in *body, struct broken *broken)
{
	const struct wire_text data = wire_get_text(body);
	const struct wire_stat stat = wire_get_stat(body);
	struct metadata m;

	if (body->bad || !metadata_read(data.bytes, data.length, &m) || m.broken[0] == '\0')
		return;
	broken->ago_ms = within(clock_wall_us() / 1000 - stat.mtime_ms, INT64_MAX);
	memcpy(broken->token, m.broken, sizeof(broken->token));
	memcpy(broken->owner, m.owner, sizeof(broken->owner));
}

bool
zk_read_holder(const char *name, struct wire_in *body, struct holder *h, int64_t *made_ms)
{
	const struct wire_text data = wire_get_text(body);
	const struct wire_stat stat = wire_get_stat(body);
	struct metadata metadata;

	memset(h, 0, sizeof(*h));
	if (body->bad)
		return false;
	h->fence = stat.czxid;
	if (made_ms != NULL)
		*made_ms = stat.ctime_ms;
	if (metadata_read(data.bytes, data.length, &metadata))
		describe_ours(name, &stat, &metadata, h);
	else
		describe_other(name, h);
	return true;
}
