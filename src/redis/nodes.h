/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_REDIS_NODES_H
#define DLOCK_REDIS_NODES_H
#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"
#include "lock/quorum.h"
#include "net/loop.h"
#include "redis/node.h"

/*
 * All nodes of a service, in one event loop.  In a round, one request is sent to several nodes, and their replies are
 * awaited until one deadline.
 */
struct nodes {
	int count;
	struct node *node[NODES_MAX];
	bool unresponsive[NODES_MAX]; /* it left a round without a reply, and has not replied to anything since */
	struct node *second;	      /* a second connection to a node, for a blocking request; NULL: none */
	int second_of;		      /* the node of that connection */
	int64_t node_timeout_us;      /* the time that one round may take */
	struct loop loop;
	struct log log;
};

/*
 * Begin a round.  A node that left an earlier round without a reply, and has not replied since, gets a new connection,
 * since the connection may be the problem.  Its pending requests fail, and
 * their completions run.
 */
void nodes_begin_round(struct nodes *);

/* See node_send().  Completions run in nodes_turn(), and where a function says so. */
void nodes_send(struct nodes *, int node, const struct command *, node_completion *, void *context);
void nodes_send_all(struct nodes *, const struct command *, node_completion *, void *context);

/*
 * Cancel the completions with this context: they do not run, and the context may be freed.  The requests are still
 * sent.
 */
void nodes_cancel(struct nodes *, const void *context);

/*
 * Requests that wait for a connection fail and are not sent; their completions run.  in_time: the deadline has not
 * passed yet.
 */
void nodes_stop_connecting(struct nodes *, bool in_time);

/* Open a second connection to a node, and close the previous second connection, if any.  False: out of memory. */
bool nodes_open_second(struct nodes *, int node);

/* Close the second connection.  The completions of its requests do not run.  Does nothing if there is none. */
void nodes_close_second(struct nodes *);

/* Is it connected to another server of its node than the first connection is now? */
bool nodes_second_differs(const struct nodes *);

/* Send a request on the second connection.  Completions get the node's number, as on the first connection. */
void nodes_send_second(struct nodes *, const struct command *, node_completion *, void *context);

/* See loop_turn(). */
enum loop_event nodes_turn(struct nodes *, int64_t until_us, int interrupt_fd);

void nodes_close(struct nodes *);

#endif
