/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_LOCK_HISTORY_H
#define DLOCK_LOCK_HISTORY_H
#include "lock/record.h"

/*
 * The history of a lock: its earlier holders, and who waits for it, in its struct record.  Nodes report entries as
 * text, whose format is in dlock-protocol(7).
 */

/* The facts that a node reports about the lock, beside the entries. */
struct history_source {
	int64_t now_ms;
	const char *holder;	/* the token that holds the lock; "" for none */
	int64_t lease_ended_ms; /* when the last lease ended, or will end; -1: unknown */
};

/*
 * Add an entry of a node; index 0 is its newest.  An entry that another node has reported is merged with it.  Malformed
 * ones are ignored.  False: out of memory.
 */
bool history_add(struct record *, const struct history_source *, size_t index, const char *text);

/*
 * Add a waiter.  Queues of different nodes have no common order: of a waiter that several nodes know, that of the first
 * node counts.  One with an impossible time is ignored.  False: out of memory.
 */
bool history_put_waiter(struct record *, const struct waiter *);

/*
 * Add an entry of a node about a waiter, which has this place in the queue of that node.  A malformed one is ignored.
 */
bool history_add_waiter(struct record *, int node, size_t place, const char *text);

/*
 * An entry that was never completed counts only if a majority of `nodes` nodes may have it: otherwise it is of an
 * attempt that failed, and could not be undone everywhere.  Is that certain of all entries, although `missing` nodes
 * have not answered?
 */
bool history_is_settled(const struct record *, int nodes, int missing);

/* All nodes that answered have been added, `missing` have not answered: sort. */
void history_finish(struct record *, int nodes, int missing);

/*
 * Append how long the last runs took that ended by themselves: "; the last 5 took 3m to 4m".  Nothing if there is none.
 */
void history_say_runs(const struct record *, struct text *);

/* The size of a waiter's name in the queue: id, since when, and its owner and label. */
enum {
	WAITER_NAME_SIZE = TOKEN_SIZE + 48 + OWNER_MAX + LABEL_MAX
};

/* Write it. */
void history_write_waiter(const struct waiter *, char name[WAITER_NAME_SIZE]);

#endif
