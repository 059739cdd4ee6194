/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_REDIS_DIAL_H
#define DLOCK_REDIS_DIAL_H
#include <netdb.h>
#include <stdbool.h>
#include <stdint.h>

#include "redis/resolve.h"
#include "redis/url.h"

/*
 * From a URL to a connected socket, without blocking: names are resolved, addresses are tried one after the other.
 * Sockets are closed on exec and never block.
 */
enum dial_state {
	DIAL_BUSY,	/* poll for dial_fd(), or wait until wake_us */
	DIAL_CONNECTED, /* take the socket */
	DIAL_FAILED	/* `error` says why */
};

struct dial {
	const struct url *url;
	struct resolving *resolving;
	bool by_name; /* the host is a name, not an address */
	struct addrinfo *addresses;
	const struct addrinfo *next_address;
	int fd;		 /* -1: none */
	int64_t wake_us; /* call dial_handle() then, whatever poll says; CLOCK_NEVER mostly */
	const char *error;
};

/* Begin.  The URL must outlive the dial. */
enum dial_state dial_start(struct dial *, const struct url *);

/* Go on: the descriptor is ready, or the wake instant has come. */
enum dial_state dial_handle(struct dial *, int64_t now_us);

/* What to poll for while it is busy; -1: nothing. */
int dial_fd(const struct dial *);
short dial_events(const struct dial *);

/* The connected socket, the caller's from now on. */
int dial_take(struct dial *);

/* Give up and free whatever is left.  Harmless at any time after dial_start(), and twice. */
void dial_stop(struct dial *);

#endif
