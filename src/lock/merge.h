/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_LOCK_MERGE_H
#define DLOCK_LOCK_MERGE_H
#include "lock/backend.h"

/*
 * What N nodes say together about one lock.  Each node's state and time left stand in the view already, and its
 * holder in `holders`; the census adds what a majority agrees on: the state, the holder's facts, and the time that is
 * surely left, which is what a majority still grants.  A fence is shown only where a majority knows it.
 *
 * Returns false, with the state unknown, where fewer than a majority of the nodes told anything.
 */
bool merge_status(struct lock_status *, const struct holder holders[NODES_MAX]);

/* The state that one node's holder means. */
enum lock_state merge_state(bool held, const struct holder *);

#endif
