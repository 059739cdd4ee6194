/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_REDIS_CLIENT_H
#define DLOCK_REDIS_CLIENT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/loop.h"
#include "redis/pipeline.h"
#include "redis/url.h"

/*
 * The client side of one server: a non-blocking connection, and the pipeline of requests on it that have no reply yet.
 *
 * The connection is made when a request is sent and there is none.  AUTH and SELECT are sent before the first request,
 * in the same write.
 */
struct client; /* opaque */
struct command;

/*
 * Called from the loop when the connection has failed.  `first` is the list of all requests without a reply, in the
 * order sent, with `failure` and `reason` set; NULL if there are none.  The callee posts their tasks, or sends the
 * requests again.
 */
typedef void client_disconnected(void *context, struct pending *first);

/*
 * Create a client for the server of a URL, which is copied.  Without a callback the requests of a connection that fails
 * fail, too: their tasks are posted.  NULL: out of memory.
 */
struct client *client_open(struct loop *, const struct url *, client_disconnected *, void *context);

/*
 * Close the connection and free the client.  Queued output is written as far as that is possible without blocking.  The
 * tasks of requests without a reply do not run; tasks that have been posted already still do.  client_close(NULL) does
 * nothing.
 */
void client_close(struct client *);

/* Send a request.  The bytes are copied.  NULL: the caller was out of memory; the connection then fails with LOCAL. */
void client_send(struct client *, struct pending *, const char *bytes, size_t length);
void client_send_command(struct client *, struct pending *, const struct command *);

/*
 * Close an established connection if it has requests without a reply, so that the next request goes out on a new one.
 * The requests fail: their tasks are posted.
 */
void client_disconnect(struct client *);

/*
 * Close a connection that is not established yet; its requests fail likewise.  in_time: the deadline has not passed
 * yet.
 */
void client_stop_connecting(struct client *, bool in_time);

/*
 * Close the connection if the server has closed it while it was idle, before a request is lost on it.  This is checked
 * only after a pause in its use.
 */
void client_check_idle(struct client *);

/* See stream_local(). */
const char *client_local(const struct client *);

/* The number of the current connection.  Each connection has a different number.  0: none is established. */
int64_t client_connection(const struct client *);

/* Did the request fail because the server has closed the connection, or accepts none? */
bool client_was_closed(const struct pending *);

/* Was the last connection established, and is it closed now? */
bool client_ended(const struct client *);

/* Is a reply expected to take longer than usual: because of TLS, or while it connects by host name? */
bool client_takes_long(const struct client *);

/* How long the last connection took to be established, in microseconds, as an upper bound; 0: there was none. */
int64_t client_connect_us(const struct client *);

/*
 * Will all requests reach the server even if nobody waits for the replies?  The output must have been written.  Under
 * TLS the replies must have been received as well: if a socket is closed before the server's session tickets have been
 * read, data that was sent may be lost.  The same holds for a connection that had been idle, since the server may have
 * closed it.  Also true if there is no connection, or if the server takes no more data.
 */
bool client_flushed(const struct client *);

/* Why there is no reply yet, as a sentence without the node's name. */
const char *client_waits_for(const struct client *);

#endif
