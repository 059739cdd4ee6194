/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/duration.h"
#include "zk/backend.h"

static const struct wait forever = { CLOCK_NEVER, -1 };

#define LOOK_US 5000000 /* between two looks at the holder, by a waiter that does not watch it */

/* One acquire operation. */
struct acquire {
	struct zk_backend *backend;
	const struct acquire_args *args;
	struct wait wait;     /* for the lock */
	struct wait exchange; /* for one exchange with a server, which the node timeout limits */
	struct place *place;  /* of our entry */
	int64_t queued_us;    /* when our entry was made */
	bool stale;	      /* our place may have changed */
	bool waited;
	unsigned int tries;    /* that failed without a wait between them */
	struct holder holder;  /* the one that was reported last; LOCK_FREE: none is known */
	int64_t kept_until_us; /* if it is kept after its command; otherwise 0 */
	int64_t report_us;     /* when the caller wants the next report */
	int64_t look_us;       /* when to look at the holder again */
};

/* Our place is safe while the session lives: wait for the end of an outage, briefly also without --wait. */
static struct wait
outage_limit(const struct acquire *a)
{
	const int64_t least = clock_add(clock_now_us(), 3 * a->backend->node_timeout_us);

	return a->wait.until_us > least ? a->wait : (struct wait){ least, a->wait.interrupt_fd };
}

/* -- The session ------------------------------------------------------------ */

/* Did the ensemble grant the length that is needed? */
static enum status
check_length(const struct acquire *a, struct err *err)
{
	const int64_t granted_ms = a->backend->session.granted.length_ms, hold_ms = a->args->min_hold_ms;
	const int64_t needed_ms = granted_ms < hold_ms || a->args->may_be_shorter ? hold_ms : a->args->ttl_ms;
	char granted[32], needed[32];

	duration_show(granted_ms, granted, sizeof(granted));
	duration_show(needed_ms, needed, sizeof(needed));
	if (granted_ms < needed_ms)
		return err_set(err, ST_USAGE,
		    "this ensemble grants leases of at most %s, and %s was asked for; use a shorter %s, or raise "
		    "maxSessionTimeout",
		    granted, needed, needed_ms == hold_ms ? "--min-hold or --once-per" : "--ttl");
	if (granted_ms != a->args->ttl_ms)
		log_debug(&a->backend->log, "the ensemble granted a lease of %s", granted);
	return ST_OK;
}

/* -- Waiting ---------------------------------------------------------------- */

/* Ask who holds the lock.  If it has been released since the last list, list again: ours may be the first now. */
static enum zk_code
ask_holder(struct acquire *a)
{
	struct session *const s = &a->backend->session;
	struct wire_in body;
	enum zk_code code = ZK_OK, asked = ZK_NO_NODE;
	int64_t made_ms;

	while (code == ZK_OK && asked == ZK_NO_NODE && !a->place->first) {
		asked = session_call(s, session_put_path(s, WIRE_GET_DATA, a->place->head), &body, &a->exchange);
		if (asked == ZK_OK)
			(void)zk_read_holder(strrchr(a->place->head, '/') + 1, &body, &a->holder, &made_ms);
		else if (asked == ZK_NO_NODE) {
			s->before.xid = 0;
			code = entry_find(&a->backend->entry, &a->exchange);
		}
	}
	a->kept_until_us = a->holder.state == LOCK_KEPT ? clock_add(clock_now_us(), a->holder.left_ms * 1000) : 0;
	/* The entry before ours is watched, so the holder need not be asked again if that is the first. */
	a->look_us = a->place->second || a->wait.until_us == CLOCK_NEVER ? CLOCK_NEVER : clock_now_us() + LOOK_US;
	a->holder.waiting = a->place->waiting;
	return asked == ZK_OK || asked == ZK_NO_NODE || asked == ZK_NO_AUTH ? code : asked;
}

/* Report the holder, or NULL if it is not known, to the caller. */
static void
report(struct acquire *a, const struct holder *holder)
{
	a->report_us = a->args->waiting != NULL ? a->args->waiting(a->args->context, holder) : CLOCK_NEVER;
}

/* The wait also ends if the lock is kept for longer, after its command. */
static bool
is_over(const struct acquire *a)
{
	return clock_now_us() >= a->wait.until_us || a->kept_until_us >= a->wait.until_us;
}

/*
 * Watch the entry before ours, if it is not watched yet, until it is gone, or a report or a look is due.  Ours is the first
 * if that was the only one before it, and nothing has happened to ours.
 */
static enum zk_code
watch_before(struct acquire *a)
{
	const int64_t due_us = clock_sooner(a->report_us, a->look_us);
	const struct wait limit = { clock_sooner(due_us, a->wait.until_us), a->wait.interrupt_fd };
	struct session *const s = &a->backend->session;
	struct wire_in body;
	enum zk_code code = ZK_OK;

	if (s->before.xid == 0)
		code = session_call(s, session_put_watch(s, &s->before, a->place->before), &body, &a->exchange);
	a->stale = code == ZK_NO_NODE;
	if (code != ZK_OK)
		return a->stale ? ZK_OK : code;
	code = session_wait(s, &limit);
	a->stale = s->before.event != 0 || s->ours.event != 0;
	if (code == ZK_OK)
		a->tries = 0;
	a->place->first = code == ZK_OK && s->before.event == WIRE_EVENT_DELETED && s->ours.event == 0 &&
	    a->place->second;
	return code;
}

/* Look for our place; until a server answers, the holder is not known. */
static enum zk_code
try_place(void *context, const struct wait *wait)
{
	struct acquire *const a = context;
	enum zk_code code;

	(void)wait;
	code = entry_find(&a->backend->entry, &a->exchange);
	if (session_is_lost(code) && clock_now_us() >= a->report_us)
		report(a, NULL);
	return code;
}

/* Wait until our entry is the first, or the wait ends: then it isn't. */
static enum zk_code
wait_for_turn(struct acquire *a)
{
	struct session *const s = &a->backend->session;
	enum zk_code code = ZK_OK;

	while (code == ZK_OK && !a->place->first && !is_over(a)) {
		if (!a->waited || a->args->waiting != NULL || a->args->wait.until_us != CLOCK_NEVER)
			code = ask_holder(a);
		if (code == ZK_OK && a->place->first)
			break;
		if (code == ZK_OK)
			report(a, a->holder.state != LOCK_FREE ? &a->holder : NULL);
		a->waited = true;
		if (code == ZK_OK && !is_over(a))
			code = watch_before(a);
		if (session_is_lost(code)) {
			if (session_fd(s) >= 0)
				session_log(s, s->tried.reason.text, "");
			session_leave_server(s);
			a->stale = true;
			code = ZK_OK;
			(void)session_pause(s, &a->tries, &a->wait, &code);
		}
		if (code == ZK_OK && a->stale && !a->place->first && !is_over(a)) {
			s->before.xid = 0;
			a->stale = false;
			code = session_retry(s, try_place, a, &a->wait);
		}
	}
	return code;
}

/*
 * The wait is over: look once more, since another client may hold the lock now than at the beginning, or nobody.  If no
 * server answers, the holder that is known already is reported.
 */
static enum zk_code
try_last(struct acquire *a)
{
	enum zk_code code = a->waited ? entry_find(&a->backend->entry, &a->exchange) : ZK_OK;

	if (code == ZK_OK && !a->place->first)
		code = ask_holder(a);
	if (!a->waited || (int)code >= 0)
		return code;
	if (session_is_lost(code))
		session_leave_server(&a->backend->session); /* another one can end the session */
	return ZK_OK;
}

/* -- The grant -------------------------------------------------------------- */

/*
 * Our entry is first.  If the last proof is not fresh, another one is needed.  Otherwise the data, which now says how
 * long we waited, is written without waiting for the reply.
 */
static enum zk_code
confirm(struct acquire *a)
{
	struct session *const s = &a->backend->session;
	struct entry *const e = &a->backend->entry;
	const struct wait outage = outage_limit(a);

	if (a->waited)
		e->metadata.since_ms = (clock_now_us() - a->queued_us) / 1000;
	/* It is fresh if it gives at least half a lease. */
	if (clock_now_us() < s->valid_until_us - (int64_t)s->granted.length_ms * 500 && session_is_connected(s) &&
	    (!a->waited || !session_is_lost(entry_write(e, &a->exchange))))
		return ZK_OK;
	return session_retry(s, entry_prove, e, &outage);
}

/* Make a session and an entry, and wait for our turn. */
static enum zk_code
attempt(struct acquire *a, enum status *refused, struct err *err)
{
	struct zk_backend *const z = a->backend;
	struct session *const s = &z->session;
	const int64_t asked_ms = a->args->ttl_ms > a->args->min_hold_ms ? a->args->ttl_ms : a->args->min_hold_ms;
	struct metadata *const m = &z->entry.metadata;
	struct zk_token token = { .hold = METADATA_FIRST_HOLD };
	struct wait outage;
	enum zk_code code;

	if (!zk_uuid_new(token.uuid)) {
		reason_set(&s->tried.reason, "the kernel has no random numbers for a token");
		return ZK_LOCAL;
	}
	entry_init(&z->entry, s, a->args->key, &token);
	(void)snprintf(m->owner, sizeof(m->owner), "%s", a->args->owner);
	(void)snprintf(m->label, sizeof(m->label), "%s", a->args->label);
	code = session_create(s, asked_ms, &a->exchange);
	if (code != ZK_OK)
		return code;
	*refused = check_length(a, err);
	if (*refused != ST_OK)
		return ZK_OK;
	if (z->log.debug != NULL && z->url.user[0] != '\0' && zk_is_unguarded(s, z->entry.lock, &a->exchange))
		log_debug(&z->log,
		    "everybody may break this lock, or the next one: make the chroot by hand, with an ACL");
	outage = outage_limit(a);
	a->queued_us = clock_now_us();
	code = session_retry(s, entry_join, &z->entry, &outage);
	if (code == ZK_OK)
		code = wait_for_turn(a);
	if (code == ZK_OK && !a->place->first)
		code = try_last(a);
	return code == ZK_OK && a->place->first ? confirm(a) : code;
}

/* -- Entering again ---------------------------------------------------------- */

/*
 * Enter the lock of a token again: a proof that adds a hold.  The lease is that of the session, and any holder renews it.
 * ST_NO: none of the caller's holds holds it.
 */
static enum status
reenter(struct zk_backend *z, const struct acquire_args *args, struct lease *lease, struct err *err)
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

/* -- The operation ---------------------------------------------------------- */

enum status
zk_acquire(struct backend *backend, const struct acquire_args *args, struct lease *lease, struct err *err)
{
	struct zk_backend *const z = (struct zk_backend *)backend;
	struct acquire a = { .backend = z,
		.place = &z->entry.place,
		.args = args,
		.wait = args->wait,
		.exchange = { CLOCK_NEVER, args->wait.interrupt_fd } };
	struct pollfd fd = { .fd = args->wait.interrupt_fd, .events = POLLIN };
	enum status status, refused = ST_OK;
	enum zk_code code;
	char answer[64];

	path_of_key(z->url.chroot, args->key, z->entry.lock);
	if (path_is_reserved(z->entry.lock))
		return err_set(err, ST_USAGE, "/zookeeper belongs to ZooKeeper itself; use another KEY, or a chroot");
	status = reenter(z, args, lease, err);
	if (status != ST_NO || args->must_hold)
		return status;
	err->text[0] = '\0'; /* of holds that are gone: the report of a wait would show it */
	for (;;) {
		code = attempt(&a, &refused, err);
		/*
		 * If the session has expired, or somebody has removed our nodes, the wait begins again at the end of the
		 * queue.  A client that has waited already does so too if no session can be made.
		 */
		if (is_over(&a) || (code != ZK_EXPIRED && code != ZK_NO_NODE && !(a.waited && session_is_lost(code))))
			break;
		(void)session_close(&z->session, &forever); /* it leaves the queue */
		if (!session_pause(&z->session, &a.tries, &a.wait, &code))
			break;
	}
	z->session.before.path = NULL;
	if (refused != ST_OK)
		status = refused;
	else if (code != ZK_OK)
		status = zk_error(z, code, err);
	else if (!a.place->first && a.holder.state != LOCK_FREE) {
		status = holder_error(&a.holder, 0, err);
		if (args->refused_by != NULL)
			*args->refused_by = a.holder;
	} else if (!a.place->first)
		status = err_set(err, ST_HELD, "held by another");
	else if (clock_now_us() >= z->session.valid_until_us)
		status = err_set(err, ST_NO_QUORUM,
		    "granted too late: the lease had nearly expired; use a longer --ttl");
	else if (a.wait.until_us != 0 && fd.fd >= 0 && poll(&fd, 1, 0) == 1) /* while the lock was being granted */
		status = err_set(err, ST_INTERRUPTED, "interrupted");
	else
		status = ST_OK;
	if (status != ST_OK) {
		(void)session_close(&z->session, &forever); /* it leaves the queue */
		return status;
	}
	(void)snprintf(answer, sizeof(answer), "granted, fence %" PRId64, z->entry.fence);
	session_log(&z->session, answer, "");
	zk_fill_lease(z, args, lease);
	return ST_OK;
}
