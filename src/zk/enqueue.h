/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_ZK_ENQUEUE_H
#define DLOCK_ZK_ENQUEUE_H
#include "zk/operations.h"

/* Our place in the queue of a lock. */
struct place {
	bool present;		/* our entry is there */
	bool first;		/* it is the first */
	bool second;		/* exactly one entry is before it */
	char before[PATH_SIZE]; /* the first node of the nearest entry before it */
	char head[PATH_SIZE];	/* the first node of the first entry */
	int64_t waiting;	/* the number of waiters */
};

/*
 * Add our entry to the queue: make its nodes in one transaction, and the node of the KEY if there is none.  If the reply
 * is lost, our UUID shows whether they were made.  ZK_OK: the entry has its number and its fence, is watched, and *place
 * is its place.  The session must be connected.
 */
enum zk_code zk_enqueue(struct zk_backend *, struct place *, const struct wait *);

/*
 * Look for our place again; with a new connection if there is none.  ZK_OK: the lock node is watched.  ZK_NO_NODE: our
 * entry is gone.
 */
enum zk_code zk_find_place(struct zk_backend *, struct place *, const struct wait *);

#endif
