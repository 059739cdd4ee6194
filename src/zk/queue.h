/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_ZK_QUEUE_H
#define DLOCK_ZK_QUEUE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/array.h"
#include "zk/session.h"
#include "zk/wire.h"

/*
 * The queue of a lock: the order of the contenders, judged by the names of the children of the lock's node.
 *
 * Every child whose name ends in a number of ten characters is a contender, whoever made it; the server appended that
 * number.  The contenders of one client make one entry: their names share "_c_UUID".  An entry stands in the place of
 * its first contender.  The client of the first entry holds the lock; if it is a reader, all readers up to the first
 * entry of another kind hold it together.
 *
 * A queue is a list of these names, in their order.
 */
enum {
	QUEUE_ENTRY_LENGTH = 39 /* of "_c_UUID" */
};

#define QUEUE_NOBODY SIZE_MAX /* no index */

/* Add a child if it is a contender.  False: out of memory. */
bool queue_add(struct names *, const char *name, size_t length);

/* Call it once after the last contender was added, and before the functions below. */
void queue_sort(struct names *);

/* The number that ends a contender's name.  False: the name is that of no contender. */
bool queue_number(const char *name, size_t length, int32_t *number);

/* The first contender of the entry whose names begin with this; QUEUE_NOBODY: there is none. */
size_t queue_find(const struct names *, const char *entry);

/*
 * The first contender of the nearest entry before this one, the first of its own; with `not_readers` the nearest that
 * is no reader.  QUEUE_NOBODY: none is before it.
 */
size_t queue_before(const struct names *, size_t contender, bool not_readers);

/* The number of contenders of those that hold the lock. */
size_t queue_holders(const struct names *);

/* Is it the node of a reader, by its name? */
bool queue_is_reader(const char *name);

/* Do these two belong to the same entry? */
bool queue_is_same(const struct names *, size_t a, size_t b);

/* The path of a contender of this lock.  False: its name is too long for us; no library makes such names. */
bool queue_path(const struct names *, size_t contender, const char *lock, char path[PATH_SIZE]);

/* The number of entries among the first `end` contenders, where those of each entry are neighbours. */
size_t queue_entries(const struct names *, size_t end);

/* The same without those of readers. */
size_t queue_writers(const struct names *, size_t end);

/*
 * The client that makes such names: "Curator", "kazoo", "go-zookeeper", "ZooKeeper's recipe"; NULL: unknown.  The names
 * of dlock look like those of Curator.
 */
const char *queue_client(const char *name, size_t length);

/* -- Asking a server -------------------------------------------------------- */

/* Take the reply to getChildren2.  ZK_OK: the queue is sorted; otherwise it is empty.  Free it. */
enum zk_code zk_take_queue(struct session *, int32_t xid, struct names *, const struct wait *);

/*
 * Drop the names of unknown clients, of the first `end` of a queue, that are not ephemeral nodes: they are the nodes of
 * KEYs below this one, such as "jobs/0000000001".
 */
enum zk_code zk_drop_keys(struct session *, const char *lock, struct names *, size_t end, const struct wait *);

#endif
