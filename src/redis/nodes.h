/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_REDIS_NODES_H
#define DLOCK_REDIS_NODES_H
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "lock/quorum.h"
#include "lock/token.h"
#include "net/loop.h"
#include "redis/answer.h"
#include "redis/node.h"

/* Tokens of failed attempts that a node may have granted, and has not confirmed to be removed; see acquire.c. */
enum {
	ROLLBACKS_MAX = 8 /* the newest replaces the oldest */
};

struct rollbacks {
	struct rollback {
		char token[TOKEN_SIZE]; /* "": none */
		bool sent;		/* sent, and without a reply */
		int slot;		/* of the attempt, from 0; of no meaning for an exclusive lock */
	} rollback[ROLLBACKS_MAX];
	int next;
};

/*
 * All nodes of a service, in one event loop.  In a round, one request is sent to several nodes, and their replies are
 * awaited until one deadline.
 */
struct nodes {
	int count;
	struct node *node[NODES_MAX];
	bool unresponsive[NODES_MAX]; /* it left a round without a reply, and has not replied to anything since */
	struct node *second;	      /* a second connection to a node, for a blocking request; NULL: none */
	int64_t node_timeout_us;      /* the time that one round may take */
	struct loop loop;
	struct log log;
	struct rollbacks rollbacks[NODES_MAX];
};

/*
 * Begin a round.  A node that left an earlier round without a reply, and has not replied since, gets a new connection,
 * since the connection may be the problem.  Its pending requests fail, and their completions run.
 */
void nodes_begin_round(struct nodes *);

/* node_send() to all nodes.  Completions run in loop_turn(), and where a function says so. */
void nodes_send_all(struct nodes *, const struct command *, node_completion *, void *context);

/*
 * Cancel the completions with this context: they do not run, and the context may be freed.  The requests are still
 * sent.
 */
void nodes_cancel(struct nodes *, const void *context);

/* If the time of a ballot is over: nodes that have not voted are marked as unresponsive. */
void nodes_note_unresponsive(struct nodes *, const struct ballot *);

/*
 * Requests that wait for a connection fail and are not sent; their completions run.  in_time: the deadline has not
 * passed yet.
 */
void nodes_stop_connecting(struct nodes *, bool in_time);

/* Close the second connection.  The completions of its requests do not run.  Does nothing if there is none. */
void nodes_close_second(struct nodes *);

void nodes_close(struct nodes *);

/* -- Waiting ------------------------------------------------------------------ */

/*
 * A node on the same network replies, or gets what was sent to it, within this time, unless it hangs.  The least that a
 * node whose reply no longer matters is given.
 */
#define GRACE_US 20000

/* The time to wait for nodes when no further reply can change the outcome. */
enum patience {
	UNTIL_DECIDED,
	NEARLY_AS_FAST, /* for those about as fast as the others: a hung node costs almost nothing */
	AS_FAR_AWAY,	/* for all that do not seem to hang: GRACE_US, and longer if the others are slow, too */
	EVERYBODY	/* until the limit */
};

/* Waiting for the replies of a round: fill in the first four, then `while (nodes_await(&w, standing)) ...`. */
struct waiting {
	struct nodes *nodes;
	struct wait limit; /* at the latest; may be changed at any time */
	enum patience patience;
	int64_t began_us;      /* when the round was sent */
	enum loop_event event; /* the event that ended the wait; LOOP_ACTIVE: there was nothing left to wait for */
	int64_t late_us;       /* the end for the others, once it is decided; 0: not yet, or to be found anew */
};

/* The state of a round. */
enum standing {
	ROUND_OPEN,    /* a reply that is pending may change the outcome */
	ROUND_DECIDED, /* no reply can, but some are pending */
	ROUND_OVER     /* there is nothing left to wait for */
};

/* The end of the wait, and one node timeout from now at the latest. */
struct wait nodes_limit(const struct nodes *, const struct wait *);

/* Wait until something happens: then look how the round stands, and call it again.  False: the wait is over. */
bool nodes_await(struct waiting *, enum standing);

/* -- A round about one token -------------------------------------------------- */

enum {
	ROUND_HOLDS = 4096
};

/*
 * A round about one token: the replies of all nodes to a script that returns 1 (ours), 2 (our hold has ended, others
 * have not), 0 (another's) or -1 (nobody's).
 */
struct round {
	struct nodes *nodes;
	struct ballot ballot; /* yes: ours; no: not ours, whoever holds it now */
	enum ownership owner[NODES_MAX];
	struct lock_fields lock[NODES_MAX];
	int64_t replied_us[NODES_MAX]; /* when the reply was received */
	int64_t connection[NODES_MAX]; /* the connection it was received on */
	bool asked[NODES_MAX];	       /* the node has replied that the holder is asked to end */
	char *holds; /* room for ROUND_HOLDS bytes: the holds that the nodes returned, separated by spaces; or NULL */
	char asked_by[OWNER_MAX + 1]; /* the owner who asked, as the last of those nodes said; valid if there is one */
	struct node_error error[NODES_MAX];
};

/*
 * Start a round: send the command to all nodes.  The caller has set `holds`.  The nodes must outlive the round.  A
 * round that was in progress in this struct is ended.
 */
void nodes_round_start(struct round *, struct nodes *, const struct command *);

/* Start a round and wait, with that patience, until the limit at the latest. */
void nodes_round_run(struct round *, const struct command *, struct waiting *);

/* It is over when it is decided, and all nodes have replied that were not unresponsive when it began. */
enum standing nodes_round_standing(const struct round *);

/*
 * The outcome, in *ownership too.  ST_OK: a majority replied "ours".  ST_NO: nodes_round_refused(); ST_NO_QUORUM: the
 * replies differ; otherwise see nodes_no_quorum().
 */
enum status nodes_round_outcome(const struct round *, enum ownership *, struct err *);

/* The error that the lock is not ours, by the nodes that replied so.  Returns ST_NO. */
enum status nodes_round_refused(const struct round *, enum ownership *, struct err *);

/* End the wait for replies: nodes that have not replied are marked as unresponsive. */
void nodes_round_close(struct round *);

/* The same, and cancel pending completions, so that the round may be freed. */
void nodes_round_end(struct round *);

/* -- The error if there is no quorum ------------------------------------------ */

/*
 * Explain why there was no majority of votes: with one node, its error; otherwise how many nodes voted, and the error
 * of each node that did not.  Nodes with neither vote nor error are reported as unresponsive if the deadline has passed
 * (the ballot is closed), otherwise as not waited for.
 *
 * ST_DENIED: the refusals alone prevent a majority.  ST_SYSTEM: there might have been a majority if this host did not
 * lack a resource.  Otherwise ST_NO_QUORUM.
 */
enum status nodes_no_quorum(const struct nodes *, const struct ballot *, const struct node_error error[NODES_MAX],
    struct err *);

/*
 * Explain why an attempt ended with this step.  ST_HELD: somebody holds the lock, or several contend for it.  ST_USAGE:
 * two nodes are the same server, so that waiting is useless.  Otherwise as for nodes_no_quorum().  Errors of nodes
 * whose fences were refused are set.
 */
enum status nodes_explain(const struct nodes *, const struct attempt *, enum attempt_step,
    struct node_error error[NODES_MAX], struct err *);

#endif
