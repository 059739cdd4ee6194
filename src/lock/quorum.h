/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_LOCK_QUORUM_H
#define DLOCK_LOCK_QUORUM_H
#include <stdbool.h>

/*
 * Majorities: what the votes of N independent nodes mean together.  One node is a quorum of one.
 *
 * Pure: no clock, no socket.  Whoever asks says which nodes have answered what, and whether the time for answers
 * is over, and hears whether that is decided and how.
 */
enum {
	NODES_MAX = 15
};

enum vote {
	VOTE_PENDING, /* nothing heard yet */
	VOTE_YES,
	VOTE_NO,
	VOTE_FAULT /* an answer that is no vote: an error, a broken connection */
};

struct ballot {
	int nodes;
	enum vote vote[NODES_MAX];
	int side[NODES_MAX];	      /* of a VOTE_NO: equal numbers say no for the same reason (the same holder) */
	bool unresponsive[NODES_MAX]; /* was silent last time: asked, but waited for only if it matters */
	bool closed;		      /* the time is over: who is still pending is silent */
};

enum verdict {
	VERDICT_OPEN,	  /* more answers can change it: wait */
	VERDICT_CARRIED,  /* a majority says yes */
	VERDICT_REFUSED,  /* a majority says no for the same reason */
	VERDICT_SPLIT,	  /* a majority voted, and neither side has one */
	VERDICT_NO_QUORUM /* fewer than a majority voted */
};

int quorum_majority(int nodes);

/*
 * The verdict, as soon as no further vote can change it, yes and no alike.  A unresponsive node is not waited for where
 * a majority of the nodes has voted and all others have answered (a frozen minority node would otherwise hold
 * up contenders that keep half of the votes meanwhile, and nobody would ever win).
 */
enum verdict quorum_judge(const struct ballot *);

#endif
