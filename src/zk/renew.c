/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/duration.h"
#include "lock/loss.h"
#include "zk/operations.h"

#define WRITES_MAX 8 /* other holds may change the data between our read and our write */

enum zk_code
zk_read_entry(struct zk_backend *z, struct wire_in *body)
{
	const struct wire_text data = wire_get_text(body);
	const struct wire_stat stat = wire_get_stat(body);
	struct entry *const e = &z->entry;

	if (body->bad)
		return ZK_SYSTEM_ERROR;
	if (stat.owner != z->session.id)
		return ZK_NO_NODE;
	if (!metadata_read(data.bytes, data.length, &e->metadata))
		memset(&e->metadata, 0, sizeof(e->metadata));
	e->version = stat.version;
	e->fence = stat.czxid;
	e->known = true;
	return ZK_OK;
}

int32_t
zk_put_metadata(struct zk_backend *z)
{
	struct entry *const e = &z->entry;
	char *data;
	int32_t xid = 0;

	e->metadata.ttl_ms = z->session.length_ms;
	data = metadata_write(&e->metadata);
	if (data != NULL)
		xid = session_put_set_data(&z->session, e->path, data, e->version);
	free(data);
	return xid;
}

/* -- A proof ---------------------------------------------------------------- */

/* Read the data, and check or add the hold. */
static enum zk_code
learn(struct zk_backend *z, const struct zk_proof *p, int32_t xid)
{
	struct metadata *const m = &z->entry.metadata;
	struct wire_in body;
	enum zk_code code = session_reply(&z->session, xid, &body, &p->limit);

	if (code == ZK_OK)
		code = zk_read_entry(z, &body);
	if (code != ZK_OK)
		return code;
	if (!metadata_has_hold(m, p->hold) || m->kept_by[0] != '\0')
		return ZK_NO_NODE;
	return p->added == NULL || metadata_add_hold(m, p->added) ? ZK_OK : ZK_SYSTEM_ERROR;
}

/* Put the write, or if the data is not known, the request for it. */
static int32_t
put_next(struct zk_backend *z)
{
	struct session *const s = &z->session;
	int32_t xid;

	if (!z->entry.known)
		return session_put_path(s, WIRE_GET_DATA, z->entry.path, 0);
	xid = zk_put_metadata(z);
	(void)session_put_watch(s, &s->ours, z->entry.path);
	return xid;
}

/* Take the reply to the write. */
static enum zk_code
take_written(struct zk_backend *z, int32_t xid, const struct wait *limit)
{
	struct wire_in body;
	enum zk_code code = session_reply(&z->session, xid, &body, limit);
	struct wire_stat stat;

	if (code != ZK_OK)
		return code;
	stat = wire_get_stat(&body);
	if (body.bad)
		return ZK_SYSTEM_ERROR;
	z->entry.version = stat.version;
	session_prove(&z->session);
	return ZK_OK;
}

/* Write on the connection that was just made.  `xid` is the request that went out with it. */
static enum zk_code
write_entry(struct zk_backend *z, const struct zk_proof *p, int32_t xid)
{
	enum zk_code code;
	int replies;

	for (replies = 0; replies < 2 * WRITES_MAX; replies++) {
		if (z->entry.known) {
			code = take_written(z, xid, &p->limit);
			if (code != ZK_BAD_VERSION)
				return code;
			z->entry.known = false;
		} else {
			code = learn(z, p, xid);
			if (code != ZK_OK)
				return code;
		}
		xid = put_next(z);
		code = session_send(&z->session, &p->limit);
		if (code != ZK_OK)
			return code;
	}
	return ZK_BAD_VERSION;
}

static enum zk_code
prove(struct zk_backend *z, const struct zk_proof *p)
{
	enum zk_code code;
	int32_t xid;

	session_begin(&z->session, z->session.length_ms);
	if (p->added != NULL)
		z->entry.known = false;
	xid = put_next(z);
	code = session_attach(&z->session, &p->limit);
	if (code == ZK_OK)
		code = write_entry(z, p, xid);
	if (code == ZK_OK)
		return code;
	/* What was sent may have been done or not. */
	z->entry.known = false;
	session_leave_server(&z->session);
	return code;
}

enum zk_code
zk_prove_until(struct zk_backend *z, struct zk_proof *p, const struct wait *limit)
{
	unsigned int tries = 0;
	enum zk_code code;

	do {
		p->limit = zk_limit(z, limit->until_us, limit->interrupt_fd);
		code = prove(z, p);
	} while (session_is_lost(code) && session_pause(&z->session, &tries, limit, &code));
	return code;
}

/* -- The operation ---------------------------------------------------------- */

static enum status
refuse(struct zk_backend *z, enum zk_code code, const struct lease *lease, struct renewed *renewed, struct err *err)
{
	/* Whoever supervises a command must know at once. */
	renewed->ownership = lease->owner != NULL ? OWNED_BY_NOBODY : zk_look_owner(z, lease->key);
	if (renewed->ownership != OWNED_BY_ANOTHER && code != ZK_EXPIRED)
		renewed->ownership = OWNED_NO_MORE;
	return loss_error(renewed->ownership, err);
}

enum status
zk_renew(struct backend *backend, struct lease *lease, const struct wait *limit, struct renewed *renewed,
    struct err *err)
{
	struct zk_backend *z = (struct zk_backend *)backend;
	struct zk_token token;
	struct zk_proof proof = { .hold = token.hold };
	struct wait round;
	enum zk_code code;
	char length[32];

	if (!zk_adopt(z, lease, &token, err))
		return ST_USAGE;
	if (lease->ttl_ms != 0 && lease->owner == NULL && lease->ttl_ms != token.length_ms) {
		duration_show(token.length_ms, length, sizeof(length));
		return err_set(err, ST_USAGE, "the length of a ZooKeeper lease cannot be changed; it is %s", length);
	}
	log_debug(&z->log, "renewing the lease");
	round = zk_limit(z, limit->until_us, limit->interrupt_fd);
	code = zk_prove_until(z, &proof, &round);
	if (code == ZK_NO_NODE || code == ZK_EXPIRED)
		return refuse(z, code, lease, renewed, err);
	if (code != ZK_OK)
		return zk_error(z, code, err);
	zk_log_answer(z, "done");
	lease->ttl_ms = z->session.length_ms;
	renewed->sent_us = z->session.connected_us;
	renewed->valid_until_us = z->session.valid_until_us;
	renewed->ownership = OWNED;
	return ST_OK;
}

int
zk_alert_fd(struct backend *backend)
{
	const struct zk_backend *z = (const struct zk_backend *)backend;

	return z->session.connection.open ? z->session.connection.stream.fd : -1;
}

/*
 * The data of the lock node changes when another process enters the lock again.  That is no reason to renew, but the
 * watch must be set again.
 *
 * Nor does the end of the connection mean anything, but without it a break is not noticed, so a renewal makes a new one.
 * If the lock was entered again, another process renews the session as well, and each renewal ends the connection of
 * the other: then the next one is made when it is due.
 */
bool
zk_alerted(struct backend *backend)
{
	struct zk_backend *z = (struct zk_backend *)backend;
	struct session *const s = &z->session;
	const struct wait at_once = { 0, -1 };
	enum zk_code code = session_poll(s);

	if (code == ZK_OK && s->ours.event == WIRE_EVENT_CHANGED) {
		(void)session_put_watch(s, &s->ours, z->entry.path);
		code = session_send(s, &at_once);
	}
	if (code == ZK_OK)
		return s->ours.event != 0;
	connection_close(&s->connection);
	return metadata_holds(&z->entry.metadata) == 1;
}
