/* SPDX-License-Identifier: MIT */
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "zk/operations.h"

enum {
	FLIGHT_MAX = 100,	/* requests that are sent at once */
	NODES_WALKED = 1 << 20, /* a tree with more nodes is not for locks */
};

/* A walk through the tree below the chroot. */
struct walk {
	struct zk_backend *backend;
	int interrupt_fd;
	const char *pattern;	  /* without a leading slash; NULL: all */
	bool slash;		  /* the pattern has one */
	char prefix[KEY_MAX + 1]; /* of every KEY that matches */
	struct names paths;	  /* of the nodes that were found; those before `asked` have been asked */
	size_t asked;
	struct names *keys; /* that match */
};

/* Can a KEY at this path, or below it, begin with the prefix? */
static bool
may_match(const struct walk *w, const char *path)
{
	const size_t prefix = strlen(w->prefix);
	char key[KEY_MAX + 1];
	size_t length;

	if (path_is_reserved(path) || !path_to_key(path, strlen(w->backend->url.chroot), key, sizeof(key)))
		return false;
	length = strlen(key);
	return strncmp(key, w->prefix, length < prefix ? length : prefix) == 0;
}

/* Note a KEY if it matches; as one with a leading slash if the pattern has one. */
static bool
note_key(struct walk *w, const char *path)
{
	char key[KEY_MAX + 2] = "/";

	if (!path_to_key(path, strlen(w->backend->url.chroot), key + 1, sizeof(key) - 1) ||
	    (w->pattern != NULL && fnmatch(w->pattern, key + 1, 0) != 0))
		return true;
	return names_add(w->keys, w->slash ? key : key + 1);
}

/* Is this certainly the name of a contender?  The last part of a KEY may end in ten digits, too. */
static bool
is_contender(const struct wire_text *name)
{
	int32_t number;

	return queue_number(name->bytes, name->length, &number) && queue_client(name->bytes, name->length) != NULL;
}

/* The children of a node: contenders make it a lock, others are nodes to walk on. */
static enum zk_code
take_children(struct walk *w, const char *parent, struct wire_in *body)
{
	struct wire_in again = *body;
	const int32_t count = wire_get_count(body, 4);
	char path[PATH_SIZE];
	struct wire_text name;
	struct queue queue;
	const enum zk_code code = zk_read_queue(&again, &queue);
	const bool is_lock = code == ZK_OK && queue.count > 0;
	int32_t i;

	if (code != ZK_OK)
		return code;
	queue_free(&queue);
	for (i = 0; i < count && !body->bad; i++) {
		name = wire_get_text(body);
		if (is_contender(&name))
			continue;
		if (strlen(parent) + 1 + name.length >= PATH_LOCK_SIZE)
			continue;
		(void)snprintf(path, sizeof(path), "%s/%.*s", parent, (int)name.length, name.bytes);
		if (may_match(w, path) && !names_add(&w->paths, path))
			return ZK_LOCAL;
	}
	if (body->bad || w->paths.count > NODES_WALKED)
		return ZK_SYSTEM_ERROR;
	return is_lock && !note_key(w, parent) ? ZK_LOCAL : ZK_OK;
}

/*
 * Ask the next nodes for their children.  A node that has gone, or that we may not read, has none; the chroot must be
 * read.
 */
static enum zk_code
ask_some(struct walk *w)
{
	struct session *const s = &w->backend->look;
	const struct wait limit = { CLOCK_NEVER, w->interrupt_fd };
	const size_t left = w->paths.count - w->asked, end = w->asked + (left < FLIGHT_MAX ? left : FLIGHT_MAX);
	int32_t xid = s->xid + 1;
	struct wire_in body;
	enum zk_code code;
	size_t i;

	for (i = w->asked; i < end; i++)
		(void)session_put_path(s, WIRE_GET_CHILDREN2, w->paths.at[i][0] != '\0' ? w->paths.at[i] : "/", 0);
	code = session_send(s, &limit);
	for (; w->asked < end && code == ZK_OK; w->asked++, xid++) {
		code = session_reply(s, xid, &body, &limit);
		if (code == ZK_OK)
			code = take_children(w, w->paths.at[w->asked], &body);
		else if (code == ZK_NO_NODE || (code == ZK_NO_AUTH && w->asked > 0))
			code = ZK_OK;
	}
	return code;
}

static enum zk_code
walk_tree(struct walk *w)
{
	const struct wait limit = { CLOCK_NEVER, w->interrupt_fd };
	enum zk_code code = zk_look_begin(w->backend, &limit);

	if (code == ZK_OK && !names_add(&w->paths, w->backend->url.chroot))
		code = ZK_LOCAL;
	if (code == ZK_OK)
		(void)session_put_path(&w->backend->look, WIRE_SYNC, "/", 0);
	while (code == ZK_OK && w->asked < w->paths.count)
		code = ask_some(w);
	zk_look_end(w->backend, code);
	return code;
}

enum status
zk_list(struct backend *backend, const char *pattern, const struct wait *wait, struct names *keys, struct err *err)
{
	struct zk_backend *z = (struct zk_backend *)backend;
	struct walk w = { .backend = z, .interrupt_fd = wait->interrupt_fd, .pattern = pattern, .keys = keys };
	enum zk_code code;

	w.slash = pattern != NULL && pattern[0] == '/';
	if (w.slash)
		w.pattern++;
	if (pattern != NULL)
		(void)snprintf(w.prefix, sizeof(w.prefix), "%.*s", (int)strcspn(w.pattern, "*?[\\"), w.pattern);
	code = walk_tree(&w);
	names_sort(keys);
	names_free(&w.paths);
	return code == ZK_OK ? ST_OK : zk_error(z, code, err);
}
