/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_REDIS_DISCOVERY_H
#define DLOCK_REDIS_DISCOVERY_H
#include <stdbool.h>
#include <stdint.h>

#include "redis/client.h"
#include "redis/topology.h"

/*
 * Discovery: query the sources of a topology one after the other, each with a short timeout, until one has an answer.
 */
struct discovery {
	struct loop *loop;
	struct topology *topology;
	struct client *client; /* to the source that is being queried; NULL: none */
	struct pending question;
	struct watch patience; /* timeout of the current source */
	int left;	       /* number of sources to query after the current one */
	bool with_login;
	bool answered;	      /* a source has replied, but could not answer */
	int64_t end_us;	      /* timeout of the whole discovery */
	enum failure failure; /* why it failed */
	struct reason reason;
	void (*finished)(void *context, bool found);
	void *context;
};

/*
 * `finished` runs from the loop, once for each discovery_start() that discovery_stop() did not end.  The topology must
 * outlive the discovery.
 */
void discovery_init(struct discovery *, struct topology *, struct loop *);

/*
 * Start a discovery that takes about most_us.  All sources are queried if necessary.  Each gets at least 10 ms, so that
 * many unresponsive sources can take longer.
 */
void discovery_start(struct discovery *, int64_t most_us);
bool discovery_is_running(const struct discovery *);

/* Stop the discovery.  The next one starts with another source.  Does nothing if none is running. */
void discovery_stop(struct discovery *);

void discovery_close(struct discovery *);

#endif
