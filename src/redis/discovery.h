/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_REDIS_DISCOVERY_H
#define DLOCK_REDIS_DISCOVERY_H
#include <stdbool.h>
#include <stdint.h>

#include "redis/client.h"
#include "redis/topology.h"

/*
 * Asking where requests go: the sources of a topology one after the other, none of them for long, until one can tell.
 */
struct discovery {
	struct loop *loop;
	struct topology *topology;
	struct client *client; /* to the source that is being asked; NULL: none is */
	struct pending question;
	struct watch patience; /* until when it has time to answer */
	int left;	       /* how many more sources there are to ask */
	bool with_login;
	bool answered;	      /* one has answered, though it couldn't tell */
	int64_t end_us;	      /* until when all of them together have time */
	enum failure failure; /* why nobody could tell */
	struct reason reason;
	void (*finished)(void *context, bool found);
	void *context;
};

/* `finished` runs from the loop, once for each discovery_start().  The topology must outlive it. */
void discovery_init(struct discovery *, struct topology *, struct loop *);

/* Ask all sources, if need be, within such a time. */
void discovery_start(struct discovery *, int64_t most_us);
bool discovery_is_running(const struct discovery *);

/* Give up.  The next time another source is asked first.  Harmless where none is being asked. */
void discovery_stop(struct discovery *);

void discovery_close(struct discovery *);

#endif
