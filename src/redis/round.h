/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_REDIS_ROUND_H
#define DLOCK_REDIS_ROUND_H
#include <stdbool.h>
#include <stdint.h>

#include "redis/answer.h"
#include "redis/nodes.h"

/*
 * A round about one token: the answers of all nodes to a script that says 1 (ours), 2 (ours still), 0 (another's) or -1
 * (nobody's).
 */
struct round {
	struct nodes *nodes;
	struct ballot ballot; /* yes: ours; no: not ours, whoever has it now */
	enum ownership owner[NODES_MAX];
	int64_t server_ms[NODES_MAX];  /* the server's time of day, where the script tells it */
	int64_t ttl_ms[NODES_MAX];     /* the lease's length, likewise */
	int64_t fence[NODES_MAX];      /* likewise */
	int64_t heard_us[NODES_MAX];   /* when it was told, */
	int64_t connection[NODES_MAX]; /* and by which connection */
	char holds[4096];	       /* what the nodes told of a lock that was entered again, one behind the other */
	struct node_error error[NODES_MAX];
};

/* Send the command to all nodes.  The nodes must outlive the round; whatever it was before is ended. */
void round_start(struct round *, struct nodes *, const struct command *);

/* Has every node answered that wasn't silent in the round before? */
bool round_heard(const struct round *);

/* Has the lock ended with this hold, on a majority of the nodes? */
enum ownership round_released(const struct round *);

/* Whose the lock is, by most of the nodes that answered "not ours". */
enum ownership round_ownership(const struct round *);

/* The time for answers is over: remember who was silent. */
void round_close(struct round *);

/* Its replies don't matter any more: it may go. */
void round_end(struct round *);

#endif
