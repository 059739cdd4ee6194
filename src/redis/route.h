/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_REDIS_ROUTE_H
#define DLOCK_REDIS_ROUTE_H
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "redis/request.h"
#include "redis/resp.h"
#include "redis/url.h"

/*
 * Where requests go: the one server of a URL, the master that sentinels name, or that of a key's slot in a Cluster.  What
 * is known, without sockets: whoever has them puts the question to a guide, and what the guide answers is learnt.
 */
enum {
	NOWHERE = -1, /* no place: not known, ask a guide */
	NO_SLOT = -1
};

struct route {
	const struct url *url;
	struct place *place; /* the URL's seeds, then what was learnt; guides are asked in this order */
	int places, room;
	int seeds;	 /* the places that the URL names */
	int guide;	 /* whom to ask next */
	int master;	 /* URL_SERVER, URL_SENTINEL */
	uint16_t *owner; /* URL_CLUSTER: of each slot, the place + 1; 0: not known */
	int *part;	 /* the places that own slots */
	int parts;
};

/* The URL must outlive the route.  False if there is no memory. */
bool route_open(struct route *, const struct url *);
void route_close(struct route *);

/* The place for a key's slot; without one (NO_SLOT) that of a part of a Cluster.  NOWHERE: ask a guide. */
int route_target(const struct route *, int slot, int part);

/* How to connect to a place, and what to call it. */
void route_url(const struct route *, int place, struct url *);

/* Put a place's name in front of a sentence: of a service it is worth knowing which of its servers failed. */
void route_blame(const struct route *, int place, struct err *);

/* What was known is not true any more. */
void route_forget(struct route *);

/* Whom to ask (how many there are), what, and what the answer says. */
int route_guides(const struct route *);
int route_guide(const struct route *);
void route_next_guide(struct route *);
void route_question(const struct route *, struct request *);

/* An error's own words, escaped: they may be anything. */
void route_quote(const struct reply *error, struct err *);

/* False, with a sentence, if the guide's answer doesn't tell. */
bool route_learn(struct route *, const struct reply *, struct err *);

/* Where the server at a place of a Cluster, `from`, sends a request by its reply. */
enum redirection {
	GO_NOWHERE, /* it has answered it, or said nothing of use */
	GO_BY_SLOT, /* MOVED: to the slot's owner, who is another one from now on */
	GO_ASKING,  /* ASK: this time to *place, with ASKING in front */
	GO_LATER    /* TRYAGAIN: the slot is moving */
};

enum redirection route_redirection(struct route *, const struct reply *, int from, int *place);

/* Is it the answer of a server that has just started, or of a Cluster that isn't complete, and may be served soon? */
bool route_is_early(const struct reply *);

/* Is it the answer of a server that is not, or not any more, the one that it should be? */
bool route_is_disowned(const struct reply *);

#endif
