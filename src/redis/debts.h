/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_REDIS_DEBTS_H
#define DLOCK_REDIS_DEBTS_H
#include <stdbool.h>

#include "lock/token.h"
#include "redis/fleet.h"

/*
 * Tokens of failed attempts that a node may have granted, and that it must be told to undo.
 *
 * An undo goes out behind the unfinished request, on the same connection; where that connection breaks, it goes out
 * again on the next one.  A debt is paid when the node answers the undo.  What can't be paid ends with the lease.
 */
enum {
	DEBTS_MAX = 8 /* for each node; the oldest is given up for the newest */
};

struct debts {
	struct debt {
		char token[TOKEN_SIZE]; /* "" for no debt */
		unsigned int tag;	/* of the undo that is under way, or 0 */
	} debt[NODES_MAX][DEBTS_MAX];
	int next[NODES_MAX];
};

/* The node may hold this token. */
void debts_note(struct debts *, int node, const char *token);

/* Send every undo that is not under way.  True if there was one. */
bool debts_send(struct debts *, struct fleet *, int node, const struct names *);

/* An answer has come.  True if it was one to an undo. */
bool debts_delivered(struct debts *, int node, const struct delivery *);

/* Is an undo under way to this node? */
bool debts_under_way(const struct debts *, int node);

#endif
