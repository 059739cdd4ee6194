/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_REDIS_ERRORS_H
#define DLOCK_REDIS_ERRORS_H
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/reason.h"
#include "lock/quorum.h"
#include "redis/nodes.h"

/*
 * Why a node has no vote: what errors of servers mean, in our words.
 */
struct node_error {
	bool is;
	bool denied;	 /* it refused us, not only now: login, ACL */
	bool local;	 /* not its own: this host lacks something */
	bool guarded;	 /* it has started too recently, see --restart-guard; */
	int64_t left_ms; /* then: how long it grants nothing yet, at the most */
	bool moved;	 /* it says that another server of its Cluster has the slot */
	int duplicate;	 /* the number, from 1 on, of the node that is the same server, as this one says; 0: none */
	struct reason reason; /* without the node's name */
};

/* No node has one. */
void error_clear(struct node_error *, int nodes);

void error_set(struct node_error *, bool denied, const char *sentence);

/* A server that is up for so many seconds is trusted only from guard_s on. */
void error_set_guarded(struct node_error *, int64_t up_s, int64_t guard_s);

/* What a server's error says, which may be anything. */
void error_set_error(struct node_error *, const char *text);

/* A reply that no Redis would send. */
void error_set_unexpected(struct node_error *);

/* A server whose list of keys never ends. */
void error_set_endless(struct node_error *);

/* Say behind the rest of an error which nodes have started too recently. */
void error_add_guarded(const struct nodes *, const struct node_error error[NODES_MAX], struct err *);

/*
 * Explain that no majority could answer: the one node's error, or how many of how many answered and every error.
 * Nodes without a vote and without a error have been silent, or, where the time wasn't over (`closed`), not waited for.
 * ST_DENIED where the refusals alone prevent a majority, ST_SYSTEM where without what this host lacks there might have
 * been one, else ST_NO_QUORUM.
 */
enum status error_no_quorum(const struct nodes *, const enum vote vote[NODES_MAX],
    const struct node_error error[NODES_MAX], bool closed, struct err *);

#endif
