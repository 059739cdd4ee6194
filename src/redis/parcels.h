/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_REDIS_PARCELS_H
#define DLOCK_REDIS_PARCELS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "redis/request.h"
#include "redis/resp.h"

/*
 * The requests that a node has been given and has not answered yet, in their order.
 */
enum progress {
	HELD, /* its server is not known, or not connected to, yet */
	SENT,
	WRITTEN, /* answered, but the replicas have not confirmed it */
	LOST	 /* a failure */
};

struct parcel {
	unsigned int tag;
	unsigned int id; /* its tag on the connection, an even one; the next one is that of the WAIT behind it */
	enum progress progress;
	char *bytes; /* NULL: there was no memory for them */
	size_t length;
	size_t again; /* the byte that says whether the same was sent before; 0: none does */
	int slot, part;
	bool lasting, once, patient; /* see struct request */
	int64_t connection;
	bool resent;	       /* once, after the connection failed on which it was sent */
	bool left;	       /* a byte of it has left this host, on a connection that has failed */
	int asking;	       /* the place where it is taken though the slot isn't there yet; NOWHERE: none */
	int redirects;	       /* how often it was sent elsewhere */
	bool postponed;	       /* its slot is moving, or its server is away: it is sent again in a moment, */
	int64_t not_before_us; /* at this instant at the earliest; 0: when it can be */
	struct reply *reply;   /* WRITTEN */
};

enum {
	PARCELS_MAX = 64, /* further ones are LOST at once */
	PARCELS_ROOM = 2 * PARCELS_MAX
};

struct parcels {
	size_t count;
	unsigned int id;		    /* the last one */
	struct parcel parcel[PARCELS_ROOM]; /* so many as are counted; the others need not be clear */
};

/* A new one, behind all others: HELD, or LOST where there are too many.  NULL: there is no room even for that. */
struct parcel *parcels_add(struct parcels *, unsigned int tag, const struct request *, int slot);

/* It is done with; the pointers to those behind it are not good any more. */
void parcels_drop(struct parcels *, struct parcel *);
void parcels_clear(struct parcels *);

/* The first one that has come so far; the one with that tag on the connection.  NULL: there is none. */
struct parcel *parcels_first(struct parcels *, enum progress);
struct parcel *parcels_with_id(struct parcels *, unsigned int id);

/* Is an answer outstanding? */
bool parcels_under_way(const struct parcels *);

/* Has another one been sent behind it? */
bool parcels_followed(const struct parcels *, const struct parcel *);

/* What is HELD will not be sent, but for the patient ones, if they are to be sent at an instant; 0: those neither. */
void parcels_lose(struct parcels *, int64_t patient_us);

bool parcels_held(const struct parcels *);

/* Is one held back because its slot is moving, or its server is away? */
bool parcels_postponed(const struct parcels *);

/* Is one being sent again because the connection failed, and not held back? */
bool parcels_resent(const struct parcels *);

/* When there is something to do without anything from outside. */
int64_t parcels_wake_us(const struct parcels *);

#endif
