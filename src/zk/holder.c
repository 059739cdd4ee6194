/* SPDX-License-Identifier: MIT */
#include <stdio.h>
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

enum zk_code
zk_look_queue(struct wire_in *body, struct queue *q)
{
	const enum zk_code code = zk_read_queue(body, q);

	if (code == ZK_OK)
		queue_drop_keys(q, wire_get_stat(body).made);
	return code;
}

enum zk_code
zk_ask_queue(struct session *s, const char *lock, struct queue *q, const struct limit *limit)
{
	const int32_t xid = session_put_path(s, WIRE_GET_CHILDREN2, lock, 0);
	struct wire_in body;
	const enum zk_code code = session_call(s, xid, &body, limit);

	return code == ZK_OK ? zk_look_queue(&body, q) : code;
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
	struct queue alone;

	memset(&alone, 0, sizeof(alone));
	h->other_client = true;
	h->left_ms = h->held_ms = -1;
	if (!queue_add(&alone, name, strlen(name)) || alone.count == 0)
		return;
	h->client = queue_client(&alone, 0);
	queue_free(&alone);
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
