/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "zk/operations.h"

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
	h->state = m->kept_by[0] != '\0' ? LOCK_KEPT : LOCK_HELD;
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
	h->state = LOCK_OTHER_CLIENT;
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
