/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_REDIS_TOPOLOGY_H
#define DLOCK_REDIS_TOPOLOGY_H
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "redis/command.h"
#include "redis/reply.h"
#include "redis/url.h"

/*
 * Topology: where requests go.  This is the server of a URL, the primary that sentinels name, or the server of a key's
 * slot in a Cluster.
 *
 * This is the data only, without sockets.  Its sources are the sentinels, or the servers of the Cluster: primary.c
 * sends them the question, and topology_learn() parses the reply.
 */
enum {
	NOWHERE = -1, /* no endpoint: not known, a source must be queried */
	NO_SLOT = -1
};

struct topology {
	const struct url *url;
	struct address *endpoint; /* those of the URL, then those learned; sources are queried in this order */
	int endpoints;
	size_t capacity;
	int seeds;	 /* number of endpoints named by the URL */
	int source;	 /* the endpoint to query next */
	int primary;	 /* URL_SERVER, URL_SENTINEL */
	uint16_t *owner; /* URL_CLUSTER: for each slot, its endpoint + 1; 0: not known */
	int *part;	 /* the endpoints that own slots */
	int parts;
};

/* The destination of a request. */
struct target {
	int slot;   /* slot of its key, in a Cluster; NO_SLOT: none */
	int part;   /* without a slot: which server of the Cluster */
	int asking; /* endpoint that accepts it with ASKING, while the slot is still moving there; NOWHERE: none */
	bool needs_replicas; /* what it writes must not be lost */
};

/* The URL must outlive the topology.  False: out of memory; topology_close() is still required. */
bool topology_open(struct topology *, const struct url *);
void topology_close(struct topology *);

/* The endpoint for a key's slot; for NO_SLOT, that of a part of a Cluster.  NOWHERE: query a source. */
int topology_find(const struct topology *, int slot, int part);

/* How to connect to an endpoint, and its name for messages. */
void topology_url(const struct topology *, int endpoint, struct url *);

/*
 * Put the name of an endpoint in front of a sentence, if it belongs to a service: the user needs to know which of its
 * servers failed.
 */
void topology_add_context(const struct topology *, int endpoint, struct reason *);

/* Discard what was learned about primaries and slots.  Endpoints are kept. */
void topology_forget(struct topology *);

/* Discovery: the number of sources, a step to the next one, and the question to send. */
int topology_sources(const struct topology *);
void topology_next_source(struct topology *);
void topology_question(const struct topology *, struct command *);

/* Copy the text of an error reply, escaped, since it may be anything. */
void topology_quote(const struct reply *error, struct reason *);

/* Parse a source's reply to the question.  False, with a sentence, if it is no answer. */
bool topology_learn(struct topology *, const struct reply *, struct reason *);

/* Where a request goes after this reply of the server at the endpoint `from` of a Cluster. */
enum redirection {
	REDIRECT_NONE,	/* nowhere: it is a regular reply, or one that can't be followed */
	REDIRECT_MOVED, /* MOVED: to the new owner of the slot, which is recorded */
	REDIRECT_ASK,	/* ASK: this once to *endpoint, with ASKING in front */
	REDIRECT_LATER	/* TRYAGAIN: the slot is moving */
};

enum redirection topology_redirect(struct topology *, const struct reply *, int from, int *endpoint);

/* Is this an error that should soon pass: the server is still starting, or the Cluster is incomplete? */
bool topology_is_early(const struct reply *);

/* Is this the reply of a server that is not, or no longer, the right one for the request? */
bool topology_is_demoted(const struct reply *);

#endif
