/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_REDIS_QUEUE_H
#define DLOCK_REDIS_QUEUE_H
#include <stdbool.h>
#include <stdint.h>

#include "lock/token.h"
#include "redis/fleet.h"
#include "redis/names.h"

/*
 * A waiter's place in the queue for a lock: Redis's own queue of the clients that are blocked on the wake list of one
 * node, on a connection of its own (DESIGN.md, "Waiting").
 *
 * A release pushes the released token, the baton, and the one that has been blocked for longest gets it.  It is also
 * blocked on a list that only it knows, so that it can end this without losing a baton that is under way: whichever
 * comes, comes as the answer to the same request.
 */
struct queue {
	struct fleet *fleet;
	const struct names *names;
	char waiter[TOKEN_SIZE]; /* our name among the waiters */
	char leave[KEY_MAX + 64];
	char baton[TOKEN_SIZE]; /* "" until one has come */
	int from;		/* the node that it came from */
	int node;		/* where we are blocked; meaningful while `tag` is not 0 */
	unsigned int tag;	/* of the request that blocks; 0: in no queue */
	unsigned int asked;	/* of a short request to the queue node; 0: none is outstanding */
	int64_t joined_us;	/* since when we have been blocked, or asked to be */
	bool broken;		/* the place was lost: the connection broke, or the node refused */
	bool cut;		/* it was lost within a round, as nothing came but the end of the connection */
	bool refused;		/* no queue for us: BLPOP brought an error, or ended the connection twice running */
};

/* The names must outlive the queue.  False: no random numbers for a name. */
bool queue_start(struct queue *, struct fleet *, const struct names *);

/* Stand in the queue of this node, unless we were refused.  Keeps the place if it stands there already, leaves any other. */
void queue_join(struct queue *, int node);

/* Is it standing in a queue, and is it that of this node? */
bool queue_is_at(const struct queue *, int node);

/* Who stands in no queue takes its notes away, or every release would hand over to nobody.  Doesn't wait for answers. */
void queue_withdraw(struct queue *);

/* Take a baton that nobody in this node's queue was there for.  True if there was one. */
bool queue_glance(struct queue *, int node, int64_t until_us, fleet_deliver *, void *context);

/*
 * Leave the queue, and take the note away from the nodes that may have one; a baton that came is in `baton`.  Takes until
 * until_us at the most.
 */
void queue_leave(struct queue *, const bool noted[NODES_MAX], int64_t until_us, fleet_deliver *, void *context);

/* Pass a baton on to the next in the queue, as who gives up must. */
void queue_pass_on(struct queue *, int64_t until_us, fleet_deliver *, void *context);

/* An answer of a node has come.  True if it was one of the queue's. */
bool queue_delivered(struct queue *, int node, const struct delivery *);

#endif
