/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_REDIS_PRIMARY_H
#define DLOCK_REDIS_PRIMARY_H
#include <stdbool.h>
#include <stdint.h>

#include "redis/server.h"
#include "redis/topology.h"

/*
 * The server for a request: the server of a URL, the primary that sentinels name, or the owner of a slot in a Cluster.
 *
 * It is found in the topology, or else by discovery: the sources of the topology are queried one after the other, each
 * with a short timeout, until one has an answer.  Then the server is connected to, and asked for its role if sentinels
 * named it.  After a failure, or a reply that shows that it is not the right server any more, it is looked for again.
 */
enum primary_state {
	PRIMARY_READY,	 /* requests sent on `server` go to it */
	PRIMARY_PENDING, /* not yet: the owner is called back */
	PRIMARY_UNKNOWN	 /* it can't be found or connected to: see `failure` */
};

struct primary_owner {
	struct loop *loop;
	server_disconnected *disconnected;
	void (*changed)(void *context, bool found); /* call primary_reach() again; not found: PRIMARY_UNKNOWN */
};

/* The connection to the server. */
enum primary_server {
	SERVER_NONE,
	SERVER_UNCHECKED, /* sentinels named it, and its reply to ROLE is pending */
	SERVER_CHECKED,
	SERVER_STALE /* look for it again once no reply is pending */
};

struct primary {
	const struct url *url;
	struct primary_owner owner;
	void *context;
	struct topology topology;
	struct server servers[2]; /* room for the next two */
	struct server *server;	  /* the first of them; NULL: SERVER_NONE */
	enum primary_server standing;
	int at;		      /* the endpoint that `server` is connected to */
	struct pending role;  /* the ROLE request */
	int64_t confirmed_us; /* when a sentinel last named it */
	int misled;	      /* number of consecutive sentinels that named an unreachable server or no primary */

	struct server *source; /* discovery: the second, while a source is being queried; NULL: none */
	struct pending question;
	struct watch source_timer; /* timeout of the current source */
	int64_t end_us;		   /* timeout of the whole discovery */
	int left;		   /* number of sources to query after the current one */
	bool with_login;
	bool answered;	 /* a source has replied, but could not answer */
	bool discovered; /* discovery has just found it */

	struct failure failure; /* why it is unknown */
};

/* The URL must outlive it.  False: out of memory; primary_close() is still required. */
bool primary_open(struct primary *, const struct url *, const struct primary_owner *, void *context);
void primary_close(struct primary *);

/*
 * Get the connection to the server for a target.  While `busy` (replies are pending), the current server is not left
 * for another one.
 */
enum primary_state primary_reach(struct primary *, const struct target *, bool busy);

/* The connection has failed, or a reply says that this is not the right server any more. */
void primary_mark_stale(struct primary *);

/* See node_disconnect() and node_stop_connecting(). */
void primary_disconnect(struct primary *, bool outstanding);
void primary_stop_connecting(struct primary *, bool in_time);

/* Are the two connected to different servers? */
bool primary_differs(const struct primary *, const struct primary *other);

/* Why there is no reply yet, as a sentence. */
const char *primary_waits_for(const struct primary *);

#endif
