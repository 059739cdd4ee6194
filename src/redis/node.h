/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_REDIS_NODE_H
#define DLOCK_REDIS_NODE_H
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "redis/conn.h"
#include "redis/request.h"
#include "redis/url.h"

/*
 * What has one vote: a Redis server, the master that sentinels name, or a Redis Cluster.
 *
 * A node finds the server that a request is for, connects to it, goes where the server sends it, and looks again after
 * failures.  A request whose connection is closed is sent once more on a new one, as an idle connection may have been
 * closed long ago.  Requests are answered, each exactly once: by a reply or by a failure.  What the answers mean is not a
 * node's business.
 */
struct node; /* opaque */

/* `password` is used where the URL has none; "" for none.  NULL if there is no memory. */
struct node *node_open(const struct url *, const char *password);

/* One more connection to the same server, or service, as the same user.  NULL if there is no memory. */
struct node *node_twin(const struct node *);

/* Are the two connected to different servers of the service, as after a failover of which one has not heard? */
bool node_parted(const struct node *, const struct node *twin);

/* Close and free.  Whatever was given to it and can be written at once is on its way.  node_close(NULL) does nothing. */
void node_close(struct node *);

const char *node_name(const struct node *);
const struct url *node_url(const struct node *);

/* Queue a request.  Never fails at once: failures are delivered like answers. */
void node_send(struct node *, unsigned int tag, const struct request *);

/* What poll(2) must wait for (-1: nothing), and the instant at which node_handle() wants to be called anyway. */
int node_fd(const struct node *);
short node_events(const struct node *);
int64_t node_wake_us(const struct node *);

/* Go on: poll said something, or the wake instant has come. */
void node_handle(struct node *, int64_t now_us);

/* Take the next answer.  False if there is none yet. */
bool node_take(struct node *, struct delivery *);

/*
 * Give up a connection on which answers are outstanding, so that the next request goes out on a new one.  They become
 * failures, to be taken before anything is sent.
 */
void node_break(struct node *);

/* Give up a connection that isn't there yet, in time or too late; what waits for it becomes failures, unsent. */
void node_stop_dialling(struct node *, bool in_time);

/* Does it take longer than others to get an answer: by a name, under TLS, from a service whose server is to be found? */
bool node_takes_long(const struct node *);

/* What a new connection to its server takes, as far as is known, see conn_dial_us(). */
int64_t node_dial_us(const struct node *);

/*
 * Does all that it was given arrive, though nobody waits for the answer?  It must have left this host, and be answered
 * where that is not enough, see conn_flushed().
 */
bool node_flushed(const struct node *);

/* Is a request being sent again to a server that has closed a connection, and may be reached? */
bool node_resends(const struct node *);

/* Of how many servers with keys of their own it consists, as far as is known: 1, but for a Cluster. */
int node_parts(const struct node *);

/* What a node that hasn't answered is waiting for, as a sentence without the node's name. */
const char *node_silence(const struct node *);

#endif
