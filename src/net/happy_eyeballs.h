/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_NET_HAPPY_EYEBALLS_H
#define DLOCK_NET_HAPPY_EYEBALLS_H
#include <netdb.h>
#include <stdint.h>

#include "net/loop.h"

/*
 * Connect to one of the addresses of a host, without blocking (RFC 8305).  The address families alternate.  If an
 * address doesn't reply quickly, the next one is tried in parallel.  So if only one of two families works, its
 * connection is established almost at once.
 */
enum {
	ADDRESSES_MAX = 8 /* further addresses are not tried */
};

struct happy_eyeballs {
	const struct addrinfo *address[ADDRESSES_MAX];
	int addresses, next;
	struct watch socket[ADDRESSES_MAX]; /* of the addresses before `next`; fd -1: not pending */
	int running;			    /* number of them */
	struct watch *owner;		    /* its `ready` is called when one of them is ready */
	int connected;			    /* the connected socket; -1: none */
	int64_t wake_us; /* call happy_eyeballs_continue() at this instant; CLOCK_NEVER: no deadline */
	int error;	 /* errno of the last failure */
};

enum happy_eyeballs_state {
	HAPPY_EYEBALLS_BUSY,	  /* call happy_eyeballs_continue() when the owner is called, and at wake_us */
	HAPPY_EYEBALLS_CONNECTED, /* `connected` is set and owned by the caller */
	HAPPY_EYEBALLS_FAILED	  /* `error` is set */
};

/*
 * Start to connect.  The addresses and the owner, a registered watch, must outlive the attempt.  The sockets are
 * registered in the owner's loop.  Call happy_eyeballs_stop() in the end, in every state.
 */
enum happy_eyeballs_state happy_eyeballs_start(struct happy_eyeballs *, const struct addrinfo *, struct watch *owner,
    int64_t now_us);
enum happy_eyeballs_state happy_eyeballs_continue(struct happy_eyeballs *, int64_t now_us);

/* Close all pending sockets, but not `connected`.  Safe for a zeroed struct, too; a second call does nothing. */
void happy_eyeballs_stop(struct happy_eyeballs *);

/*
 * Create a stream socket that is non-blocking and close-on-exec.  Except for AF_UNIX it has TCP_NODELAY and TCP
 * keepalive, which detects a vanished peer.  Returns -1 with errno set on failure.
 */
int connect_socket(int family);

#endif
