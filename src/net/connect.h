/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_NET_CONNECT_H
#define DLOCK_NET_CONNECT_H
#include <netdb.h>
#include <stdbool.h>
#include <stdint.h>

#include "net/authority.h"
#include "net/loop.h"

/*
 * From an endpoint to a connected socket, without blocking.
 *
 * getaddrinfo(3) may take many seconds if a DNS server is down, and it can't be interrupted.  So a name is resolved in
 * a separate thread, which is left running if nobody waits for it any more.
 *
 * The addresses of a host are tried as in RFC 8305.  The address families alternate.  If an address doesn't reply
 * quickly, the next one is tried in parallel.  So if only one of two families works, its connection is established
 * almost at once.
 */
enum {
	ADDRESSES_MAX = 8 /* further addresses are not tried */
};

struct resolving; /* opaque */

struct connecting {
	struct watch *owner; /* its `ready` is called when something happens */
	const struct endpoint *endpoint;
	bool by_name;		     /* the host is a name, not an address */
	struct resolving *resolving; /* the name is being resolved; or NULL */
	struct addrinfo *list;	     /* owned */
	const struct addrinfo *address[ADDRESSES_MAX];
	int addresses, next;
	struct watch socket[ADDRESSES_MAX]; /* of the addresses before `next`; fd -1: not pending */
	int running;			    /* number of them */
	int connected;			    /* the connected socket; -1: none */
	int error;			    /* errno of the last failure */
	const char *why;		    /* if it was the name: the fault of it, or of this host if errno is set */
};

enum connect_state {
	CONNECT_BUSY, /* call connect_go_on() when the owner is called */
	CONNECT_DONE, /* `connected` is set and owned by the caller */
	CONNECT_FAILED
};

/*
 * Start to connect.  The endpoint and the owner, a registered watch, must outlive the attempt; the watch is set to what
 * is waited for.  Further descriptors are registered in its loop.  Call connect_stop() in the end, in every state.
 */
enum connect_state connect_begin(struct connecting *, const struct endpoint *, struct watch *owner);
enum connect_state connect_go_on(struct connecting *, int64_t now_us);

/* The same for a list of addresses. */
enum connect_state connect_race(struct connecting *, const struct addrinfo *, int64_t now_us);

/* Close all pending sockets, but not `connected`.  Safe for a zeroed struct, too; a second call does nothing. */
void connect_stop(struct connecting *);

/*
 * Create a stream socket that is non-blocking and close-on-exec.  Except for AF_UNIX it has TCP_NODELAY and TCP
 * keepalive, which detects a vanished peer.  Returns -1 with errno set on failure.
 */
int connect_socket(int family);

#endif
