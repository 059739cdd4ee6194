/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "lock/merge.h"
#include "zk/operations.h"

#define LOOK_MS 30000 /* the length of a session that only looks; longer than it mostly is between two looks */

/* -- Looking ---------------------------------------------------------------- */

enum zk_code
zk_look_begin(struct zk_backend *z, const struct wait *limit)
{
	struct session *const s = &z->look;

	if (s->url == NULL)
		session_init(s, &z->url, &z->log);
	else if (session_is_connected(s) && session_poll(s) == ZK_OK)
		return ZK_OK;
	return session_create(s, LOOK_MS, limit);
}

void
zk_look_end(struct zk_backend *z, enum zk_code code)
{
	z->session.server = z->look.server;
	if (code != ZK_OK)
		zk_end_session(z, &z->look);
}

void
zk_end_session(struct zk_backend *z, struct session *s)
{
	z->session.reason = s->reason;
	z->session.server = s->server;
	session_abandon(s);
}

/* Did the session fail, and not only this request? */
static bool
is_broken(enum zk_code code)
{
	return code == ZK_CONNECTION_LOSS || code == ZK_TIMEOUT || code == ZK_EXPIRED || code == ZK_SASL_REQUIRED ||
	    (int)code > 0;
}

/* Find the head of the queue and the number of waiters, and free the queue. */
static enum zk_code
find_head(struct session *s, struct zk_lock *l, enum zk_code code, const struct wait *limit)
{
	if (code == ZK_OK)
		code = zk_drop_keys(s, l->path, &l->queue, l->queue.count, limit);
	if (l->queue.count > 0 && queue_path(&l->queue, 0, l->path, l->head))
		l->waiting = (int64_t)queue_entries(&l->queue) - 1;
	else
		l->head[0] = '\0';
	queue_free(&l->queue);
	return code;
}

static void
take_holder(struct zk_lock *l, struct wire_in *body)
{
	if (!zk_read_holder(strrchr(l->head, '/') + 1, body, &l->holder, NULL))
		l->code = ZK_SYSTEM_ERROR;
	l->holder.waiting = l->waiting;
}

/* The data of a head that we may not read is that of another client. */
static void
after_data(struct zk_lock *l, struct wire_in *body)
{
	if (l->code == ZK_OK)
		take_holder(l, body);
	else if (l->code == ZK_NO_AUTH) {
		memset(&l->holder, 0, sizeof(l->holder));
		l->holder.other_client = true;
		l->holder.left_ms = l->holder.held_ms = -1;
		l->holder.waiting = l->waiting;
		l->code = ZK_OK;
	} else if (l->code == ZK_NO_NODE) { /* released between the two requests */
		l->head[0] = '\0';
		l->code = ZK_OK;
	}
}

/* Who broke the last lock that was broken is told if it can be. */
static enum zk_code
after_record(struct zk_lock *l, enum zk_code code, struct wire_in *body)
{
	if (code == ZK_OK)
		zk_read_broken(body, &l->broken);
	return is_broken(code) ? code : ZK_OK;
}

/* Ask for the queues of all locks, or for the data of their heads. */
static enum zk_code
ask_all(struct session *s, struct zk_lock *locks, int count, bool heads, const struct wait *limit)
{
	struct zk_lock *l;
	struct wire_in body;
	enum zk_code code;

	for (l = locks; l < locks + count; l++) {
		l->xid = l->record = 0;
		if (!heads) {
			l->xid = session_put_path(s, WIRE_GET_CHILDREN2, l->path, 0);
			l->record = session_put_path(s, WIRE_GET_DATA, l->path, 0);
		} else if (l->code == ZK_OK && l->head[0] != '\0')
			l->xid = session_put_path(s, WIRE_GET_DATA, l->head, 0);
	}
	code = s->out.length > 0 ? session_send(s, limit) : ZK_OK;
	for (l = locks; l < locks + count && code == ZK_OK; l++) {
		if (l->xid == 0)
			continue;
		l->code = session_reply(s, l->xid, &body, limit);
		if (is_broken(l->code))
			return l->code;
		if (heads)
			after_data(l, &body);
		else if (l->code == ZK_OK)
			l->code = zk_read_queue(&body, &l->queue);
		else if (l->code == ZK_NO_NODE)
			l->code = ZK_OK;
		if (l->record != 0)
			code = after_record(l, session_reply(s, l->record, &body, limit), &body);
	}
	return code;
}

/* Look at locks whose paths are set, at most STATUS_MAX.  The result is an error only if the session failed. */
static enum zk_code
look(struct zk_backend *z, struct zk_lock *locks, int count, int interrupt_fd)
{
	struct wait limit = zk_limit(z, CLOCK_NEVER, interrupt_fd);
	enum zk_code code = zk_look_begin(z, &limit);
	int i;

	if (code == ZK_OK) {
		limit = zk_limit(z, CLOCK_NEVER, interrupt_fd);
		(void)session_put_path(&z->look, WIRE_SYNC, locks[0].path, 0);
		code = ask_all(&z->look, locks, count, false, &limit);
		for (i = 0; i < count; i++)
			code = find_head(&z->look, &locks[i], code, &limit);
	}
	if (code == ZK_OK)
		code = ask_all(&z->look, locks, count, true, &limit);
	zk_look_end(z, code);
	return code;
}

enum ownership
zk_look_owner(struct zk_backend *z, const char *key)
{
	struct zk_lock *const lock = calloc(1, sizeof(*lock));
	enum ownership ownership = OWNED_BY_NOBODY;

	if (z->entry.metadata.kept_by[0] != '\0')
		ownership = OWNED_NO_MORE;
	else if (lock != NULL) {
		path_of_key(z->url.chroot, key, lock->path);
		if (look(z, lock, 1, -1) == ZK_OK && lock->head[0] != '\0')
			ownership = OWNED_BY_ANOTHER;
	}
	free(lock);
	return ownership;
}

/* -- status ----------------------------------------------------------------- */

static enum status
fill_status(const struct zk_backend *z, const struct zk_lock *l, struct lock_status *view, struct err *err)
{
	memset(view, 0, sizeof(*view));
	err->text[0] = '\0';
	view->nodes = view->answered = 1;
	view->node[0].name = z->url.name;
	view->state = view->node[0].state = LOCK_UNKNOWN;
	if (l->code != ZK_OK) {
		reason_set(&view->node[0].reason, "error %d of ZooKeeper", (int)l->code);
		return zk_error(z, l->code, err);
	}
	view->agreeing = 1;
	view->holder = l->holder;
	view->broken = l->broken;
	view->state = view->node[0].state = merge_state(l->head[0] != '\0', &l->holder);
	view->node[0].left_ms = l->holder.left_ms;
	return ST_OK;
}

enum status
zk_status(struct backend *backend, const struct status_args *args, struct err *err)
{
	struct zk_backend *z = (struct zk_backend *)backend;
	struct zk_lock *const locks = calloc(STATUS_MAX, sizeof(*locks));
	struct lock_status view;
	enum zk_code code;
	enum status status;
	struct err own;
	int i;

	if (locks == NULL)
		return err_set(err, ST_SYSTEM, OUT_OF_MEMORY);
	for (i = 0; i < args->count; i++)
		path_of_key(z->url.chroot, args->keys[i], locks[i].path);
	code = look(z, locks, args->count, args->wait.interrupt_fd);
	for (i = 0; i < args->count && code != ZK_INTERRUPTED && code != ZK_LOCAL; i++) {
		if (code != ZK_OK)
			locks[i].code = code;
		status = fill_status(z, &locks[i], &view, &own);
		view.answered = code == ZK_OK;
		args->report(args->context, args->keys[i], &view, status, &own);
	}
	free(locks);
	return code == ZK_INTERRUPTED || code == ZK_LOCAL ? zk_error(z, code, err) : ST_OK;
}

/* -- Preparing a break ------------------------------------------------------ */

enum status
zk_break_prepare(struct backend *backend, const char *key, struct break_plan *plan, struct err *err)
{
	struct zk_backend *z = (struct zk_backend *)backend;
	struct zk_lock *const lock = calloc(1, sizeof(*lock));
	struct break_side *const side = &plan->side[0];
	enum status status;
	enum zk_code code;

	if (lock == NULL)
		return err_set(err, ST_SYSTEM, OUT_OF_MEMORY);
	path_of_key(z->url.chroot, key, lock->path);
	code = look(z, lock, 1, -1);
	if (code != ZK_OK)
		lock->code = code;
	status = fill_status(z, lock, &plan->view, err);
	plan->sides = status == ST_OK && lock->head[0] != '\0';
	side->holder = lock->holder;
	side->nodes = 1;
	(void)snprintf(side->fingerprint, sizeof(side->fingerprint), "%lld", (long long)lock->holder.fence);
	free(lock);
	return status;
}
