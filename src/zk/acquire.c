/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/duration.h"
#include "base/text.h"
#include "zk/backend.h"
#include "zk/slots.h"

static const struct wait forever = { CLOCK_NEVER, -1 };

#define LOOK_US 5000000 /* between two looks at the holder, by a waiter that does not watch it */

/* One acquire operation. */
struct acquire {
	struct zk_backend *backend;
	const struct acquire_args *args;
	struct wait wait;     /* for the lock */
	struct wait exchange; /* for one exchange with a server, which the node timeout limits */
	struct entry *entry;  /* that waits: of the lock, or for a slot first that of the mutex, and then the lease */
	bool vacant;	      /* a slot may be free, although another client has the mutex, */
	bool waits_for_it;    /* which is waited for, briefly also without --wait */
	int64_t queued_us;    /* when our entry was made */
	bool stale;	      /* our place may have changed */
	bool waited;
	bool gives_way;	       /* a newer client that replaces the holder has asked us */
	unsigned int tries;    /* that failed without a wait between them */
	struct holder holder;  /* the one that was reported last; LOCK_FREE: none is known */
	int64_t kept_until_us; /* if it is kept after its command; otherwise 0 */
	int64_t crowd;	       /* so many wait that we may not; 0: we may */
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

/*
 * Ask for the holder of the slot whose lease ends first; nobody, if a slot is free.  Then a lease is looked for again.
 */
static enum zk_code
ask_slots(struct acquire *a)
{
	struct slots_summary sum;
	const enum zk_code code = slots_ask(&a->backend->session, a->backend->entry.lock, &sum, &a->exchange);

	if (code != ZK_OK)
		return code;
	a->vacant = sum.held < a->args->slots;
	a->holder = sum.first;
	if (a->vacant)
		a->holder.state = LOCK_FREE;
	a->kept_until_us = sum.all_kept && !a->vacant ? clock_add(clock_now_us(), sum.first.left_ms * 1000) : 0;
	/* The leases are watched by the one that has the mutex. */
	a->look_us = a->entry->kind == ENTRY_LEASE || a->wait.until_us == CLOCK_NEVER ? CLOCK_NEVER
										      : clock_now_us() + LOOK_US;
	return a->vacant && a->entry->kind == ENTRY_LEASE ? entry_find(a->entry, &a->exchange) : ZK_OK;
}

/* Ask who holds the lock.  If it has been released since the last list, list again: ours may be the first now. */
static enum zk_code
ask_holder(struct acquire *a)
{
	struct session *const s = &a->backend->session;
	struct wire_in body;
	enum zk_code code = ZK_OK, asked = ZK_NO_NODE;
	int64_t made_ms;

	if (a->args->slots > 0)
		return ask_slots(a);
	while (code == ZK_OK && asked == ZK_NO_NODE && !a->entry->place.first) {
		asked = session_call(s, session_put_path(s, WIRE_GET_DATA, a->entry->place.head), &body, &a->exchange);
		if (asked == ZK_OK)
			(void)zk_read_holder(strrchr(a->entry->place.head, '/') + 1, &body, &a->holder, &made_ms, NULL);
		else if (asked == ZK_NO_NODE) {
			s->before.xid = 0;
			code = entry_find(a->entry, &a->exchange);
		}
	}
	if (asked == ZK_OK)
		zk_hold_together(&a->holder, strrchr(a->entry->place.head, '/'), a->entry->place.holders);
	a->holder.writer_waits = a->holder.state == LOCK_SHARED && a->entry->kind == ENTRY_READER;
	a->kept_until_us = a->holder.state == LOCK_KEPT ? clock_add(clock_now_us(), a->holder.left_ms * 1000) : 0;
	/* The entry before ours is watched, so the holder need not be asked again if that is the first. */
	a->look_us = a->entry->place.second || (a->wait.until_us == CLOCK_NEVER && !a->args->replace)
	    ? CLOCK_NEVER
	    : clock_now_us() + LOOK_US;
	return asked == ZK_OK || asked == ZK_NO_NODE || asked == ZK_NO_AUTH ? code : asked;
}

/* Has a newer client that replaces the holder asked us? */
static enum zk_code
look_at_own(struct acquire *a)
{
	struct entry *const e = a->entry;
	enum zk_code code;

	entry_forget(e);
	code = entry_read(e, &a->exchange);
	a->gives_way = code == ZK_OK && e->metadata.asked_by[0] != '\0';
	return code;
}

/* --replace: ask who holds the lock to end, and those before us that wait to replace them, too. */
static enum zk_code
ask_others(struct acquire *a)
{
	struct entry *const e = a->entry;
	struct session *const s = e->session;
	struct zk_request request = { .by = a->args->owner };
	const int32_t list = session_put_path(s, WIRE_GET_CHILDREN2, e->lock);
	struct names queue = { .count = 0 };
	enum zk_code code = session_send(s, &a->exchange);
	char path[PATH_SIZE];
	size_t i, ours;

	if (code == ZK_OK)
		code = zk_take_queue(s, list, &queue, &a->exchange);
	ours = queue_find(&queue, e->name);
	for (i = 0; i < queue.count && i < ours && (code == ZK_OK || code == ZK_NO_NODE); i++) {
		request.to_waiter = i >= queue_holders(&queue);
		if ((i == 0 || !queue_is_same(&queue, i, i - 1)) && queue_path(&queue, i, e->lock, path))
			code = zk_ask_node(s, path, &request, &a->exchange);
	}
	names_free(&queue);
	return code == ZK_OK || code == ZK_NO_NODE || code == ZK_NO_AUTH ? look_at_own(a) : code;
}

/* Report the holder, or NULL if it is not known, to the caller. */
static void
report(struct acquire *a, const struct holder *holder)
{
	a->report_us = a->args->waiting != NULL
	    ? a->args->waiting(a->args->context, holder, holder != NULL ? a->entry->place.ahead : 0)
	    : CLOCK_NEVER;
}

/*
 * The wait also ends if the lock is kept for longer, after its command, or before it begins, because of --max-waiters.
 */
static bool
is_over(const struct acquire *a)
{
	return a->gives_way || clock_now_us() >= a->wait.until_us || a->kept_until_us >= a->wait.until_us ||
	    a->crowd > 0;
}

/*
 * Watch the entry before ours, or the leases, if that is not watched yet, until it is gone, or a report or a look is
 * due.  Ours is the first if that was the only one before it, and nothing has happened to ours.
 */
static enum zk_code
watch_before(struct acquire *a)
{
	const int64_t due_us = clock_sooner(a->report_us, a->look_us);
	const struct wait limit = { clock_sooner(due_us, a->wait.until_us), a->wait.interrupt_fd };
	struct session *const s = &a->backend->session;
	struct wire_in body;
	enum zk_code code = ZK_OK;

	if (s->before.xid == 0 && a->entry->kind == ENTRY_LEASE)
		code = entry_find(a->entry, &a->exchange);
	else if (s->before.xid == 0)
		code = session_call(s, session_put_watch(s, &s->before, WIRE_EXISTS, a->entry->place.before), &body,
		    &a->exchange);
	a->stale = code == ZK_NO_NODE;
	if (a->entry->kind == ENTRY_LEASE && (code != ZK_OK || a->entry->place.first))
		return code;
	if (code != ZK_OK)
		return a->stale ? ZK_OK : code;
	code = session_wait(s, &limit);
	a->stale = s->before.event != 0 || s->ours.event != 0;
	if (code == ZK_OK)
		a->tries = 0;
	a->entry->place.first = code == ZK_OK && s->before.event == WIRE_EVENT_DELETED && s->ours.event == 0 &&
	    a->entry->place.second;
	return code;
}

/* Look for our place; until a server answers, the holder is not known. */
static enum zk_code
try_place(void *context, const struct wait *wait)
{
	struct acquire *const a = context;
	enum zk_code code;

	(void)wait;
	code = entry_find(a->entry, &a->exchange);
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

	while (code == ZK_OK && !a->entry->place.first && !is_over(a)) {
		if (!a->waited || a->args->waiting != NULL || a->args->wait.until_us != CLOCK_NEVER || a->args->replace)
			code = ask_holder(a);
		if (code == ZK_OK && a->entry->place.first)
			break;
		if (code == ZK_OK && a->args->replace)
			code = ask_others(a);
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
		if (code == ZK_OK && a->stale && !a->entry->place.first && !is_over(a)) {
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
	enum zk_code code = a->waited ? entry_find(a->entry, &a->exchange) : ZK_OK;

	if (code == ZK_OK && !a->entry->place.first)
		code = ask_holder(a);
	if (!a->waited || (int)code >= 0)
		return code;
	if (session_is_lost(code))
		session_leave_server(&a->backend->session); /* another one can end the session */
	return ZK_OK;
}

/* -- The grant -------------------------------------------------------------- */

/* Wait for the turn of the entry.  At the end of the wait, look once more. */
static enum zk_code
wait_or_give_up(struct acquire *a)
{
	enum zk_code code = wait_for_turn(a);

	if (code == ZK_OK && !a->entry->place.first)
		code = try_last(a);
	if (code != ZK_OK || a->entry->place.first || !a->vacant || a->waits_for_it || a->entry->kind == ENTRY_LEASE)
		return code;
	a->waits_for_it = true;
	a->wait.until_us = clock_add(clock_now_us(), a->backend->node_timeout_us);
	return wait_for_turn(a);
}

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
	struct slot_choice choice = { e, &a->backend->mutex, (clock_now_us() - a->queued_us) / 1000 };
	enum zk_code code;

	if (a->args->slots > 0) {
		code = session_retry(s, slots_take, &choice, &outage);
		if (code != ZK_OK)
			return code;
	} else if (a->waited)
		e->metadata.since_ms = choice.since_ms;
	/* It is fresh if it gives at least half a lease. */
	if (clock_now_us() < s->valid_until_us - (int64_t)s->granted.length_ms * 500 && session_is_connected(s) &&
	    (!a->waited || a->args->slots > 0 || !session_is_lost(entry_write(e, &a->exchange))))
		return ZK_OK;
	return session_retry(s, entry_prove, e, &outage);
}

/* The entry of the lock; for a slot the lease, and the entry in the queue of the mutex. */
static void
init_entries(struct acquire *a, const struct zk_token *token)
{
	const struct acquire_args *const args = a->args;
	struct entry *const e = &a->backend->entry;
	char key[KEY_MAX + 1];

	(void)snprintf(key, args->slots > 0 ? sizeof(key) : 0, "%s/leases", args->key);
	entry_init(e, &a->backend->session, args->slots > 0 ? key : args->key, token);
	e->room = args->slots;
	(void)snprintf(e->metadata.owner, sizeof(e->metadata.owner), "%s", args->owner);
	(void)snprintf(e->metadata.label, sizeof(e->metadata.label), "%s", args->label);
	e->metadata.replaces = args->replace && args->wait.until_us != 0;
	a->entry = e;
	if (args->slots == 0)
		return;
	(void)snprintf(key, sizeof(key), "%s/locks", args->key);
	entry_init(&a->backend->mutex, e->session, key, token);
	a->backend->mutex.room = args->slots;
	a->backend->mutex.metadata = e->metadata;
	a->entry = &a->backend->mutex;
}

/* --max-waiters: do too many wait already?  Those who pass through the mutex while a slot is free do not. */
static void
count_crowd(struct acquire *a)
{
	const int64_t ahead = a->entry->place.ahead;

	if (a->wait.until_us == 0 || a->waited || a->args->max_waiters == 0 || ahead < a->args->max_waiters)
		return;
	if (a->args->slots == 0 || (ask_slots(a) == ZK_OK && !a->vacant))
		a->crowd = ahead;
}

/* Make the nodes of an entry, and wait for its turn. */
static enum zk_code
queue_up(struct acquire *a, struct entry *e)
{
	const struct wait outage = outage_limit(a);
	enum zk_code code;

	a->entry = e;
	a->queued_us = clock_now_us();
	e->session->before.xid = 0;
	code = session_retry(e->session, entry_join, e, &outage);
	if (code == ZK_OK)
		count_crowd(a);
	return code == ZK_OK ? wait_or_give_up(a) : code;
}

/* Make a session and an entry, and wait for our turn.  For a slot: in the mutex a lease is waited for. */
static enum zk_code
attempt(struct acquire *a, enum status *refused, struct err *err)
{
	struct zk_backend *const z = a->backend;
	struct session *const s = &z->session;
	const int64_t asked_ms = a->args->ttl_ms > a->args->min_hold_ms ? a->args->ttl_ms : a->args->min_hold_ms;
	struct zk_token token = { .hold = METADATA_FIRST_HOLD, .shared = a->args->shared };
	enum zk_code code;

	if (!zk_uuid_new(token.uuid)) {
		reason_set(&s->tried.reason, "the kernel has no random numbers for a token");
		return ZK_LOCAL;
	}
	init_entries(a, &token);
	code = session_create(s, asked_ms, &a->exchange);
	if (code != ZK_OK)
		return code;
	*refused = check_length(a, err);
	if (*refused != ST_OK)
		return ZK_OK;
	if (z->log.debug != NULL && z->url.user[0] != '\0' && zk_is_unguarded(s, z->entry.lock, &a->exchange))
		log_debug(&z->log,
		    "everybody may break this lock, or the next one: make the chroot by hand, with an ACL");
	code = queue_up(a, a->entry);
	if (code == ZK_OK && a->entry == &a->backend->mutex && a->entry->place.first)
		code = queue_up(a, &z->entry);
	if (code == ZK_OK && a->args->replace && (a->waited || !a->entry->place.first) && !a->gives_way &&
	    a->crowd == 0)
		code = a->entry->place.first ? look_at_own(a) : ask_others(a);
	return code == ZK_OK && a->entry->place.first && !a->gives_way ? confirm(a) : code;
}

/* -- Entering again ---------------------------------------------------------- */

/*
 * Enter the lock of a token again: a proof that adds a hold.  The lease is that of the session, and any holder renews
 * it.  ST_NO: none of the caller's holds holds it.
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

/* The outcome of the last attempt. */
static enum status
outcome(const struct acquire *a, enum zk_code code, struct err *err)
{
	const struct zk_backend *const z = a->backend;
	const struct acquire_args *const args = a->args;
	struct pollfd fd = { .fd = args->wait.interrupt_fd, .events = POLLIN };
	char by[100];

	if (code != ZK_OK)
		return zk_error(z, code, err);
	if (a->gives_way)
		return err_set(err, ST_HELD, "gives way to a newer dlock run --replace, by %s",
		    text_quote(z->entry.metadata.asked_by, by, sizeof(by)));
	if (!a->entry->place.first && a->holder.state != LOCK_FREE) {
		if (args->refused_by != NULL)
			*args->refused_by = a->holder;
		return holder_error(&a->holder, args->slots, err);
	}
	if (!a->entry->place.first)
		return err_set(err, ST_HELD,
		    args->slots == 0 ? "held by another"
				     : "a slot may be free, but another client has the mutex, KEY/locks");
	if (clock_now_us() >= z->session.valid_until_us)
		return err_set(err, ST_NO_QUORUM, "granted too late: the lease had nearly expired; use a longer --ttl");
	if (a->wait.until_us != 0 && fd.fd >= 0 && poll(&fd, 1, 0) == 1) /* while the lock was being granted */
		return err_set(err, ST_INTERRUPTED, "interrupted");
	return ST_OK;
}

enum status
zk_acquire(struct backend *backend, const struct acquire_args *args, struct lease *lease, struct err *err)
{
	struct zk_backend *const z = (struct zk_backend *)backend;
	struct acquire a = { .backend = z,
		.entry = &z->entry,
		.args = args,
		.wait = args->wait,
		.exchange = { CLOCK_NEVER, args->wait.interrupt_fd } };
	enum status status, refused = ST_OK;
	enum zk_code code;
	bool is_slot;
	char answer[64];

	path_of_key(z->url.chroot, args->key, z->entry.lock);
	is_slot = path_cut_slot(z->entry.lock, strlen(z->url.chroot)) >= 0;
	if (path_is_reserved(z->entry.lock))
		return err_set(err, ST_USAGE, "/zookeeper belongs to ZooKeeper itself; use another KEY, or a chroot");
	status = reenter(z, args, lease, err);
	if (status != ST_NO || args->must_hold)
		return status;
	if (is_slot)
		return err_set(err, ST_USAGE, "this is the name of a slot; use --slots, and the KEY before it");
	err->text[0] = '\0'; /* of holds that are gone: the report of a wait would show it */
	for (;;) {
		code = attempt(&a, &refused, err);
		/*
		 * If the session has expired, or somebody has removed our nodes, the wait begins again at the end of
		 * the queue.  A client that has waited already does so too if no session can be made.
		 */
		if (is_over(&a) || (code != ZK_EXPIRED && code != ZK_NO_NODE && !(a.waited && session_is_lost(code))))
			break;
		(void)session_close(&z->session, &forever); /* it leaves the queue */
		if (!session_pause(&z->session, &a.tries, &a.wait, &code))
			break;
	}
	z->session.before.path = NULL;
	status = refused != ST_OK ? refused : outcome(&a, code, err);
	if (status == ST_HELD && a.crowd > 0)
		status = holder_crowded(a.crowd, args->max_waiters, err);
	if (status != ST_OK) {
		(void)session_close(&z->session, &forever); /* it leaves the queue */
		return status;
	}
	(void)snprintf(answer, sizeof(answer), "granted, fence %" PRId64, z->entry.fence);
	session_log(&z->session, answer, "");
	zk_fill_lease(z, args, lease);
	if (args->slots > 0) {
		lease->slot = z->entry.slot;
		lease->key = args->slot_key;
		(void)zk_slot_key(args->key, args->prefix_length, lease->slot, args->slot_key, err);
	}
	return ST_OK;
}
