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
 * All nodes of a service, in one loop.  A round is the sending of one request to several of them, and the wait for their
 * replies under one deadline.
 */
struct nodes {
	int count;
	struct node *node[NODES_MAX];
	bool unresponsive[NODES_MAX]; /* it left a round without a reply, and has not replied to anything since */
	struct node *second;	      /* one more connection to a node, for a request that blocks there; NULL: none */
	int second_of;		      /* to this one */
	int64_t node_timeout_us;      /* the time that one round may take */
	struct loop loop;
	struct log log;
};

/*
 * Begin a round: a node that left the last one without a reply gets a new connection, since what is wrong may be the
 * connection.  Requests that wait for a reply there fail, and their completions run.
 */
void nodes_begin_round(struct nodes *);

/* See node_send().  Completions run in nodes_turn(), and where a function says so. */
void nodes_send(struct nodes *, int node, const struct command *, node_completion *, void *context);
void nodes_send_all(struct nodes *, const struct command *, node_completion *, void *context);

/* The completions with this context don't run any more: what it points to may go.  Their requests are still sent. */
void nodes_cancel(struct nodes *, const void *context);

/* What waits for a connection that isn't established yet is not sent: it fails, and its completions run.  `in_time`: there was time left. */
void nodes_stop_connecting(struct nodes *, bool in_time);

/* Open a second connection to a node, in place of the one that there may be.  False: out of memory. */
bool nodes_open_second(struct nodes *, int node);

/* Close it; the completions of its requests don't run.  Does nothing if there is none. */
void nodes_close_second(struct nodes *);

/* Does it lead to another server of its node than the first connection does now? */
bool nodes_second_differs(const struct nodes *);

/* Completions get the node's number, like those of the first connection. */
void nodes_send_second(struct nodes *, const struct command *, node_completion *, void *context);

/* See loop_turn(). */
enum loop_event nodes_turn(struct nodes *, int64_t until_us, int interrupt_fd);

void nodes_close(struct nodes *);

#endif
