/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_LOCK_QUORUM_H
#define DLOCK_LOCK_QUORUM_H
#include <stdbool.h>

/*
 * Majorities: the combined result of the votes of N independent nodes.  A single node is a quorum of one.
 *
 * These are pure functions without clocks and sockets.  The caller provides the votes of the nodes and whether the time
 * for replies is over.  The result is whether there is a decision, and which one.
 */
enum {
	NODES_MAX = 15
};

enum vote {
	VOTE_PENDING, /* no reply yet */
	VOTE_YES,
	VOTE_NO,
	VOTE_FAULT /* no vote: an error reply, a broken connection */
};

struct ballot {
	int nodes;
	enum vote vote[NODES_MAX];
	int side[NODES_MAX];	      /* for VOTE_NO: equal numbers mean the same reason (the same holder) */
	bool unresponsive[NODES_MAX]; /* did not reply last time: its reply is awaited only if it is needed */
	bool closed;		      /* the time is over: pending votes are not expected any more */
};

enum verdict {
	VERDICT_OPEN,	  /* no decision yet: wait for more replies */
	VERDICT_CARRIED,  /* a majority voted yes */
	VERDICT_REFUSED,  /* a majority voted no for the same reason */
	VERDICT_SPLIT,	  /* a majority voted, but no side has a majority */
	VERDICT_NO_QUORUM /* fewer than a majority voted */
};

/* The smallest number of nodes that is a majority. */
int quorum_majority(int nodes);

/* The number of nodes with this vote. */
int quorum_count(const struct ballot *, enum vote);

/* The number of nodes that voted no for the same reason as this one, which counts; 0 if it did not. */
int quorum_side(const struct ballot *, int node);

/*
 * Returns a verdict as soon as no further vote can change it, for yes and for no.  The exception are unresponsive
 * nodes: they are not waited for if a majority has voted and all other nodes have replied.  Otherwise contenders that
 * each have some of the votes would wait for a frozen minority node and keep their votes meanwhile, and none would win.
 */
enum verdict quorum_judge(const struct ballot *);

#endif
