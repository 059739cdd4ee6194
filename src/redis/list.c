/* SPDX-License-Identifier: MIT */
#include "redis/operations.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"

enum {
	CURSOR_SIZE = 24,
	CURSOR_KEYS = 1000,    /* COUNT of one SCAN: small enough not to block a server for long */
	ANSWERS_MAX = 1 << 20, /* a faulty server may return cursors forever: this many are for a billion keys */
	NAMES_MAX = 10000000
};

struct listing {
	struct redis_backend *backend;
	const char *pattern;		     /* NULL: metadata of all locks of dlock */
	char cursor[NODES_MAX][CURSOR_SIZE]; /* for the next SCAN */
	int answers[NODES_MAX];		     /* of all servers of the node */
	size_t names[NODES_MAX];
	int part[NODES_MAX];  /* in a Cluster: the server that is scanned */
	struct ballot ballot; /* yes: all keys received */
	struct node_error error[NODES_MAX];
	struct waiting waiting;
	struct names *keys;
	size_t sort_at;
	bool no_memory;
};

/*
 * Add a key.  Doubles are removed from time to time, so that the size depends on the number of locks: a lock is on several
 * nodes, and SCAN may return a name twice.
 */
static void
add_key(struct listing *l, const char *key)
{
	if (l->keys->count > l->sort_at) {
		names_sort(l->keys);
		l->sort_at = 2 * l->keys->count + CURSOR_KEYS;
	}
	l->no_memory |= !names_add(l->keys, key);
}

/*
 * Add a name from SCAN: the key of a lock, or, when all locks of dlock are listed, a metadata key, which names its
 * lock.
 */
static void
add_name(struct listing *l, const char *name)
{
	char key[KEY_MAX + 1];
	const bool metadata = keys_key(name, strlen(name), key);

	if (l->pattern == NULL && metadata)
		add_key(l, key);
	else if (l->pattern != NULL && !metadata && name[0] != '\0' && strlen(name) <= KEY_MAX &&
	    !keys_is_auxiliary(name))
		add_key(l, name);
}

static void scan_replied(void *context, int node, const struct result *);

static void
scan_on(struct listing *l, int node)
{
	struct command scan;

	command_begin(&scan, "SCAN %s MATCH %s COUNT %d", l->cursor[node], l->pattern != NULL ? l->pattern : "*:dlock*",
	    CURSOR_KEYS);
	scan.part = l->part[node];
	node_send(l->backend->nodes.node[node], &scan, scan_replied, l);
}

/* All replies of a node are waited for, but once a majority has returned everything each of them has to come soon. */
static void
begin_to_wait(struct listing *l)
{
	l->waiting.limit.until_us = clock_add(clock_now_us(), l->backend->nodes.node_timeout_us);
	l->waiting.began_us = clock_now_us();
	l->waiting.late_us = 0;
}

static void
scan_replied(void *context, int node, const struct result *d)
{
	struct listing *l = context;
	const struct reply *names = d->reply == NULL ? NULL : reply_item(d->reply, 1);
	const char *cursor = d->reply == NULL ? "" : reply_text(reply_item(d->reply, 0));
	bool at_end;
	size_t i;

	l->ballot.vote[node] = VOTE_FAULT;
	if (!answer_is_reply(d, &l->error[node]))
		return;
	if (reply_kind(names) != REPLY_LIST || cursor[0] == '\0' || strlen(cursor) >= CURSOR_SIZE) {
		answer_fail_unexpected(&l->error[node]);
		return;
	}
	for (i = 0; i < reply_items(names); i++)
		add_name(l, reply_text(reply_item(names, i)));
	l->names[node] += reply_items(names);
	at_end = strcmp(cursor, "0") == 0;
	if ((!at_end && strcmp(cursor, l->cursor[node]) == 0) || ++l->answers[node] > ANSWERS_MAX ||
	    l->names[node] > NAMES_MAX) {
		answer_fail(&l->error[node], false, "its SCAN does not end");
		return;
	}
	(void)snprintf(l->cursor[node], CURSOR_SIZE, "%s", cursor);
	if (at_end)
		l->part[node]++;
	l->ballot.vote[node] = l->part[node] < node_parts(l->backend->nodes.node[node]) ? VOTE_PENDING : VOTE_YES;
	begin_to_wait(l);
	if (l->ballot.vote[node] == VOTE_PENDING)
		scan_on(l, node);
}

static enum standing
find_standing(const struct listing *l)
{
	if (l->no_memory || quorum_count(&l->ballot, VOTE_PENDING) == 0)
		return ROUND_OVER;
	return quorum_count(&l->ballot, VOTE_YES) >= quorum_majority(l->ballot.nodes) ? ROUND_DECIDED : ROUND_OPEN;
}

static enum status
scan_all(struct listing *l, int interrupt_fd, struct err *err)
{
	struct nodes *f = &l->backend->nodes;
	int i;

	l->waiting = (struct waiting){ .nodes = f, .limit.interrupt_fd = interrupt_fd, .patience = AS_FAR_AWAY };
	begin_to_wait(l);
	l->ballot.nodes = f->count;
	for (i = 0; i < f->count; i++) {
		(void)snprintf(l->cursor[i], CURSOR_SIZE, "0");
		scan_on(l, i);
	}
	while (nodes_await(&l->waiting, find_standing(l)))
		;
	nodes_cancel(f, l);
	l->ballot.closed = true;
	if (l->waiting.event == LOOP_INTERRUPTED)
		return ST_INTERRUPTED;
	if (l->no_memory)
		return err_set(err, ST_SYSTEM, OUT_OF_MEMORY);
	if (quorum_count(&l->ballot, VOTE_YES) < quorum_majority(f->count))
		return nodes_no_quorum(f, &l->ballot, l->error, err);
	return ST_OK;
}

enum status
redis_list(struct backend *backend, const char *pattern, const struct wait *wait, struct names *keys, struct err *err)
{
	struct listing l = { .backend = (struct redis_backend *)backend, .pattern = pattern, .keys = keys };
	const enum status status = scan_all(&l, wait->interrupt_fd, err);

	names_sort(keys);
	return status;
}
