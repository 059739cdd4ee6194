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
 * Rollback: removal of the tokens of failed attempts from nodes that may have granted them.
 *
 * A rollback is sent after the unfinished request, on the same connection.  If it fails, it is sent again with the next
 * attempt.  It is done when the node has replied to it.  A lock that can't be rolled back expires with its lease.
 */
enum {
	ROLLBACKS_MAX = 8 /* per node; the newest replaces the oldest */
};

struct rollbacks {
	struct nodes *nodes;
	struct rollback {
		char token[TOKEN_SIZE]; /* "": none */
		bool sent;		/* sent, and without a reply */
	} rollback[NODES_MAX][ROLLBACKS_MAX];
	int next[NODES_MAX];
};

/* Send all rollbacks that are not sent yet.  True if there was one. */
bool rollback_send(struct rollbacks *, int node, const struct keys *);

/* A failed attempt, with its token. */
struct failed_attempt {
	const struct keys *keys;
	const struct attempt *attempt;
	const char *token;
	int64_t took_us;  /* how long it took until its outcome was certain */
	int64_t until_us; /* deadline of its rollback, which also takes at most one round */
	bool hear; /* first wait a short time for nodes about as fast as the others: they probably refuse as well */
};

/*
 * Send a rollback to every node that may have granted the attempt, and wait for the replies.  The attempt still
 * receives its own replies meanwhile.  Rollbacks that are not done in time stay recorded.  Nodes that had not replied at
 * the deadline of the attempt are marked as unresponsive.
 */
void rollback_attempt(struct rollbacks *, const struct failed_attempt *);

#endif
