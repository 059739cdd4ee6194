/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_REDIS_ROUND_H
#define DLOCK_REDIS_ROUND_H
#include <stdbool.h>
#include <stdint.h>

#include "redis/answer.h"
#include "redis/nodes.h"

/*
 * A round about one token: the replies of all nodes to a script that returns 1 (ours), 2 (our hold has ended, others
 * have not), 0 (another's) or -1 (nobody's).
 */
struct round {
	struct nodes *nodes;
	struct ballot ballot; /* yes: ours; no: not ours, whoever holds it now */
	enum ownership owner[NODES_MAX];
	int64_t server_ms[NODES_MAX];  /* the server's time of day, if the script returns it */
	int64_t ttl_ms[NODES_MAX];     /* the length of the lease, likewise */
	int64_t fence[NODES_MAX];      /* likewise */
	int64_t replied_us[NODES_MAX]; /* when the reply was received */
	int64_t connection[NODES_MAX]; /* the connection it was received on */
	char holds[4096];	       /* the holds that the nodes returned, separated by spaces */
	struct node_error error[NODES_MAX];
};

/*
 * Start a round: send the command to all nodes.  The nodes must outlive the round.  A round that was in progress in
 * this struct is ended.
 */
void round_start(struct round *, struct nodes *, const struct command *);

/* Have all nodes replied that were not unresponsive when the round began? */
bool round_heard(const struct round *);

/* OWNED if the whole lock was released with this hold on a majority of the nodes, otherwise OWNED_STILL. */
enum ownership round_released(const struct round *);

/*
 * Who owns the lock, by the nodes that replied "not ours": OWNED_BY_ANOTHER if most of them say so, else OWNED_NO_MORE
 * if any does, else OWNED_BY_NOBODY.
 */
enum ownership round_ownership(const struct round *);

/* End the wait for replies: nodes that have not replied are marked as unresponsive. */
void round_close(struct round *);

/* Cancel pending completions, so that the round may be freed. */
void round_end(struct round *);

#endif
