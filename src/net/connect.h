/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_NET_CONNECT_H
#define DLOCK_NET_CONNECT_H
#include <netdb.h>
#include <stdbool.h>
#include <stdint.h>

#include "net/endpoint.h"
#include "net/happy_eyeballs.h"
#include "net/loop.h"
#include "net/resolve.h"

struct tls;

/*
 * From an endpoint to a connected socket, without blocking: the name is resolved, the addresses are tried, TLS shakes
 * hands where the endpoint wants it.
 */
enum connect_state {
	CONNECT_PENDING, /* wait as the watch says, then call connect_continue() */
	CONNECT_DONE,	 /* take fd and tls */
	CONNECT_FAILED	 /* `error` says why */
};

struct connecting {
	const struct endpoint *endpoint;
	struct watch *watch; /* its fd, events and deadline are set to what is waited for */
	struct resolving *resolving;
	bool by_name; /* the host is a name, not an address */
	struct addrinfo *addresses;
	struct happy_eyeballs sockets;
	int fd;		 /* the connected socket; -1: none */
	struct tls *tls; /* NULL: plain */
	const char *error;
	bool refused; /* nobody listens there */
	bool denied;  /* the server refuses us, not only now */
	bool local;   /* this host lacks something */
};

/* Begin.  Endpoint and watch must outlive it. */
enum connect_state connect_start(struct connecting *, const struct endpoint *, struct watch *);

/* The watch's descriptor is ready, or its deadline has come. */
enum connect_state connect_continue(struct connecting *, int64_t now_us);

/* What it waits for, as a sentence. */
const char *connect_waits_for(const struct connecting *);

/* Free what is left; fd and tls too, unless the caller took them and left -1 and NULL.  Harmless twice. */
void connect_stop(struct connecting *);

/* Nothing begun. */
void connect_init(struct connecting *);

#endif
