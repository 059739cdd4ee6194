/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_LOCK_ATTEMPT_H
#define DLOCK_LOCK_ATTEMPT_H
#include <stdbool.h>
#include <stdint.h>

#include "lock/record.h"

/*
 * One attempt to acquire a lock on N nodes.  This module makes the decisions; it uses no sockets and no clocks.
 *
 * The caller sends the acquire request to all nodes at the instant it passes to attempt_start().  It passes the reply
 * of each node to attempt_answer() and calls attempt_next() to learn what to do: after each reply, and at
 * `deadline_us` at the latest.
 *
 * The fence is the largest one that a granting node returned.  It is used only when a majority has recorded it.
 * Usually a majority has, since all nodes receive the same candidate.  Otherwise a second round raises the fence on
 * the nodes where the lock is still ours (DESIGN.md, "Fences").  A node doesn't record a fence that is too far ahead
 * of its clock.  If such refusals prevent a majority from recording the largest fence, the grants of the nodes that
 * returned it are ignored and the attempt continues without them.
 *
 * A client that received a handoff token may replace the released token.  A node on which that token still holds the
 * lock hasn't received the release yet.  The release is on its way, so the request is repeated (DESIGN.md, "Waiting").
 */
struct attempt_terms {
	int nodes;
	int64_t ttl_us;
	int64_t node_timeout_us;      /* timeout for the replies of both rounds together */
	bool unresponsive[NODES_MAX]; /* the node did not reply in the previous attempt */
	const char *handoff; /* the token that this attempt may replace; "" or NULL: none; must outlive the attempt */
};

/* The reply of one node to an acquire request. */
struct attempt_answer {
	enum vote vote;
	bool harmless;	      /* VOTE_FAULT: the node certainly didn't grant the lock */
	int64_t fence;	      /* VOTE_YES */
	struct holder holder; /* VOTE_NO */
	int64_t ticket;	      /* VOTE_NO, if we are a waiter: our number in the queue of this node, */
	int64_t before;	      /* and the number of waiters before us */
	int64_t crowd;	      /* VOTE_NO: so many wait that we may not, see --max-waiters; 0: we may */
	int64_t number;	      /* VOTE_NO: ours among those who replace the holder, see acquire.lua; 0: none */
	int64_t writers; /* VOTE_NO, if we are a reader: the number of writers before us; -1: the lock is not shared */
};

enum attempt_step {
	ATTEMPT_WAIT,  /* wait for replies, until again_us or deadline_us */
	ATTEMPT_AGAIN, /* repeat the request to the early nodes, then call attempt_repeated() */
	ATTEMPT_RAISE, /* send the fence to the nodes with a pending vote in `raises`, then continue with attempt_next() */
	ATTEMPT_GRANTED, /* the lock is ours until valid_until_us, with the fence */
	ATTEMPT_HELD,	 /* a majority reports the same holder */
	ATTEMPT_SPLIT,	 /* the votes are split between contenders */
	ATTEMPT_NO_QUORUM,
	ATTEMPT_TOO_SLOW /* granted, but the validity of the lease had already ended */
};

struct attempt {
	struct attempt_terms terms;
	int64_t started_us;
	int64_t deadline_us;
	int64_t valid_until_us;
	int64_t fence;
	struct ballot grants;
	int64_t fences[NODES_MAX];
	bool perhaps[NODES_MAX]; /* the node may have granted the lock to our token */
	bool early[NODES_MAX]; /* the handoff token still holds the lock there: the node hasn't received the release */
	int64_t again_us;      /* when the request is repeated to the early nodes */
	int64_t pause_us;
	bool raising;
	bool too_far;		  /* a node refused to record this fence */
	bool excluded[NODES_MAX]; /* the node returned a fence that no majority can record */
	struct ballot raises;	  /* nodes that recorded the fence; pending: they granted the lock with a smaller one */
	int64_t kept_us[NODES_MAX];	   /* for how long that lock is kept after its command; 0: it is not */
	char token[NODES_MAX][TOKEN_SIZE]; /* VOTE_NO: of the holder that the node reported */
	struct holder early_holder;	   /* the one that early nodes report */
	struct holder holder;		   /* the one that most nodes report, as the last of them described it */
};

void attempt_start(struct attempt *, const struct attempt_terms *, int64_t now_us);

/* The reply of a node to the acquire request of this attempt.  Don't pass replies of other attempts. */
void attempt_answer(struct attempt *, int node, const struct attempt_answer *);

/*
 * The reply of a node to the raised fence.  VOTE_YES: recorded.  VOTE_NO: the lock is no longer ours; or, if too_far,
 * it is, but the fence is too far ahead of the node's clock.  VOTE_FAULT.
 */
void attempt_raised(struct attempt *, int node, enum vote, bool too_far);

/*
 * A node that granted the lock has closed the connection: it may have restarted without its data, and have been healed
 * for another holder since.  The grant no longer counts, and is rolled back if the attempt fails.
 */
void attempt_lost(struct attempt *, int node);

/* The next step.  Call it again after each reply, and at again_us or deadline_us at the latest. */
enum attempt_step attempt_next(struct attempt *, int64_t now_us);

/* The request has been repeated to all early nodes. */
void attempt_repeated(struct attempt *);

/* Does this node need a rollback if the attempt fails? */
bool attempt_perhaps_granted(const struct attempt *, int node);

/* The holder that most nodes report; NULL if no node reports one.  Owned by the attempt. */
const struct holder *attempt_holder(const struct attempt *);

/* Do a majority of the nodes keep the lock, whose command has ended, until this instant or longer? */
bool attempt_kept(const struct attempt *, int64_t until_us);

/* Does this node report the holder that attempt_holder() returns? */
bool attempt_held_at(const struct attempt *, int node);

#endif
