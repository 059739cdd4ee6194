/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_REDIS_ERRORS_H
#define DLOCK_REDIS_ERRORS_H
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/reason.h"
#include "lock/quorum.h"
#include "redis/nodes.h"

/* Why a node has no vote: translation of server errors to messages. */
struct node_error {
	bool is;
	bool denied;	 /* it refuses us permanently: login, ACL */
	bool local;	 /* not the node's fault: this host lacks a resource */
	bool guarded;	 /* it has started too recently, see --restart-guard */
	int64_t left_ms; /* if guarded: the longest time until it grants locks again */
	bool moved;	 /* it replied MOVED: another server of its Cluster has the slot */
	int duplicate;	 /* number, from 1, of the node that is the same server, as reported by this one; 0: none */
	struct reason reason; /* without the node's name */
};

/* Clear the errors of all nodes. */
void error_clear(struct node_error *, int nodes);

void error_set(struct node_error *, bool denied, const char *sentence);

/* The server has been up for up_s seconds, and its vote counts only from guard_s on. */
void error_set_guarded(struct node_error *, int64_t up_s, int64_t guard_s);

/* Translate an error reply of a server, which may be any text. */
void error_set_error(struct node_error *, const char *text);

/* The server sent a reply that no Redis would send. */
void error_set_unexpected(struct node_error *);

/* The server's SCAN does not end. */
void error_set_endless(struct node_error *);

/* Append to an error which nodes have started too recently. */
void error_add_guarded(const struct nodes *, const struct node_error error[NODES_MAX], struct err *);

/*
 * Explain why there was no majority of votes: with one node, its error; otherwise how many nodes voted, and the error
 * of each node that did not.  Nodes with neither vote nor error are reported as unresponsive if the deadline has passed
 * (`closed`), otherwise as not waited for.
 *
 * ST_DENIED: the refusals alone prevent a majority.  ST_SYSTEM: there might have been a majority if this host did not
 * lack a resource.  Otherwise ST_NO_QUORUM.
 */
enum status error_no_quorum(const struct nodes *, const enum vote vote[NODES_MAX],
    const struct node_error error[NODES_MAX], bool closed, struct err *);

#endif
