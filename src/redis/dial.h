/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_REDIS_DIAL_H
#define DLOCK_REDIS_DIAL_H
#include <netdb.h>
#include <stdbool.h>
#include <stdint.h>

#include "redis/link.h"
#include "redis/race.h"
#include "redis/resolve.h"
#include "redis/url.h"

/*
 * From a URL to a connected link, without blocking: names are resolved, addresses are tried, TLS shakes hands where the URL
 * wants it.
 */
enum dial_state {
	DIAL_BUSY,	/* poll for dial_fd(), or wait until wake_us */
	DIAL_CONNECTED, /* take the link */
	DIAL_FAILED	/* `error` says why */
};

struct dial {
	const struct url *url;
	struct resolving *resolving;
	bool by_name; /* the host is a name, not an address */
	struct addrinfo *addresses;
	struct race race;
	struct link link; /* connected; TLS may still be shaking hands */
	short tls_events; /* what that waits for */
	int64_t wake_us;  /* call dial_handle() then, whatever poll says; CLOCK_NEVER mostly */
	const char *error;
	bool denied; /* the server refuses us, not only now */
	bool local;  /* it is this host that lacks something */
};

/* Begin.  The URL must outlive the dial. */
enum dial_state dial_start(struct dial *, const struct url *);

/* Go on: the descriptor is ready, or the wake instant has come. */
enum dial_state dial_handle(struct dial *, int64_t now_us);

/* What to poll for while it is busy; -1: nothing. */
int dial_fd(const struct dial *);
short dial_events(const struct dial *);

/* What it waits for, as a sentence. */
const char *dial_silence(const struct dial *);

/* The connected link, the caller's from now on. */
struct link dial_take(struct dial *);

/* Give up and free whatever is left.  Harmless at any time after dial_init() or dial_start(), and twice. */
void dial_stop(struct dial *);
void dial_init(struct dial *);

#endif
