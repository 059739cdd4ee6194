/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/duration.h"
#include "zk/backend.h"

enum status
zk_renew(struct backend *backend, struct lease *lease, const struct wait *limit, struct renewed *renewed,
    struct err *err)
{
	struct zk_backend *z = (struct zk_backend *)backend;
	struct wait round;
	enum zk_code code;
	char length[32];

	if (!zk_adopt(z, lease, err))
		return ST_USAGE;
	if (lease->ttl_ms != 0 && lease->owner == NULL && lease->ttl_ms != z->session.granted.length_ms) {
		duration_show(z->session.granted.length_ms, length, sizeof(length));
		return err_set(err, ST_USAGE, "the length of a ZooKeeper lease cannot be changed; it is %s", length);
	}
	log_debug(&z->log, "renewing the lease");
	round = session_limit(&z->session, limit);
	code = session_retry(&z->session, entry_prove, &z->entry, &round);
	if (code == ZK_NO_NODE || code == ZK_EXPIRED) {
		/* A supervisor must know at once: it does not look for the new owner. */
		renewed->ownership = lease->owner != NULL ? OWNED_BY_NOBODY : zk_look_owner(z, lease->key);
		if (renewed->ownership != OWNED_BY_ANOTHER && code != ZK_EXPIRED)
			renewed->ownership = OWNED_NO_MORE;
		return loss_error(renewed->ownership, err);
	}
	if (code != ZK_OK)
		return zk_error(z, code, err);
	session_log(&z->session, "done", "");
	lease->ttl_ms = z->session.granted.length_ms;
	renewed->sent_us = z->session.connected_us;
	renewed->valid_until_us = z->session.valid_until_us;
	renewed->ownership = OWNED;
	return ST_OK;
}

int
zk_alert_fd(struct backend *backend)
{
	const struct zk_backend *z = (const struct zk_backend *)backend;

	return session_fd(&z->session);
}

/*
 * The data of the lock node changes when another process enters the lock again.  That is no reason to renew, but the
 * watch must be set again.
 *
 * The end of the connection means nothing either, but without one a break is not noticed, so a renewal makes a new one.
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
	session_disconnect(s);
	return metadata_holds(&z->entry.metadata) == 1;
}

/* -- Entering again ---------------------------------------------------------- */

/*
 * Enter the lock of a token again: a proof that adds a hold.  The lease is that of the session, and any holder renews it.
 */
enum status
zk_reenter(struct zk_backend *z, const struct acquire_args *args, struct lease *lease, struct err *err)
{
	struct entry *const e = &z->entry;
	char hold[TOKEN_SIZE];
	struct wait limit;
	enum ownership ownership;
	struct err ignored;
	enum zk_code code = ZK_NO_NODE;
	int i;

	for (i = 0; i < args->holds && (code == ZK_NO_NODE || code == ZK_EXPIRED); i++) {
		limit = session_limit(&z->session, &(struct wait){ CLOCK_NEVER, args->wait.interrupt_fd });
		*lease = (struct lease){ .key = args->key };
		memcpy(lease->token, args->hold[i].token, sizeof(lease->token));
		if (!zk_adopt(z, lease, err))
			continue; /* it may be the token of another service */
		if (!token_new(hold))
			return err_set(err, ST_SYSTEM, "the kernel has no random numbers for a token");
		(void)snprintf(e->added, sizeof(e->added), "%.*s", METADATA_HOLD_LENGTH, hold);
		log_debug(&z->log, "entering the lock again");
		code = session_retry(&z->session, entry_prove, e, &limit);
		if (code == ZK_NO_NODE || code == ZK_EXPIRED)
			(void)err_set(err, ST_NO, "gone");
	}
	if (code == ZK_NO_NODE || code == ZK_EXPIRED)
		return ST_NO;
	memcpy(e->token.hold, e->added, sizeof(e->added));
	zk_fill_lease(z, args, lease);
	if (code == ZK_OK && clock_now_us() < lease->valid_until_us)
		return ST_OK;
	/* The hold may have been written. */
	(void)zk_release(&z->base, lease, 0, &ownership, &ignored);
	if (code == ZK_OK)
		return err_set(err, ST_NO_QUORUM, "granted too late: the lease had nearly expired; use a longer --ttl");
	return zk_error(z, code, err);
}
