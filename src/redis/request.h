/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_REDIS_REQUEST_H
#define DLOCK_REDIS_REQUEST_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "redis/client.h"
#include "redis/command.h"
#include "redis/topology.h"

/*
 * The requests that a node has been given and that have no completion yet, and the decision whether one of them is sent
 * again: after a redirection, or after its connection has failed.
 */
enum {
	REQUESTS_MAX = 64,		 /* further ones fail at once */
	REQUESTS_ROOM = 2 * REQUESTS_MAX /* including those that fail */
};

enum request_state {
	REQUEST_QUEUED, /* its server is not known or not connected yet */
	REQUEST_SENT,
	REQUEST_FINISHED /* its failure has been posted, or its completion is running */
};

struct request {
	struct pending pending; /* first: a struct task * is converted to this */
	struct request *next;	/* in the list */
	enum request_state state;
	void (*completion)(void *context, int node, const struct result *); /* NULL: cancelled */
	void *context;
	char *bytes; /* with WAIT, if replicas must confirm it; NULL: out of memory */
	size_t length;
	size_t again; /* offset of the digit of command_add_again(); 0: none */
	struct target target;
	bool once, keeps_trying; /* see struct command */
	bool waits;		 /* WAIT is at the end of the bytes */
	int64_t connection;	 /* likewise */
	bool resent;		 /* it was queued again by request_resend() */
	bool written;		 /* a byte of it was written on a connection that has failed */
	int redirects;
	bool postponed;	       /* `reason` of the pending says why */
	bool unreachable;      /* postponed without a reply from a server */
	int64_t not_before_us; /* 0: as soon as possible */
};

/* To initialize, set all but `room` to zero. */
struct requests {
	struct request *first;	/* in the order in which they were added */
	struct request *unused; /* free list in `room` */
	int count, touched;	/* requests in use; entries of `room` ever used, the others are not initialised */
	struct request room[REQUESTS_ROOM];
};

/* Add a request for a service.  The command is encoded, for as many replicas as the URL wants.  NULL: no room. */
struct request *request_add(struct requests *, const struct command *, const struct url *);

/* Remove and free. */
void request_drop(struct requests *, struct request *);

/* The first one that is not sent; NULL if there is none. */
struct request *request_first_queued(const struct requests *);

/* Is a reply pending? */
bool request_any_sent(const struct requests *);

/* Send it.  WAIT follows it on the same connection, and ASKING goes in front, if its target says so. */
void request_send(struct request *, struct client *);

/* Send it again only after a while. */
void request_postpone(struct request *, const char *why);

/* Has the request been redirected by the server at the endpoint `from`?  If so, it is queued again. */
bool request_redirect(struct request *, struct topology *, int from);

/*
 * Should the request be sent again?  If so, it is queued again.  A server that closed a connection is alive, or another
 * one has taken its place.  A request that keeps trying is sent until a server accepts it.
 */
bool request_resend(struct request *);

#endif
