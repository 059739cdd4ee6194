/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_REDIS_ACQUIRE_ATTEMPT_H
#define DLOCK_REDIS_ACQUIRE_ATTEMPT_H
#include "redis/operations.h"
#include "redis/waitqueue.h"

/* The state of a claim and of its current attempt.  lock/attempt.c makes the decisions, this module does the I/O. */
struct acquire {
	struct redis_backend *backend;
	const struct acquire_args *args;
	struct keys names;
	struct waitqueue queue; /* a handoff token received here is for the next attempt */
	char token[TOKEN_SIZE];
	char handoff[TOKEN_SIZE];		      /* the token that this attempt may replace; "" for none */
	int64_t candidate_us;			      /* wall-clock time, proposed as the fence */
	int64_t took_us;			      /* duration of the last attempt that replies decided; 0: none */
	int64_t ticket[NODES_MAX], before[NODES_MAX]; /* see struct attempt_answer */
	unsigned int splits;			      /* consecutive attempts with split votes */
	int64_t split_until_us; /* a split vote is retried until then, even if the wait is shorter */
	int64_t over_us;	/* the end of the operation: the end of the wait, and cleanup */
	int64_t room_us;	/* reserved before over_us for a rollback, and again for leaving the queue */
	/* The fields below belong to one attempt. */
	struct attempt attempt;
	struct raise {
		struct acquire *attempt_of;
	} raise; /* context of the completions of the fence round */
	struct node_error error[NODES_MAX];
};

/*
 * Make one attempt with a fresh token.  The caller has set backend, args, names, split_until_us, over_us and room_us,
 * and has started the queue.  ST_OK: granted, see t->attempt.  Otherwise *step is the reason, and grants have been
 * rolled back on all nodes that could be reached; the other rollbacks are sent again with the next attempt.
 */
enum status acquire_attempt(struct acquire *t, int interrupt_fd, enum attempt_step *step, struct err *);

#endif
