/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_REDIS_SERVER_H
#define DLOCK_REDIS_SERVER_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/channel.h"
#include "redis/reply.h"
#include "redis/url.h"

/*
 * One server: a connection, and the requests on it that have no reply yet.
 *
 * The connection is made when a request is sent and there is none.  AUTH and SELECT are sent before the first request,
 * in the same write.  Replies are matched to requests in the order in which these were sent.  Each request gets exactly
 * one result.  If WAIT was sent with it and its reply reports a write, the result has the reply to WAIT as well.
 */
struct command;

/* The outcome of a request. */
struct result {
	struct reply *reply;	/* NULL: there is none */
	int64_t connection;	/* the connection it was received on, the `began_us` of its channel */
	struct failure failure; /* why there is no reply; or, with a reply, why what was written may be lost */
};

/* A request.  The sender embeds this struct and keeps it valid until the task has run. */
struct pending {
	struct task task;     /* runs when there is a result */
	struct pending *next; /* in the order sent */
	void *owner;	      /* the code that embeds this may use it */
	bool asking;	      /* ASKING is sent before it; set to false by the reply to that */
	bool waits;	      /* WAIT was sent with it; set to false if its reply reports no write to wait for */
	bool impatient;	      /* fails if an idle connection stays silent for half of the node timeout */
	uint64_t begins;      /* offset of its first byte in the output */
	struct result result; /* the code that runs the task frees the reply */
};

/*
 * Called from the loop when the connection has failed.  `first` is the list of all requests without a result, in the
 * order sent, with their failures set; NULL if there are none.  The callee posts their tasks, or sends the requests
 * again.
 */
typedef void server_disconnected(void *context, struct pending *first);

struct server {
	struct channel channel;
	struct parser *parser;
	struct pending *first;	/* sent, without a result */
	int logins;		/* replies to AUTH and SELECT that are pending; they were sent before any request */
	int ignored;		/* replies to WAIT that come next and that nobody waits for */
	struct failure refusal; /* of the login; requests fail with it, though the connection may work */
	int64_t sent_us;	/* when a request was last sent */
	bool doubtful;		/* the oldest request was sent after the connection had been idle */
	bool ended;		/* the last connection was established, and is closed now */
	unsigned int version;	/* of the shared password, that it logged in with */

	/* Set by the owner before server_open(). */
	struct loop *loop;		   /* tasks are posted there */
	server_disconnected *disconnected; /* NULL: the requests of a connection that fails fail, too, and are posted */
	void *context;
	struct url url; /* without its seeds */
};

/* Initialize it. */
void server_open(struct server *);

/*
 * Close the connection and leave the loop.  Queued output is written as far as that is possible without blocking.  The
 * tasks of requests without a result do not run; tasks that have been posted already still do.  The struct may then be
 * freed, or opened again.
 */
void server_close(struct server *);

/* Send a request.  The bytes are copied.  NULL: the caller was out of memory; the connection then fails with LOCAL. */
void server_send(struct server *, struct pending *, const char *bytes, size_t length);
void server_send_command(struct server *, struct pending *, const struct command *);

/*
 * Close the connection if it is in this state, CHANNEL_OPEN or CHANNEL_CONNECTING, and has requests without a result,
 * so that the next request goes out on a new one.  The requests fail: their tasks are posted.  in_time: the deadline
 * has not passed yet.
 */
void server_give_up(struct server *, enum channel_state, bool in_time);

/*
 * Close the connection if the server has closed it while it was idle, before a request is lost on it.  This is checked
 * only after a pause in its use.
 */
void server_check_idle(struct server *);

/* Was the request refused because the server wants another login? */
bool server_wants_login(const struct result *);

/* Did the request fail because the server has closed the connection, or accepts none? */
bool server_was_closed(const struct result *);

/*
 * Will all requests reach the server even if nobody waits for the replies?  The output must have been written.  Under
 * TLS the replies must have been received as well: if a socket is closed before the server's session tickets have been
 * read, data that was sent may be lost.  The same holds for a connection that had been idle, since the server may have
 * closed it.  Also true if there is no connection, or if the server takes no more data.
 */
bool server_flushed(const struct server *);

#endif
