/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_REDIS_ROLLBACK_H
#define DLOCK_REDIS_ROLLBACK_H
#include <stdbool.h>
#include <stdint.h>

#include "lock/attempt.h"
#include "lock/token.h"
#include "redis/keys.h"
#include "redis/nodes.h"

/*
 * Tokens of failed attempts that a node may have granted, and that it must be told to remove.
 *
 * A rollback goes out behind the unfinished request, on the same connection.  Where it fails, it goes out again with the
 * next attempt.  It is done when the node has replied to it.  What can't be rolled back ends with its lease.
 */
enum {
	ROLLBACKS_MAX = 8 /* for each node; the oldest is given up for the newest */
};

struct rollbacks {
	struct nodes *nodes;
	struct rollback {
		char token[TOKEN_SIZE]; /* "": none */
		bool sent;		/* and without a reply */
	} rollback[NODES_MAX][ROLLBACKS_MAX];
	int next[NODES_MAX];
};

/* The node may hold this token. */
void rollback_note(struct rollbacks *, int node, const char *token);

/* Send every rollback that was not sent yet.  True if there was one. */
bool rollback_send(struct rollbacks *, int node, const struct keys *);

/* Is there one without a reply? */
bool rollback_is_pending(const struct rollbacks *, int node);

/* An attempt that has failed, by this token. */
struct failed_attempt {
	const struct keys *keys;
	const struct attempt *attempt;
	const char *token;
	int64_t took_us;  /* how long it took until it was certain */
	int64_t until_us; /* its rollback may take so long, and a round at the most */
	bool hear;	  /* wait for the replies of nodes that take hardly longer: most likely they refuse as well */
};

/*
 * Tell every node that may have granted the attempt to remove its token, and see it done where the node replies at all.
 * The attempt still gets its replies meanwhile.  What can't be done in time stays among the rollbacks.
 */
void rollback_attempt(struct rollbacks *, const struct failed_attempt *);

#endif
