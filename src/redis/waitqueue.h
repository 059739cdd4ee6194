/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_REDIS_WAITQUEUE_H
#define DLOCK_REDIS_WAITQUEUE_H
#include <stdbool.h>
#include <stdint.h>

#include "lock/token.h"
#include "redis/keys.h"
#include "redis/nodes.h"

/*
 * A waiter's place in the queue for a lock.  The queue is Redis's own queue of clients that are blocked on the wake
 * list of one node.  The waiter blocks on a separate connection (DESIGN.md, "Waiting").
 *
 * A release pushes the handoff token, which is the released token, onto the list.  The client that has been blocked for
 * the longest time receives it.  The waiter is also blocked on a private list, so that it can stop waiting without
 * losing a handoff token that is on its way: whichever arrives first is the reply to the same request.
 */
struct waitqueue {
	struct nodes *nodes;
	const struct keys *names;
	char waiter[TOKEN_SIZE]; /* our id among the waiters */
	char leave[KEY_MAX + 64];
	char handoff[TOKEN_SIZE]; /* "" until one is received */
	int from;		  /* the node that sent it */
	int node;		  /* the node where we are blocked; valid while `blocked` */
	bool blocked;		  /* in the queue */
	bool asked;		  /* a short request to a node has no reply yet */
	int64_t joined_us;	  /* when BLPOP was sent */
	bool broken;		  /* the place was lost: the connection failed, or the node replied with an error */
	bool cut;		  /* it was lost within node_timeout_us, without a reply */
	bool refused;		  /* no queue is available: BLPOP failed, or ended the connection twice in a row */
};

/* Initialise the queue.  The nodes and names must outlive it.  False: no random numbers for an id. */
bool waitqueue_start(struct waitqueue *, struct nodes *, const struct keys *);

/*
 * Join the queue of this node, unless we were refused.  Keeps the place if it is in that queue already; leaves any
 * other queue.
 */
void waitqueue_join(struct waitqueue *, int node);

/* Is the waiter in the queue of this node? */
bool waitqueue_is_at(const struct waitqueue *, int node);

/*
 * Remove the waiter's entries from all nodes, because a release would otherwise hand over to a waiter that is in no
 * queue.  Doesn't wait for replies.
 */
void waitqueue_withdraw(struct waitqueue *);

/*
 * Take a handoff token for which no client was blocked at this node.  Waits for the reply until until_us at the latest.
 * True if there was one.
 */
bool waitqueue_glance(struct waitqueue *, int node, int64_t until_us);

/*
 * Leave the queue, and remove the waiter's entry from the nodes with `noted` set, which may have one.  A handoff token
 * that arrived is in q->handoff.  Returns at until_us at the latest.
 */
void waitqueue_leave(struct waitqueue *, const bool noted[NODES_MAX], int64_t until_us);

/*
 * Pass a received handoff token on to the next waiter in the queue, as a waiter that gives up must do.  Waits for the
 * reply until until_us at the latest.
 */
void waitqueue_pass_on(struct waitqueue *, int64_t until_us);

/* Cancel all pending completions, so that the queue may be freed. */
void waitqueue_cancel(struct waitqueue *);

#endif
