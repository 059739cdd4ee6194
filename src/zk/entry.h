/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_ZK_ENTRY_H
#define DLOCK_ZK_ENTRY_H
#include <stdbool.h>
#include <stdint.h>

#include "zk/metadata.h"
#include "zk/queue.h"
#include "zk/session.h"
#include "zk/wire.h"

/*
 * Our entry in the queue of a lock: ephemeral sequential nodes, which one transaction creates below the node of the
 * KEY.  The first is the lock node.  The others have the names that other libraries look for.
 *
 * The entry of a slot is a lease: one node below KEY/leases, see slots.h.
 */
enum entry_kind {
	ENTRY_LOCK,
	ENTRY_READER,
	ENTRY_LEASE
};

struct entry {
	enum entry_kind kind;
	int slot;		   /* the number of its slot; 0: none, or it is not chosen yet */
	int room;		   /* of slots: a lease waits until there are no more than so many; 0: no slots */
	struct session *session;   /* that it belongs to */
	struct zk_token token;	   /* the UUID, the number of the lock node, which of its holds is ours */
	char lock[PATH_LOCK_SIZE]; /* the node of the KEY */
	char name[QUEUE_ENTRY_LENGTH + 1];    /* "_c_UUID" */
	char path[PATH_SIZE];		      /* of the lock node; "": it has none yet */
	int64_t fence;			      /* its czxid; 0: unknown */
	struct metadata metadata;	      /* its data */
	char added[METADATA_HOLD_LENGTH + 1]; /* a hold that a proof adds to it; "": none */
	struct place {
		bool first;		/* it is the first in the queue; of a lease: there is room for it */
		bool second;		/* it is the first when the entry that it waits for has gone */
		char before[PATH_SIZE]; /* the first node of that entry: the nearest, for a reader of a writer */
		char head[PATH_SIZE];	/* the first node of the first entry */
		int64_t holders;	/* the number of entries that hold the lock */
		int64_t waiting;	/* the number of waiters */
		int64_t ahead;		/* those of them that are before it */
	} place;
	/* Private. */
	bool known;	 /* the metadata and the version are those of the node; a write replaces no other version */
	int32_t version; /* 0: the data is as it was when the node was made */
	bool unsure;	 /* the last reply was lost: the nodes may have been made */
};

/* The entry of a token for a KEY, or for a slot; if the token has no session, it has no number yet. */
void entry_init(struct entry *, struct session *, const char *key, const struct zk_token *);

/* -- The place in the queue ------------------------------------------------- */

/*
 * Add the entry to the queue, for session_retry(): make its nodes in one transaction, and the node of the KEY if there
 * is none.  If the reply to the last try was lost, the UUID shows whether they were made.  ZK_OK: the entry has its
 * number, its fence and its place, and is watched.  The session must be connected.
 */
enum zk_code entry_join(void *entry, const struct wait *);

/*
 * Look for the place of the entry again; with a new connection if there is none.  ZK_OK: the lock node is watched.
 * ZK_NO_NODE: the entry is gone.  If it is a lease, s->before watches for changes of the leases from now on.
 */
enum zk_code entry_find(struct entry *, const struct wait *);

/* Put the transaction that deletes the nodes, if the data of the lock node has not changed.  Returns its xid. */
int32_t entry_put_delete(struct entry *);

/* Put the one that writes the metadata of an entry, and deletes the nodes of another one of its session. */
int32_t entry_put_move(struct entry *, struct entry *from);

/* -- The data of the lock node ---------------------------------------------- */

/* Read it if it is not known; attach to the session if there is no connection. */
enum zk_code entry_read(struct entry *, const struct wait *);

/* The next entry_read() asks the server. */
void entry_forget(struct entry *);

/* The node was written: the metadata is its data. */
void entry_note_written(struct entry *);

/* Has the data of the node been written since it was made, as far as we know? */
bool entry_was_written(const struct entry *);

/* Put the request to write e->metadata; returns its xid.  The data is not known any more. */
int32_t entry_put_write(struct entry *);

/* Write e->metadata without waiting for the reply: it will have been done.  The lock node is watched. */
enum zk_code entry_write(struct entry *, const struct wait *);

/*
 * A proof, for session_retry(): attach to the session with a new connection, and write our lock node behind it, with
 * the metadata of the entry.  ZK_OK: the session is proven, and the lock node is watched.  ZK_NO_NODE: the lock was
 * broken, or its data does not have our hold.  ZK_EXPIRED: the session has ended.
 *
 * Another process that uses the session closes our connection by making one of its own.
 */
enum zk_code entry_prove(void *entry, const struct wait *);

#endif
