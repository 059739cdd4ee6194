/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_REDIS_WAITQUEUE_H
#define DLOCK_REDIS_WAITQUEUE_H
#include <stdbool.h>
#include <stdint.h>

#include "lock/token.h"
#include "redis/keys.h"
#include "redis/nodes.h"

/*
 * A waiter's place in the queue for a lock: Redis's own queue of the clients that are blocked on the wake list of one
 * node, on a connection of its own (DESIGN.md, "Waiting").
 *
 * A release pushes the released token, the handoff token, and the one that has been blocked for longest gets it.  It is also
 * blocked on a list that only it knows, so that it can end this without losing a handoff token that is under way: whichever
 * comes, comes as the answer to the same request.
 */
struct waitqueue {
	struct nodes *nodes;
	const struct keys *names;
	char waiter[TOKEN_SIZE]; /* our name among the waiters */
	char leave[KEY_MAX + 64];
	char handoff[TOKEN_SIZE]; /* "" until one has come */
	int from;		  /* the node that it came from */
	int node;		  /* where we are blocked; meaningful while `blocked` */
	bool blocked;		  /* in the queue */
	bool asked;		  /* a short request to a node has no reply yet */
	int64_t joined_us;	  /* since when we have been blocked, or asked to be */
	bool broken;		  /* the place was lost: the connection broke, or the node refused */
	bool cut;		  /* it was lost within a round, as nothing came but the end of the connection */
	bool refused;		  /* no queue for us: BLPOP brought an error, or ended the connection twice running */
};

/* The names must outlive the queue.  False: no random numbers for a name. */
bool waitqueue_start(struct waitqueue *, struct nodes *, const struct keys *);

/* Stand in the queue of this node, unless we were refused.  Keeps the place if it stands there already, leaves any other. */
void waitqueue_join(struct waitqueue *, int node);

/* Is it standing in a queue, and is it that of this node? */
bool waitqueue_is_at(const struct waitqueue *, int node);

/* Who stands in no queue takes its notes away, or every release would hand over to nobody.  Doesn't wait for answers. */
void waitqueue_withdraw(struct waitqueue *);

/* Take a handoff token that nobody in this node's queue was there for.  True if there was one. */
bool waitqueue_glance(struct waitqueue *, int node, int64_t until_us);

/*
 * Leave the queue, and take the note away from the nodes that may have one; a handoff token that came is in `handoff token`.  Takes until
 * until_us at the most.
 */
void waitqueue_leave(struct waitqueue *, const bool noted[NODES_MAX], int64_t until_us);

/* Pass a handoff token on to the next in the queue, as who gives up must. */
void waitqueue_pass_on(struct waitqueue *, int64_t until_us);

/* Nothing that is outstanding matters any more: the queue may go. */
void waitqueue_cancel(struct waitqueue *);

#endif
