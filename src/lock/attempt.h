/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_LOCK_ATTEMPT_H
#define DLOCK_LOCK_ATTEMPT_H
#include <stdbool.h>
#include <stdint.h>

#include "lock/holder.h"
#include "lock/quorum.h"

/*
 * One attempt to take a lock over N nodes: the decisions, without sockets and clocks.
 *
 * The driver sends the acquire request to all nodes at the instant it gives to attempt_start(), feeds every
 * node's answer to attempt_answer(), and asks attempt_next() what to do, again after each answer and at
 * `deadline_us` at the latest.
 *
 * The fence is the largest that a granting node returned; it is given out only when a majority has recorded it.
 * Mostly it has, since all nodes get the same candidate; otherwise one more round raises it where the lock is
 * still ours (DESIGN.md, "Fences").  A node records none that is too far ahead of its clock: where the largest fence is
 * refused so that no majority can record it, the nodes that told it don't count, and the attempt goes on without them.
 *
 * Who was handed a handoff token may take the place of the token that was released.  A node at which that token still stands,
 * but which hasn't got the release yet, is asked the same again: it is on its way (DESIGN.md, "Waiting").
 */
struct attempt_terms {
	int nodes;
	int64_t ttl_us;
	int64_t round_us;	      /* time for the answers of both rounds together */
	bool unresponsive[NODES_MAX]; /* was silent in the attempt before */
	const char *handoff; /* the token whose place this attempt may take; "" for none; outlives the attempt */
};

/* What one node said to an acquire request. */
struct attempt_answer {
	enum vote vote;
	bool harmless;	      /* VOTE_FAULT: the node surely didn't grant it */
	int64_t fence;	      /* VOTE_YES */
	struct holder holder; /* VOTE_NO */
	int64_t ticket;	      /* VOTE_NO, who waits: its number in the queue of this node, */
	int64_t before;	      /* and how many are served before it, at the most */
};

enum attempt_step {
	ATTEMPT_WAIT,	 /* for answers, until deadline_us */
	ATTEMPT_AGAIN,	 /* send the request again to the nodes for which attempt_early() is true; then say so */
	ATTEMPT_RAISE,	 /* send the fence to the nodes for which attempt_lags() is true; then go on asking */
	ATTEMPT_GRANTED, /* until valid_until_us, with the fence */
	ATTEMPT_HELD,	 /* a majority names the same holder */
	ATTEMPT_SPLIT,	 /* the votes are split between contenders */
	ATTEMPT_NO_QUORUM,
	ATTEMPT_TOO_SLOW /* granted, when the lease was as good as over */
};

struct attempt {
	struct attempt_terms terms;
	int64_t started_us;
	int64_t deadline_us;
	int64_t valid_until_us;
	int64_t fence;
	struct ballot grants;
	int64_t fences[NODES_MAX];
	bool perhaps[NODES_MAX]; /* the node may hold our token */
	bool early[NODES_MAX];	 /* the handoff token still holds the lock there: it has not been released there yet */
	int64_t again_us;	 /* when the early ones are asked again */
	int64_t pause_us;
	bool raising;
	bool too_far;		/* some node refuses to record this fence */
	bool barred[NODES_MAX]; /* the node has told a fence that no majority records */
	struct ballot raises;
	struct holder holders[NODES_MAX]; /* of the nodes that named one */
};

void attempt_start(struct attempt *, const struct attempt_terms *, int64_t now_us);

/* A node's answer to the acquire request of this attempt (and of no other). */
void attempt_answer(struct attempt *, int node, const struct attempt_answer *);

/* A node's answer to the raising of the fence: VOTE_YES recorded, VOTE_NO not ours any more, VOTE_FAULT. */
void attempt_raised(struct attempt *, int node, enum vote);

/* Another answer to that: the lock is ours there, but the fence is too far ahead of the node's clock to be recorded. */
void attempt_refused_fence(struct attempt *, int node);

enum attempt_step attempt_next(struct attempt *, int64_t now_us);

/* When attempt_next() wants to be asked at the latest. */
int64_t attempt_wake_us(const struct attempt *);

/* Must this node be asked again?  And: it was, all of them were. */
bool attempt_early(const struct attempt *, int node);
void attempt_asked_again(struct attempt *);

/* Has this node granted the lock with a smaller fence?  Meaningful after ATTEMPT_RAISE. */
bool attempt_lags(const struct attempt *, int node);

/* Has this node told a fence that the others refuse, so that its grant doesn't count? */
bool attempt_barred(const struct attempt *, int node);

/* Must this node be told to undo, once the attempt has failed? */
bool attempt_perhaps_granted(const struct attempt *, int node);

/* The holder that a majority, or failing that any node, named; NULL if none did. */
const struct holder *attempt_holder(const struct attempt *);

/* Has this node named the same holder as attempt_holder() does? */
bool attempt_held_at(const struct attempt *, int node);

#endif
