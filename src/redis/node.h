/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_REDIS_NODE_H
#define DLOCK_REDIS_NODE_H
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "redis/command.h"
#include "redis/server.h"

/*
 * A node, which has one vote: a Redis server, the primary that sentinels name, or a Redis Cluster.
 *
 * A node finds the server for a request, connects to it, follows redirections, and looks for the server again after
 * failures.  A request whose connection was closed is sent once more on a new one, since an idle connection may have
 * been closed long before.  Each request gets exactly one completion, with a reply or a failure, unless it is cancelled
 * or the node is closed.  A node does not interpret replies for the lock.
 */
struct node; /* opaque */

/*
 * Runs once for each request, from the loop, and not from inside a function of the node, except as node_send() says.
 * It may send requests, but must not close nodes.
 */
typedef void node_completion(void *context, int node, const struct result *);

struct node_options {
	struct loop *loop;
	const struct log *log;
	int number;	    /* passed to completions */
	bool *unresponsive; /* set to false by each reply */
};

/* NULL: out of memory. */
struct node *node_open(const struct url *, const struct node_options *);

/* Open a further connection to the same server, or service, as the same user.  NULL: out of memory. */
struct node *node_open_second(const struct node *);

/* Are the two connected to different servers of the service, as after a failover that one of them has not noticed? */
bool node_differs(const struct node *, const struct node *second);

/*
 * Close and free the node.  Queued output is written as far as that is possible without blocking; completions do not
 * run.  node_close(NULL) does nothing.
 */
void node_close(struct node *);

const char *node_name(const struct node *);
const struct url *node_url(const struct node *);

/*
 * Send a request, after all that were sent before.  Failures are reported by the completion, too; it runs at once if
 * there is no room left, not even to post the failure.
 */
void node_send(struct node *, const struct command *, node_completion *, void *context);

/* Cancel the completions with this context: they do not run.  Their requests are still sent. */
void node_cancel(struct node *, const void *context);

/*
 * Close a connection on which replies are pending, so that the next request goes out on a new one.  All pending
 * requests fail, those that wait for a connection too.
 */
void node_disconnect(struct node *);

/*
 * Close a connection that is not established yet; the requests that wait for it fail.  in_time: the deadline has not
 * passed yet.
 */
void node_stop_connecting(struct node *, bool in_time);

/*
 * Is a reply expected to take longer than usual: by host name, under TLS, or from a service whose server must be found?
 */
bool node_takes_long(const struct node *);

/* The connection to its server; one that is closed if there is none.  The loop notices when a server closes it. */
const struct channel *node_channel(const struct node *);

/*
 * Do requests still depend on this process, since they are unsent, buffered or being resent?  Otherwise they reach the
 * server even if nobody waits for the replies, see server_flushed(); or it can't be reached, and is tried again later.
 */
bool node_needs_us(const struct node *);

/* Is a request being resent because the server closed a connection or was not ready, and is it possibly reachable? */
bool node_resends(const struct node *);

/* The number of its servers that own keys, as far as known: 1, except for a Cluster. */
int node_parts(const struct node *);

/* Why there is no reply yet, as a sentence without the node's name. */
const char *node_waits_for(const struct node *);

#endif
