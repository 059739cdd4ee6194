/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_REDIS_CLIENT_H
#define DLOCK_REDIS_CLIENT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/reason.h"
#include "net/loop.h"
#include "redis/reply.h"
#include "redis/url.h"

/*
 * One server: a connection that never blocks, and the pipeline of requests on it that have no reply yet.
 *
 * It connects when it is given something to send.  AUTH and SELECT go out in front of the first request, in one write
 * with it.  Requests are answered first in, first out.  Each of them gets exactly one reply or failure.
 */
struct client; /* opaque */

/* Why a request has no reply. */
enum failure {
	FAILED, /* no connection, a broken one, or none in time */
	DENIED, /* the server refused AUTH or SELECT, in its own words; what followed may have been executed */
	LOCAL	/* this host lacks something */
};

/* A request in the pipeline.  Whoever sends it embeds this and keeps it until the task has run. */
struct pending {
	struct task task;     /* run when there is a reply or a failure */
	struct pending *next; /* in the pipeline */
	int skip;	      /* replies that come before its own, to be ignored */
	uint64_t begins;      /* its place among the bytes that go out */
	struct reply *reply;  /* whoever runs the task frees it; NULL: a failure */
	int64_t connection;   /* a reply: by which it came, see client_connection() */
	enum failure failure;
	bool sent;	      /* a failure: a byte of it has left this host, so that the server may have executed it */
	bool closed;	      /* a failure: the server has closed the connection, or accepts none */
	bool disconnected;    /* a failure of a connection that had been established */
	struct reason reason; /* of the failure, without the node's name */
};

/*
 * The connection has failed.  Gets all requests without a reply, in their order, with `failure` and `reason` filled in.  It
 * posts their tasks, or sends them once more.  It runs from the loop.
 */
typedef void client_disconnected(void *context, struct pending *first);

/* For the server of a URL, which is copied.  NULL if there is no memory. */
struct client *client_open(struct loop *, const struct url *, client_disconnected *, void *context);

/*
 * Close and free.  What can be written at once is written; requests without a reply are left to their owners, their tasks
 * don't run.  client_close(NULL) does nothing.
 */
void client_close(struct client *);

/* Send a request.  The bytes are copied; NULL for bytes that there was no memory for. */
void client_send(struct client *, struct pending *, const char *bytes, size_t length);

/*
 * Give up a connection that has requests without a reply, so that the next request goes out on a new one.  Their tasks are
 * posted with failures.
 */
void client_disconnect(struct client *);

/* Give up a connection that isn't established yet, in time or too late, likewise. */
void client_stop_connecting(struct client *, bool in_time);

/*
 * Has the server closed the connection while nobody used it?  Then it is given up, before a request is lost on it.  Looks
 * only after a pause.
 */
void client_check_idle(struct client *);

/* Which of its connections is this?  No two have the same number.  0: none is established. */
int64_t client_connection(const struct client *);

/* Has the request failed because the server has closed the connection, or accepts none? */
bool client_was_closed(const struct pending *);

/* Has it been connected, and isn't any more? */
bool client_ended(const struct client *);

/* Does it take longer than others to get a reply: to connect by name, or for a TLS handshake? */
bool client_takes_long(const struct client *);

/* How long the last connection took to be established, an upper bound; 0: there was none. */
int64_t client_connect_us(const struct client *);

/*
 * Will everything arrive that it was given, though nobody waits for the replies?  It must have left this host.  Under TLS
 * it must be answered as well: a socket that is closed before the server's session tickets were read takes what was
 * sent with it.  So it must on a connection that had been idle, which the server may have closed.
 */
bool client_flushed(const struct client *);

/* Why there is no reply yet, as a sentence without the node's name. */
const char *client_waits_for(const struct client *);

#endif
