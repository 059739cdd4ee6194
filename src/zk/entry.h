/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_ZK_ENTRY_H
#define DLOCK_ZK_ENTRY_H
#include <stdbool.h>
#include <stdint.h>

#include "zk/metadata.h"
#include "zk/path.h"
#include "zk/queue.h"
#include "zk/session.h"
#include "zk/token.h"
#include "zk/wire.h"

/*
 * Our entry in the queue of a lock: ephemeral sequential nodes, which one transaction creates below the node of the
 * KEY.  The first is the lock node.  The others have the names that other libraries look for.
 */
struct entry {
	struct session *session;   /* that it belongs to */
	char lock[PATH_LOCK_SIZE]; /* the node of the KEY */
	unsigned char uuid[ZK_UUID_SIZE];
	char name[QUEUE_ENTRY_LENGTH + 1]; /* "_c_UUID" */
	int32_t number;			   /* of the lock node */
	char path[PATH_SIZE];		   /* of the lock node; "": it has none yet */
	int64_t fence;			   /* its czxid; 0: unknown */
	struct metadata metadata;	   /* its data */
	/* Private. */
	int32_t version; /* of its data */
	bool known;	 /* metadata and version are those of the node, as far as we know */
};

/* The entry with this UUID for a KEY; it has no number yet. */
void entry_init(struct entry *, struct session *, const char *key, const unsigned char uuid[ZK_UUID_SIZE]);

/* Set the number of the lock node, and with it the path. */
void entry_set_number(struct entry *, int32_t number);

/* -- The place in the queue ------------------------------------------------- */

struct place {
	bool first;		/* it is the first */
	bool second;		/* exactly one entry is before it */
	char before[PATH_SIZE]; /* the first node of the nearest entry before it */
	char head[PATH_SIZE];	/* the first node of the first entry */
	int64_t waiting;	/* the number of waiters */
};

/*
 * Add the entry to the queue: make its nodes in one transaction, and the node of the KEY if there is none.  If the reply
 * is lost, the UUID shows whether they were made.  ZK_OK: the entry has its number and its fence, is watched, and *place
 * is its place.  The session must be connected.
 */
enum zk_code entry_join(struct entry *, struct place *, const struct wait *);

/*
 * Look for the place of the entry again; with a new connection if there is none.  ZK_OK: the lock node is watched.
 * ZK_NO_NODE: the entry is gone.
 */
enum zk_code entry_find(struct entry *, struct place *, const struct wait *);

/* Put the transaction that deletes the nodes, if the data of the lock node has not changed.  Returns its xid. */
int32_t entry_put_delete(struct entry *);

/* -- The data of the lock node ---------------------------------------------- */

/* Do we know the data?  The next write replaces only what we know. */
bool entry_is_known(const struct entry *);
void entry_forget(struct entry *);

/* Put the request to read it. */
int32_t entry_put_read(struct entry *);

/* Put the request to write e->metadata.  The data is not known until the reply. */
int32_t entry_put_write(struct entry *);

/* The reply to a write is not waited for: it will have been done. */
void entry_assume_written(struct entry *);

/*
 * Take the reply to a request about the lock node: to a read, with data, or to another one.  ZK_OK: the data is known.
 * Data that is not dlock's is read as empty.  ZK_NO_NODE: the node is gone, or is not of our session.
 */
enum zk_code entry_take(struct entry *, int32_t xid, bool data, const struct wait *);

#endif
