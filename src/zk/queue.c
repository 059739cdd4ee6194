/* SPDX-License-Identifier: MIT */
#include "zk/queue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

/* -- Numbers ---------------------------------------------------------------- */

/*
 * The server formats the number with %010d.  It becomes negative after 2^31 children, and then its sign is one of the
 * ten characters, unless there are ten digits.
 */
bool
queue_number(const char *name, size_t length, int32_t *number)
{
	size_t at = length;
	uint64_t value = 0;
	bool negative;

	while (at > 0 && length - at < 10 && name[at - 1] >= '0' && name[at - 1] <= '9')
		at--;
	if (length - at < 9)
		return false;
	/* The dash of a prefix such as "-lock-" is no sign. */
	negative = at > 1 && name[at - 1] == '-' && (name[at - 2] == '-' || name[at - 2] == '_') &&
	    (length - at == 9 || name[at] != '0');
	if (length - at == 9 && !negative)
		return false;
	for (; at < length; at++)
		value = value * 10 + (uint64_t)(name[at] - '0');
	if (value > (uint64_t)INT32_MAX + negative)
		return false;
	*number = (int32_t)(negative ? -(int64_t)value : (int64_t)value);
	return true;
}

/* -- The queue -------------------------------------------------------------- */

bool
queue_add(struct names *q, const char *name, size_t length)
{
	int32_t number;
	char *copy;
	bool added;

	if (!queue_number(name, length, &number))
		return true;
	copy = strndup(name, length);
	added = copy != NULL && names_add(q, copy);
	free(copy);
	return added;
}

/* Numbers wrap around, but those of one list are close together. */
static int
compare(const void *left, const void *right)
{
	const char *const a = *(const char *const *)left, *const b = *(const char *const *)right;
	int32_t first = 0, second = 0, distance;

	(void)queue_number(a, strlen(a), &first);
	(void)queue_number(b, strlen(b), &second);
	distance = (int32_t)((uint32_t)first - (uint32_t)second);
	return (distance > 0) - (distance < 0);
}

void
queue_sort(struct names *q)
{
	if (q->count > 1)
		qsort(q->at, q->count, sizeof(*q->at), compare);
}

bool
queue_is_same(const struct names *q, size_t a, size_t b)
{
	const char *const left = q->at[a], *const right = q->at[b];

	return strncmp(left, right, strncmp(left, "_c_", 3) == 0 ? QUEUE_ENTRY_LENGTH : SIZE_MAX) == 0;
}

size_t
queue_find(const struct names *q, const char *entry)
{
	const size_t length = strlen(entry);
	size_t i;

	for (i = 0; i < q->count; i++) {
		if (strncmp(q->at[i], entry, length) == 0)
			return i;
	}
	return QUEUE_NOBODY;
}

bool
queue_is_reader(const char *name)
{
	return strstr(name, "__READ__") != NULL || strstr(name, "__rlock__") != NULL;
}

size_t
queue_before(const struct names *q, size_t contender, bool not_readers)
{
	size_t i = 0;

	while (not_readers && contender > 0 && queue_is_reader(q->at[contender - 1]))
		contender--;
	if (contender == 0)
		return QUEUE_NOBODY;
	while (!queue_is_same(q, i, contender - 1))
		i++;
	return i;
}

size_t
queue_holders(const struct names *q)
{
	const bool readers = q->count > 0 && queue_is_reader(q->at[0]);
	size_t i = 0;

	while (i < q->count && (readers ? queue_is_reader(q->at[i]) : queue_is_same(q, i, 0)))
		i++;
	return i;
}

bool
queue_path(const struct names *q, size_t contender, const char *lock, char path[PATH_SIZE])
{
	const char *const name = q->at[contender];

	(void)snprintf(path, PATH_SIZE, "%s/%s", lock, name);
	return strlen(name) <= PATH_NAME_MAX + PATH_KEY_MAX;
}

size_t
queue_entries(const struct names *q, size_t end)
{
	size_t i, entries = 0;

	for (i = 0; i < end; i++)
		entries += i == 0 || !queue_is_same(q, i, i - 1);
	return entries;
}

size_t
queue_writers(const struct names *q, size_t end)
{
	size_t i, last = QUEUE_NOBODY, entries = 0;

	for (i = 0; i < end; i++) {
		if (queue_is_reader(q->at[i]))
			continue;
		entries += last == QUEUE_NOBODY || !queue_is_same(q, i, last);
		last = i;
	}
	return entries;
}

/* -- Other clients ---------------------------------------------------------- */

const char *
queue_client(const char *name, size_t length)
{
#define HEX_32 "################################"
#define UUID "########-####-####-####-############"
	static const struct {
		const char *shape, *client;
	} shapes[] = {
		{ "_c_" UUID "-__", "Curator" }, /* its read-write lock */
		{ "_c_" UUID "-lock-", "Curator" },
		{ "_c_" UUID "-lease-", "Curator" },
		{ "_c_" HEX_32 "-lock-", "go-zookeeper" },
		{ HEX_32 "__lock__", "kazoo" },
		{ HEX_32 "__rlock__", "kazoo" },
		{ "x-", "ZooKeeper's recipe" },
	};
	size_t i;

	for (i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		if (!text_begins_as(name, length, shapes[i].shape))
			continue;
		/* A session stands between "x-" and the number; "x-0000000001" may be the node of a KEY. */
		if (name[0] != 'x' || (length > 13 && name[length - 11] == '-'))
			return shapes[i].client;
	}
	return NULL;
}

/* -- Asking ----------------------------------------------------------------- */

enum zk_code
zk_take_queue(struct session *s, int32_t xid, struct names *q, const struct wait *limit)
{
	struct wire_in body;
	struct wire_text name;
	enum zk_code code = session_reply(s, xid, &body, limit);
	int32_t left = code == ZK_OK ? wire_get_count(&body, 4) : 0;

	memset(q, 0, sizeof(*q));
	for (; left > 0 && code == ZK_OK; left--) {
		name = wire_get_text(&body);
		code = queue_add(q, name.bytes, name.length) ? ZK_OK : ZK_LOCAL;
	}
	if (code == ZK_OK && body.bad)
		code = ZK_SYSTEM_ERROR;
	if (code != ZK_OK)
		names_free(q);
	queue_sort(q);
	return code;
}

/* May it be the node of a KEY?  Then path is its path. */
static bool
is_doubtful(const struct names *q, size_t i, const char *lock, char path[PATH_SIZE])
{
	return queue_client(q->at[i], strlen(q->at[i])) == NULL && queue_path(q, i, lock, path);
}

enum zk_code
zk_drop_keys(struct session *s, const char *lock, struct names *q, size_t end, const struct wait *limit)
{
	int32_t xid = s->xid + 1;
	char path[PATH_SIZE];
	struct wire_in body;
	enum zk_code code;
	size_t i, kept = 0;

	for (i = 0; i < end; i++) {
		if (is_doubtful(q, i, lock, path))
			(void)session_put_path(s, WIRE_EXISTS, path);
	}
	code = xid <= s->xid ? session_send(s, limit) : ZK_OK;
	for (i = 0; i < q->count; i++) {
		if (i < end && code == ZK_OK && is_doubtful(q, i, lock, path)) {
			code = session_reply(s, xid++, &body, limit);
			if (code == ZK_NO_NODE || (code == ZK_OK && wire_get_stat(&body).owner == 0)) {
				code = ZK_OK;
				continue;
			}
		}
		q->at[kept++] = q->at[i];
	}
	q->count = kept;
	return code;
}
