/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_REDIS_ROUTE_H
#define DLOCK_REDIS_ROUTE_H
#include <stdbool.h>
#include <stdint.h>

#include "redis/server.h"

/*
 * The server for a request: the server of a URL, the primary that sentinels name, or the owner of a slot in a Cluster.
 *
 * It is one of the endpoints that are known, or else it is discovered: the sources, which are the sentinels or the
 * servers of the Cluster, are queried one after the other, each with a short timeout, until one has an answer.  Then
 * the server is connected to, and asked for its role if sentinels named it.  After a failure, or a reply that shows
 * that it is not the right server any more, it is looked for again.
 */
enum {
	NOWHERE = -1, /* no endpoint: not known, a source must be queried */
	NO_SLOT = -1,
	SLOTS = 16384,
	ENDPOINTS_MAX = 4096
};

/* The owners of the slots of a Cluster, as far as known. */
struct hash_slots {
	uint16_t owner[SLOTS];	 /* its endpoint + 1; 0: not known */
	int part[ENDPOINTS_MAX]; /* the endpoints that own slots */
	int parts;
};

enum route_state {
	ROUTE_READY,   /* requests sent on `line.server` go to it */
	ROUTE_PENDING, /* not yet: the owner is called back */
	ROUTE_UNKNOWN  /* it can't be found or connected to: see `failure` */
};

struct route_owner {
	struct loop *loop;
	server_disconnected *disconnected;
	void (*changed)(void *context, bool found); /* call route_reach() again; not found: ROUTE_UNKNOWN */
	void *context;				    /* of both */
};

/* A connection, and the request of our own on it. */
struct line {
	bool open; /* otherwise the server is closed */
	struct server server;
	struct pending request;
};

struct route {
	const struct url *url;
	struct route_owner owner;

	/* The known facts. */
	struct address *endpoint; /* those of the URL, then those learned; sources are queried in this order */
	int endpoints;
	size_t capacity;
	int seeds;		  /* number of endpoints named by the URL */
	int primary;		  /* URL_SERVER, URL_SENTINEL */
	struct hash_slots *slots; /* URL_CLUSTER */

	/* The connection to the server; its own request is ROLE. */
	struct line line;
	enum {
		SERVER_UNCHECKED, /* sentinels named it, and its reply to ROLE is pending */
		SERVER_CHECKED,
		SERVER_STALE /* look for it again once no reply is pending */
	} standing;
	int at;			  /* the endpoint that it is connected to */
	int64_t confirmed_us;	  /* when a sentinel last named it */
	struct password *refused; /* a server wants another one; NULL: none does */
	int misled;		  /* number of consecutive sentinels that named an unreachable server or no primary */

	/* Discovery, while the connection to a source is open. */
	struct line source;
	int asked;	    /* the endpoint to query, or the next one */
	struct watch timer; /* timeout of the current source */
	int64_t end_us;	    /* timeout of the whole discovery */
	int left;	    /* number of sources to query after the current one */
	bool with_login;
	bool answered;	 /* a source has replied, but could not answer */
	bool discovered; /* discovery has just found it */

	struct failure failure; /* why it is unknown */
};

/* The destination of a request. */
struct target {
	int slot;   /* slot of its key, in a Cluster; NO_SLOT: none */
	int part;   /* without a slot: which server of the Cluster */
	int asking; /* endpoint that accepts it with ASKING, while the slot is still moving there; NOWHERE: none */
	bool needs_replicas; /* its writes must not be lost */
};

/* The URL must outlive it.  False: out of memory; route_close() is still required. */
bool route_open(struct route *, const struct url *, const struct route_owner *);
void route_close(struct route *);

/*
 * Get the connection to the server for a target.  While `busy` (replies are pending), the current server is not left
 * for another one.
 */
enum route_state route_reach(struct route *, const struct target *, bool busy);

/*
 * The server wants another login.  True: there is another password, or will be, and the server will be connected to
 * again.
 */
bool route_log_in_again(struct route *);

/* Is nothing to be sent, as a command is still looking for the password? */
bool route_awaits_password(struct route *);

/* The connection has failed, or a reply says that this is not the right server any more. */
void route_mark_stale(struct route *);

/* See node_disconnect() and node_stop_connecting(). */
void route_disconnect(struct route *, bool outstanding);
void route_stop_connecting(struct route *, bool in_time);

/* Why there is no reply yet, as a sentence. */
const char *route_waits_for(const struct route *);

/* The endpoint for a key's slot; for NO_SLOT, that of a part of a Cluster.  NOWHERE: query a source. */
int route_find(const struct route *, int slot, int part);

/* The URL to connect to an endpoint, and its name for messages.  The seeds are not set. */
void route_url(const struct route *, int endpoint, struct url *);

/* Where a request goes after this reply of the server. */
enum redirection {
	REDIRECT_NONE, /* nowhere: it is a regular reply, or one that can't be followed */
	REDIRECT_NOW,  /* MOVED: to the new owner of the slot, which is recorded; ASK: this once to *asking */
	REDIRECT_LATER /* TRYAGAIN: the slot is moving */
};

enum redirection route_redirect(struct route *, const struct reply *, int *asking);

/* Is this an error that should soon pass: the server is still starting, or the Cluster is incomplete? */
bool route_is_early(const struct reply *);

/* Is this the reply of a server that is not, or no longer, the right one for the request? */
bool route_is_demoted(const struct reply *);

#endif
