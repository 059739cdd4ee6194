/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_REDIS_PRIMARY_H
#define DLOCK_REDIS_PRIMARY_H
#include <stdbool.h>
#include <stdint.h>

#include "redis/client.h"
#include "redis/discovery.h"
#include "redis/topology.h"

/*
 * The server in charge of a request: the one of a URL, the primary that sentinels name, or that of a slot in a Cluster.
 *
 * It is found by what the topology knows, or else by discovery, connected to, and asked for its role where sentinels
 * named it.  After a failure, or a reply of a server that is in charge no more, it is looked for anew.
 */
enum primary_state {
	PRIMARY_READY,	 /* what is sent on `client` goes to it */
	PRIMARY_PENDING, /* not yet; the owner hears of it */
	PRIMARY_UNKNOWN	 /* it can't be found, or not be connected to: see `failure` and `reason` */
};

/* Whom a request is for. */
struct target {
	int slot;	     /* of its key, in a Cluster; NO_SLOT: it has none */
	int part;	     /* without a slot: which server of the Cluster */
	int asking;	     /* the endpoint that takes it though the slot isn't there yet; NOWHERE: none */
	bool needs_replicas; /* what it writes must not be lost */
};

struct primary_owner {
	struct loop *loop;
	client_disconnected *disconnected;
	void (*changed)(void *context, bool found); /* call primary_reach() again; not found: PRIMARY_UNKNOWN */
};

struct primary {
	const struct url *url;
	struct primary_owner owner;
	void *context;
	struct topology topology;
	struct discovery discovery;
	struct client *client; /* NULL: none */
	int at;		       /* the endpoint that it is connected to */
	struct pending role;   /* the question whether it is a primary */
	bool checked;	       /* it is one */
	bool stale;	       /* when no reply is outstanding, look for it anew */
	bool discovered;       /* just now */
	int64_t confirmed_us;  /* when a sentinel named it for the last time */
	int misled;	       /* how many sentinels in a row have named a server that isn't there, or no primary */
	enum failure failure;  /* why it is unknown */
	struct reason reason;
};

/* The URL must outlive it.  False if there is no memory. */
bool primary_open(struct primary *, const struct url *, const struct primary_owner *, void *context);
void primary_close(struct primary *);

/* Get at the server for a target.  A server isn't left for another one while it is `busy`: replies are outstanding. */
enum primary_state primary_reach(struct primary *, const struct target *, bool busy);

/* It has replied: is it still in charge? */
void primary_check_reply(struct primary *, const struct reply *);

/* Its connection has failed. */
void primary_disconnected(struct primary *);

/* See node_disconnect() and node_stop_connecting(). */
void primary_disconnect(struct primary *, bool outstanding);
void primary_stop_connecting(struct primary *, bool in_time);

/* Are the two connected to different servers? */
bool primary_differs(const struct primary *, const struct primary *other);

/* Why there is no reply yet, as a sentence. */
const char *primary_waits_for(const struct primary *);

#endif
