/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_NET_HAPPY_EYEBALLS_H
#define DLOCK_NET_HAPPY_EYEBALLS_H
#include <netdb.h>
#include <stdint.h>

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
	int fd[ADDRESSES_MAX]; /* pending sockets; -1: none */
	int running;	       /* number of pending sockets */
	int epoll;	 /* combines them in one descriptor; -1 with a single socket, or if epoll is not available */
	int connected;	 /* the connected socket; -1: none */
	int64_t wake_us; /* call happy_eyeballs_continue() at this instant; CLOCK_NEVER: no deadline */
	int error;	 /* errno of the last failure */
};

enum happy_eyeballs_state {
	HAPPY_EYEBALLS_BUSY,	  /* poll happy_eyeballs_fd() until wake_us, then call happy_eyeballs_continue() */
	HAPPY_EYEBALLS_CONNECTED, /* `connected` is set and owned by the caller */
	HAPPY_EYEBALLS_FAILED	  /* `error` is set */
};

/* Start to connect.  The addresses must outlive the attempt.  Call happy_eyeballs_stop() in the end, in every state. */
enum happy_eyeballs_state happy_eyeballs_start(struct happy_eyeballs *, const struct addrinfo *, int64_t now_us);
enum happy_eyeballs_state happy_eyeballs_continue(struct happy_eyeballs *, int64_t now_us);

/* The descriptor and the events to poll for while it is busy. */
int happy_eyeballs_fd(const struct happy_eyeballs *);
short happy_eyeballs_events(const struct happy_eyeballs *);

/*
 * Close all pending sockets, but not `connected`.  Safe after happy_eyeballs_init() or happy_eyeballs_start(); a second
 * call does nothing.
 */
void happy_eyeballs_stop(struct happy_eyeballs *);
void happy_eyeballs_init(struct happy_eyeballs *);

/*
 * Create a stream socket that is non-blocking and close-on-exec.  Except for AF_UNIX it has TCP_NODELAY and TCP
 * keepalive, which detects a vanished peer.  Returns -1 with errno set on failure.
 */
int connect_socket(int family);

#endif
