/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_REDIS_PIPELINE_H
#define DLOCK_REDIS_PIPELINE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "net/loop.h"
#include "redis/reply.h"

/*
 * The pipeline of a connection: the requests on it that have no reply yet.  It does no I/O.
 *
 * Replies are matched to requests in the order in which these were sent.  Each request gets exactly one reply or
 * failure.  If WAIT was sent with it and its reply reports a write, it also gets the reply to WAIT.
 */
/* Why a request failed. */
enum failure {
	FAILED, /* no connection, a broken one, or no reply in time */
	DENIED, /* refused by the server (AUTH, SELECT, TLS), in its own words; later requests may have been executed */
	LOCAL	/* this host lacks a resource, such as memory */
};

/* A request in the pipeline.  The sender embeds this struct and keeps it valid until the task has run. */
struct pending {
	struct task task;     /* runs when there is a reply or a failure */
	struct pending *next; /* in the pipeline */
	void *owner;	      /* whoever embeds this may use it */
	int skip;	      /* number of replies before its own, to be ignored */
	bool waits;	      /* WAIT was sent with it; set to false if its reply reports no write to wait for */
	bool impatient;	      /* fails if an idle connection stays silent for half of the node timeout */
	uint64_t begins;      /* offset of its first byte in the output */
	struct reply *reply;  /* the task frees it; NULL: failure */
	int64_t replicas;     /* reply, waits: number of replicas that have the write; -1: not known, see `reason` */
	int64_t connection;   /* reply: the connection it was received on, see client_connection() */
	enum failure failure;
	bool sent;	      /* failure: a byte of it was written, so the server may have executed it */
	bool closed;	      /* failure: the server has closed the connection, or accepts none */
	bool disconnected;    /* failure: the connection had been established */
	struct reason reason; /* failure: why, without the node's name */
};

/* The result of a request.  Valid until the completion returns. */
struct result {
	const struct reply *reply; /* NULL: failure */
	enum failure failure;
	bool sent;	    /* failure: a byte of the request was written, so it may have been executed */
	bool disconnected;  /* failure: the connection had been established */
	int64_t connection; /* reply: the connection it was received on, for command.connection */
	bool unconfirmed;   /* reply: the write may be lost, since too few replicas have it */
	const char *reason; /* why it failed or is unconfirmed, without the node's name */
};

struct pipeline {
	struct loop *loop;	      /* tasks are posted there */
	const char *name;	      /* put in front of reasons; NULL: nothing */
	struct parser *parser;	      /* NULL: closed */
	struct pending *first, *last; /* sent, without a reply */
	int logins;	    /* replies to AUTH and SELECT that are pending; these were sent before any request */
	int ignored;	    /* replies to WAIT that come next and that nobody waits for */
	bool replied;	    /* a reply was received on this connection */
	bool reached;	    /* the connection was established */
	int64_t connection; /* its number, see struct pending */

	/* Why the requests fail.  The owner sets these when the connection fails. */
	bool failed;
	bool local;  /* because this host lacks a resource */
	bool closed; /* the server has closed it, or accepts none */
	bool denied; /* the server refused the login, though the connection may still be usable */
	struct reason reason;
};

/* Begin with a new connection: no requests, no failure.  False: out of memory. */
bool pipeline_open(struct pipeline *, int64_t connection);

/* Add a request that is sent now. */
void pipeline_add(struct pipeline *, struct pending *);

/* Is any reply pending? */
bool pipeline_is_busy(const struct pipeline *);

/* Match received bytes.  The tasks of requests that are complete are posted.  `failed` is set if the bytes are not those of Redis. */
void pipeline_feed(struct pipeline *, const char *bytes, size_t length);

/* The connection has failed. */
void pipeline_fail(struct pipeline *, const char *why);
void pipeline_fail_locally(struct pipeline *, const char *why);

/*
 * End the pipeline of a connection on which so many bytes were written.  Returns the list of the requests without a
 * reply, in the order sent, with their failures set.
 */
struct pending *pipeline_close(struct pipeline *, uint64_t written);

#endif
