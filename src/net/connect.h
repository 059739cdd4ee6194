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
 * Connect to an endpoint without blocking: resolve the name, try the addresses, and do the TLS handshake if the
 * endpoint uses TLS.
 */
enum connect_state {
	CONNECT_PENDING, /* wait for the watch, then call connect_continue() */
	CONNECT_DONE,	 /* fd and tls are set: the caller may take them */
	CONNECT_FAILED	 /* `error` is set */
};

struct connecting {
	const struct endpoint *endpoint;
	struct watch *watch; /* its fd, events and at_us are set while the connection is pending */
	struct resolving *resolving;
	bool by_name; /* the host is a name, not an address */
	struct addrinfo *addresses;
	struct happy_eyeballs sockets;
	int fd;		   /* the connected socket; -1: none */
	struct tls *tls;   /* NULL: plain */
	const char *error; /* valid until connect_stop() */
	bool refused;	   /* nothing listens on the address, or the unix socket doesn't exist */
	bool denied;	   /* the server rejects our certificate, or requires one: a retry won't help */
	bool local;	   /* this host is the cause: it is out of memory, descriptors or threads */
};

/*
 * Start to connect.  The endpoint and the watch, which must be registered, must outlive the connecting.  In every state, also after a failure,
 * connect_stop() must be called to free the resources.
 */
enum connect_state connect_start(struct connecting *, const struct endpoint *, struct watch *);

/* Call it when the descriptor of the watch is ready or its deadline has passed. */
enum connect_state connect_continue(struct connecting *, int64_t now_us);

/* The error message for a timeout of a pending connection; a static string. */
const char *connect_waits_for(const struct connecting *);

/*
 * Free all resources.  This includes fd and tls, unless the caller has taken them and set fd to -1 and tls to NULL.
 * A second call does nothing.
 */
void connect_stop(struct connecting *);

/* Initialize without starting a connection; connect_stop() is safe after this.  connect_start() does it too. */
void connect_init(struct connecting *);

#endif
