/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_REDIS_ACQUIRE_ATTEMPT_H
#define DLOCK_REDIS_ACQUIRE_ATTEMPT_H
#include "redis/operations.h"
#include "redis/waitqueue.h"

/* One attempt under way: the decisions are lock/attempt.c's, the traffic is here. */
struct acquire {
	struct redis_backend *backend;
	const struct acquire_args *args;
	struct keys names;
	struct waitqueue queue; /* a handoff token that came in it is for the next attempt */
	char token[TOKEN_SIZE];
	char handoff[TOKEN_SIZE]; /* whose place this attempt may take; "" for none */
	int64_t candidate_us;	  /* for the fence */
	int64_t took_us;	  /* the last attempt that nodes decided, until it was certain; 0: none */
	int64_t ticket[NODES_MAX], before[NODES_MAX]; /* see struct attempt_answer */
	unsigned int splits;			      /* attempts in a row whose votes were split */
	int64_t split_until_us;			      /* so long is a split vote tried again, however short the wait */
	int64_t over_us;			      /* the end of it all, after the bound on the wait */
	int64_t room_us;			      /* what an undo, and again leaving the queue, get before that */
	/* from here on, each attempt's own */
	struct attempt attempt;
	struct raise {
		struct acquire *attempt_of;
	} raise; /* the context of the present second round */
	struct node_error error[NODES_MAX];
};

/*
 * Make one attempt with a fresh token.  The caller has set service, claim, names and the three bounds and started the queue.  ST_OK:
 * granted, see t->attempt.  Otherwise *step says how it failed, and everything that was granted has been given back as far
 * as nodes can be reached.
 */
enum status acquire_attempt(struct acquire *t, int interrupt_fd, enum attempt_step *step, struct err *);

#endif
