/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_LOCK_MERGE_H
#define DLOCK_LOCK_MERGE_H
#include "lock/service.h"

/*
 * Merge the replies of N nodes about one lock.  The caller has filled in the state and the remaining time of each
 * node, and its holder in `holders`.  The merge adds what a majority agrees on: the state, the metadata of the holder,
 * and the time that is certainly left, which is what a majority still grants.  The fence is set only if a majority
 * knows it.
 *
 * Returns false, with the state unknown, if fewer than a majority of the nodes reported a state.
 */
bool merge_status(struct lock_status *, const struct holder holders[NODES_MAX]);

/* The lock state that follows from the reply of one node. */
enum lock_state merge_state(bool held, const struct holder *);

#endif
