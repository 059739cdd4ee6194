/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_REDIS_SLOTS_H
#define DLOCK_REDIS_SLOTS_H
#include "redis/operations.h"

/*
 * Slots: at most N holders of one KEY.  A slot is an exclusive lock with a name of its own, `{KEY}:slot-2`, acquired,
 * renewed and released as any lock.  Only the waiters are common to the slots of a KEY (keys_of()).
 *
 *  -  A client is in a slot if a majority of the nodes gave it that slot.  Grants of different slots are never added
 *     up.
 *  -  A look at the slots and the entry of the waiter are one step on each node (slots.lua).
 *  -  A waiter blocks on the wake lists of all its slots in one BLPOP, and only at a node where the holder that a
 *     majority names for each slot is the holder there: the others would not be released there.
 *  -  Several slots are never asked for at once.
 */
struct slots {
	int count;
	int chosen; /* of the present or last attempt, from 0 */
	bool noted; /* nodes may have an entry of this waiter */
	struct slot {
		char key[KEY_MAX + 1];
		struct record record; /* as the last look saw it */
		struct holder said[NODES_MAX];
	} * slot;
	int64_t before[NODES_MAX], crowd[NODES_MAX]; /* see struct attempt_answer; as the last look saw it */
	struct keys *names;			     /* of each slot */
	struct ballot ballot;			     /* of the look */
	struct node_error error[NODES_MAX];
};

/*
 * Prepare it for args->slots slots of args->key.  ST_USAGE: the KEY cannot have slots.  ST_SYSTEM: out of memory.  Call
 * slots_free() whatever is returned.
 */
enum status slots_prepare(struct slots *, const struct acquire_args *, struct err *);
void slots_free(struct slots *);

/*
 * Choose the slot of the next attempt: that of the handoff token, or the one that was chosen by slots_wait(), or any.
 */
void slots_enter(struct acquire *);

/*
 * An attempt failed with this step, and nothing was granted: look, and wait until another one makes sense.  ST_OK: make
 * it.  ST_HELD: all slots are held, and the wait is over, or is of no use.  ST_INTERRUPTED.  Otherwise there is no
 * quorum.
 */
enum status slots_wait(struct acquire *, enum attempt_step, unsigned int tries, struct err *);

/* The holder whose lease ends first, as the last look saw it; NULL: not all slots were seen to be held. */
const struct holder *slots_first(const struct slots *);

#endif
