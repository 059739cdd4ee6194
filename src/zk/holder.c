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
describe_ours(const struct zk_contender *c, const struct wire_stat *stat, const struct metadata *m, struct holder *h)
{
	const int64_t now_ms = clock_wall_us() / 1000;
	unsigned char uuid[ZK_UUID_SIZE];

	(void)snprintf(h->owner, sizeof(h->owner), "%s", m->owner);
	(void)snprintf(h->label, sizeof(h->label), "%s", m->label);
	h->holds = metadata_holds(m);
	h->handover = h->kept = m->kept;
	h->ended_ms = within(now_ms - stat->mtime_ms, INT64_MAX);
	h->left_ms = within(stat->mtime_ms + m->ttl_ms - now_ms, m->ttl_ms);
	h->held_ms = within(now_ms - stat->ctime_ms - m->since_ms, INT64_MAX);
	if (c->length > QUEUE_ENTRY_LENGTH && zk_uuid_read(c->name + 3, uuid))
		zk_token_hint(uuid, h->token);
}

static void
describe_other(const struct zk_contender *c, struct holder *h)
{
	struct queue alone;

	memset(&alone, 0, sizeof(alone));
	h->other_client = true;
	h->left_ms = h->held_ms = -1;
	if (!queue_add(&alone, c->name, c->length) || alone.count == 0)
		return;
	h->client = queue_client(&alone, 0);
	queue_free(&alone);
}

bool
zk_read_holder(const struct zk_contender *c, struct holder *h)
{
	const struct wire_text data = wire_get_text(c->body);
	const struct wire_stat stat = wire_get_stat(c->body);
	struct metadata metadata;

	memset(h, 0, sizeof(*h));
	if (c->body->bad)
		return false;
	h->fence = stat.czxid;
	if (metadata_read(data.bytes, data.length, &metadata))
		describe_ours(c, &stat, &metadata, h);
	else
		describe_other(c, h);
	return true;
}
