/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_REDIS_NODE_H
#define DLOCK_REDIS_NODE_H
#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"
#include "redis/client.h"
#include "redis/command.h"

/*
 * What has one vote: a Redis server, the primary that sentinels name, or a Redis Cluster.
 *
 * A node finds the server that a request is for, connects to it, follows redirections, and looks for the server again
 * after failures.  A request whose connection was closed is sent once more on a new one, since an idle connection may
 * have been closed long ago.  Each request gets exactly one completion, with a reply or a failure.  What replies mean is
 * not a node's business.
 */
struct node; /* opaque */

/* What became of a request.  It is valid until the completion returns. */
struct result {
	const struct reply *reply; /* NULL: a failure */
	enum failure failure;
	bool sent;	    /* a failure: a byte of the request has left this host, so that it may have been executed */
	bool disconnected;  /* a failure of a connection that had been established */
	int64_t connection; /* a reply: by which connection it came, for command.connection */
	bool unconfirmed;   /* a reply: what was written may be lost, since too few replicas have it */
	const char *reason; /* of the failure, or why it is unconfirmed, without the node's name */
};

/*
 * Runs once for each request, from the loop, never from inside a function of the node.  It may send requests, and it must
 * not close nodes.
 */
typedef void node_completion(void *context, int node, const struct result *);

struct node_options {
	struct loop *loop;
	const struct log *log;
	int number;	      /* what completions get */
	bool *unresponsive;   /* set to false by each reply */
	const char *password; /* used where the URL has none; "" for none */
};

/* NULL if there is no memory. */
struct node *node_open(const struct url *, const struct node_options *);

/* A node for one more connection to the same server, or service, as the same user.  NULL if there is no memory. */
struct node *node_open_second(const struct node *);

/* Are the two connected to different servers of the service, as after a failover of which one has not heard? */
bool node_differs(const struct node *, const struct node *second);

/* Close and free.  What can be written at once is written; completions don't run.  node_close(NULL) does nothing. */
void node_close(struct node *);

const char *node_name(const struct node *);
const struct url *node_url(const struct node *);

/* Send a request, behind all that were sent before.  Failures, too, come as completions. */
void node_send(struct node *, const struct command *, node_completion *, void *context);

/* The completions with this context don't run any more.  Their requests are still sent. */
void node_cancel(struct node *, const void *context);

/*
 * Give up a connection on which replies are outstanding, so that the next request goes out on a new one.  The requests
 * fail.
 */
void node_disconnect(struct node *);

/* Give up a connection that isn't established yet, in time or too late; the requests that wait for it fail. */
void node_stop_connecting(struct node *, bool in_time);

/* Does it take longer than others to get a reply: by name, under TLS, from a service whose server must be found? */
bool node_takes_long(const struct node *);

/* How long a new connection to its server takes, as far as is known; 0: not known. */
int64_t node_connect_us(const struct node *);

/* Will everything arrive that it was given, though nobody waits for the replies?  See client_flushed(). */
bool node_flushed(const struct node *);

/* Is a request being sent again to a server that has closed a connection, and may be reached? */
bool node_resends(const struct node *);

/* Of how many servers with keys of their own it consists, as far as is known: 1, except for a Cluster. */
int node_parts(const struct node *);

/* Why there is no reply yet, as a sentence without the node's name. */
const char *node_waits_for(const struct node *);

#endif
