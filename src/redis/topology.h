/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_REDIS_TOPOLOGY_H
#define DLOCK_REDIS_TOPOLOGY_H
#include <stdbool.h>
#include <stdint.h>

#include "base/reason.h"
#include "redis/command.h"
#include "redis/reply.h"
#include "redis/url.h"

/*
 * Where requests go: the one server of a URL, the primary that sentinels name, or the server of a key's slot in a Cluster.
 *
 * This is what is known, without sockets.  The sources of it are the sentinels, or the servers of the Cluster: discovery.c
 * asks them the question, and topology_learn() takes the answer.
 */
enum {
	NOWHERE = -1, /* no endpoint: not known, a source has to be asked */
	NO_SLOT = -1
};

struct topology {
	const struct url *url;
	struct address *endpoint; /* those of the URL, then what was learnt; sources are asked in this order */
	int endpoints, room;
	int seeds;	 /* the endpoints that the URL names */
	int source;	 /* whom to ask next */
	int primary;	 /* URL_SERVER, URL_SENTINEL */
	uint16_t *owner; /* URL_CLUSTER: of each slot, the endpoint + 1; 0: not known */
	int *part;	 /* the endpoints that own slots */
	int parts;
};

/* The URL must outlive the topology.  False if there is no memory. */
bool topology_open(struct topology *, const struct url *);
void topology_close(struct topology *);

/* The endpoint for a key's slot; without one (NO_SLOT) that of a part of a Cluster.  NOWHERE: ask a source. */
int topology_find(const struct topology *, int slot, int part);

/* How to connect to a endpoint, and what to call it. */
void topology_url(const struct topology *, int endpoint, struct url *);

/* Put a endpoint's name in front of a sentence: of a service it is worth knowing which of its servers failed. */
void topology_add_context(const struct topology *, int endpoint, struct reason *);

/* What was known is not true any more. */
void topology_forget(struct topology *);

/* Whom to ask (how many there are), what, and what the answer says. */
int topology_sources(const struct topology *);
int topology_source(const struct topology *);
void topology_next_source(struct topology *);
void topology_question(const struct topology *, struct command *);

/* An error's own words, escaped: they may be anything. */
void topology_quote(const struct reply *error, struct reason *);

/* False, with a sentence, if the source's answer doesn't tell. */
bool topology_learn(struct topology *, const struct reply *, struct reason *);

/* Where the server at a endpoint of a Cluster, `from`, sends a request by its reply. */
enum redirection {
	REDIRECT_NONE,	/* it has answered it, or said nothing of use */
	REDIRECT_MOVED, /* MOVED: to the slot's owner, who is another one from now on */
	REDIRECT_ASK,	/* ASK: this time to *endpoint, with ASKING in front */
	REDIRECT_LATER	/* TRYAGAIN: the slot is moving */
};

enum redirection topology_redirect(struct topology *, const struct reply *, int from, int *endpoint);

/* Is it the answer of a server that has just started, or of a Cluster that isn't complete, and may be served soon? */
bool topology_is_early(const struct reply *);

/* Is it the answer of a server that is not, or not any more, the one that it should be? */
bool topology_is_demoted(const struct reply *);

#endif
