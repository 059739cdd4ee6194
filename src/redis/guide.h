/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_REDIS_GUIDE_H
#define DLOCK_REDIS_GUIDE_H
#include <stdbool.h>
#include <stdint.h>

#include "redis/conn.h"
#include "redis/route.h"

/*
 * Asking where requests go: the guides of a route one after the other, until one can tell.  All of them together take a part
 * of the time of a round, so that there is time left for the request, however many of them hang.
 */
struct guide {
	struct conn *conn; /* to the guide that is being asked; NULL: nobody is */
	int left;	   /* how many more there are to ask */
	int64_t until_us;  /* so long it has time to answer, */
	int64_t end_us;	   /* and so long all of them have */
	bool with_login;
	bool denied;	/* the last one refused us */
	bool local;	/* the last one wasn't asked for what this host lacks */
	bool heard;	/* one has answered, though it couldn't tell */
	struct err err; /* what it said, or else why the last one said nothing */
};

enum guide_state {
	GUIDE_BUSY,
	GUIDE_TOLD,  /* the route knows */
	GUIDE_FAILED /* nobody could tell; err says why */
};

/* With `spare` there is a server to fall back on if none can tell; that takes time, too. */
void guide_start(struct guide *, struct route *, bool spare);

/* Go on: poll said something of conn, or until_us has come, or both. */
enum guide_state guide_handle(struct guide *, struct route *, int64_t now_us);

/* Harmless where nobody is asked.  The next time another one is the first. */
void guide_stop(struct guide *, struct route *);

#endif
