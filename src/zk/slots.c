/* SPDX-License-Identifier: MIT */
#include "zk/slots.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "zk/backend.h"

enum {
	SLOTS_KEY_MAX = 490, /* the name of a slot has at most KEY_MAX bytes, behind the longest prefix, too */
};

enum status
zk_slot_key(const char *key, size_t prefix, int slot, char name[KEY_MAX + 1], struct err *err)
{
	struct text text = text_in(name, KEY_MAX + 1);
	const size_t length = strlen(key) - prefix;
	char path[PATH_LOCK_SIZE];

	if (length > SLOTS_KEY_MAX)
		return err_set(err, ST_USAGE, "KEY has %zu bytes; with --slots it must have 1 to %d", length,
		    SLOTS_KEY_MAX);
	path_of_key("", key, path);
	if (key[strlen(key) - 1] == '/' || path_cut_slot(path, 0) >= 0)
		return err_set(err, ST_USAGE,
		    "--slots needs a KEY that does not end in a slash, nor as that of a slot");
	text_addf(&text, slot > 0 ? "%s/leases/slot-%d" : "%s/leases", key, slot);
	return ST_OK;
}

/* -- Leases ----------------------------------------------------------------- */

void
leases_number(struct leases *l)
{
	bool named[SLOTS_MAX + 1] = { false };
	size_t i;
	int slot = 1;

	for (i = 0; i < l->count; i++)
		named[l->view[i].named ? l->view[i].slot : 0] = true;
	for (i = 0; i < l->count; i++) {
		if (l->view[i].named || l->view[i].holder.state != LOCK_OTHER_CLIENT)
			continue;
		while (slot <= SLOTS_MAX && named[slot])
			slot++;
		l->view[i].slot = slot++;
	}
}

int
leases_choose(const struct leases *l, const char *own)
{
	bool named[SLOTS_MAX + 1] = { false };
	size_t i;
	int slot = 1;

	for (i = 0; i < l->count; i++) {
		if (l->view[i].named && strncmp(l->view[i].name, own, strlen(own)) != 0)
			named[l->view[i].slot] = true;
	}
	while (slot <= SLOTS_MAX && named[slot])
		slot++;
	return slot <= SLOTS_MAX ? slot : 0;
}

enum zk_code
leases_read(struct session *s, const char *path, const struct names *queue, struct leases *l, const struct wait *limit)
{
	int32_t xid = s->xid + 1;
	char node[PATH_SIZE];
	struct slot_view *v;
	struct wire_in body;
	enum zk_code code;
	int64_t made_ms, slot;
	size_t i;

	*l = (struct leases){ .view = calloc(queue->count + 1, sizeof(*l->view)) };
	if (l->view == NULL)
		return ZK_LOCAL;
	for (i = 0; i < queue->count; i++) {
		(void)queue_path(queue, i, path, node); /* a name that is too long has no node */
		(void)session_put_path(s, WIRE_GET_DATA, node);
	}
	code = queue->count > 0 ? session_send(s, limit) : ZK_OK;
	for (i = 0; i < queue->count && code == ZK_OK; i++) {
		code = session_reply(s, xid++, &body, limit);
		if (code == ZK_NO_NODE) {
			code = ZK_OK;
			continue;
		}
		if (code != ZK_OK && code != ZK_NO_AUTH)
			return code;
		v = &l->view[l->count++];
		v->name = queue->at[i];
		if (!zk_read_holder(v->name, code == ZK_OK ? &body : NULL, &v->holder, &made_ms, &slot))
			return ZK_SYSTEM_ERROR;
		v->named = code == ZK_OK && v->holder.state != LOCK_OTHER_CLIENT && slot >= 1 && slot <= SLOTS_MAX;
		v->slot = v->named ? (int)slot : 0;
		code = ZK_OK;
	}
	leases_number(l);
	return code;
}

void
leases_free(struct leases *l)
{
	free(l->view);
	l->view = NULL;
	l->count = 0;
}

/* Ask for the queue of the leases, and read it. */
static enum zk_code
ask_leases(struct session *s, const char *path, struct names *queue, struct leases *l, const struct wait *limit)
{
	const int32_t list = session_put_path(s, WIRE_GET_CHILDREN2, path);
	enum zk_code code = session_send(s, limit);

	*queue = (struct names){ .count = 0 };
	*l = (struct leases){ .count = 0 };
	if (code == ZK_OK)
		code = zk_take_queue(s, list, queue, limit);
	if (code == ZK_NO_NODE) /* nobody has taken a slot yet, or for long */
		return ZK_OK;
	return code == ZK_OK ? leases_read(s, path, queue, l, limit) : code;
}

enum zk_code
slots_ask(struct session *s, const char *path, struct slots_summary *sum, const struct wait *limit)
{
	struct holder *const first = &sum->first;
	const struct holder *h;
	struct leases leases;
	struct names queue;
	const enum zk_code code = ask_leases(s, path, &queue, &leases, limit);
	size_t i;

	*sum = (struct slots_summary){ .all_kept = true };
	for (i = 0; code == ZK_OK && i < leases.count; i++) {
		h = &leases.view[i].holder;
		if (leases.view[i].slot == 0)
			continue;
		sum->held++;
		sum->all_kept = sum->all_kept && h->state == LOCK_KEPT;
		if (first->state == LOCK_FREE ||
		    (h->left_ms >= 0 && (first->left_ms < 0 || h->left_ms < first->left_ms)))
			*first = *h;
	}
	leases_free(&leases);
	names_free(&queue);
	return code;
}

/* -- Taking a slot ---------------------------------------------------------- */

/* Choose a slot, and write it. */
static enum zk_code
choose(struct slot_choice *c, const struct wait *wait)
{
	struct entry *const e = c->lease;
	struct leases leases;
	struct names queue;
	struct wire_text none;
	struct wire_in body;
	enum zk_code code = ask_leases(e->session, e->lock, &queue, &leases, wait);

	e->metadata.slot = code == ZK_OK ? leases_choose(&leases, e->name) : 0;
	e->metadata.since_ms = c->since_ms;
	leases_free(&leases);
	names_free(&queue);
	if (code == ZK_OK && e->metadata.slot == 0)
		return ZK_SYSTEM_ERROR;
	if (code == ZK_OK)
		code = session_call(e->session, entry_put_move(e, c->mutex), &body, wait);
	return code == ZK_OK ? wire_get_multi(&body, &none) : code;
}

enum zk_code
slots_take(void *choice, const struct wait *wait)
{
	struct slot_choice *const c = choice;
	struct entry *const e = c->lease;
	enum zk_code code = session_is_connected(e->session) ? ZK_OK : entry_find(e, wait);

	/* Nobody else knows the node: if it was written, then by a try whose reply was lost. */
	if (code == ZK_OK && !entry_was_written(e))
		code = choose(c, wait);
	if (code == ZK_BAD_VERSION || (code == ZK_OK && entry_was_written(e))) {
		entry_forget(e);
		code = entry_read(e, wait);
	} else if (code == ZK_OK) {
		session_prove(e->session);
		entry_note_written(e);
		/* Our own write was what the last watch told. */
		(void)session_put_watch(e->session, &e->session->ours, WIRE_EXISTS, e->path);
		code = session_send(e->session, wait);
	}
	if (code == ZK_OK)
		e->slot = (int)e->metadata.slot;
	return code == ZK_OK && (e->slot < 1 || e->slot > SLOTS_MAX) ? ZK_SYSTEM_ERROR : code;
}
