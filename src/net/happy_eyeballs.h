/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_NET_HAPPY_EYEBALLS_H
#define DLOCK_NET_HAPPY_EYEBALLS_H
#include <netdb.h>
#include <stdint.h>

/*
 * From the addresses of a host to a connected socket, without blocking.  The families take turns, and an address that
 * is slow to answer doesn't keep the next one from being tried beside it (RFC 8305): of two families of which one leads
 * nowhere, the other one's connection is there nearly at once.
 */
enum {
	ADDRESSES_MAX = 8 /* addresses; further ones are not tried */
};

struct happy_eyeballs {
	const struct addrinfo *address[ADDRESSES_MAX];
	int addresses, next;
	int fd[ADDRESSES_MAX]; /* sockets on their way, -1 for none */
	int running;
	int epoll;	 /* shows all of them as one descriptor; -1 while there is but one */
	int connected;	 /* the connected socket; -1: none */
	int64_t wake_us; /* call happy_eyeballs_continue() then */
	int error;	 /* the last errno */
};

enum happy_eyeballs_state {
	HAPPY_EYEBALLS_BUSY, /* poll for happy_eyeballs_fd(), or wait until wake_us, and call happy_eyeballs_continue() */
	HAPPY_EYEBALLS_CONNECTED, /* the connected is the caller's */
	HAPPY_EYEBALLS_FAILED	  /* `error` says why */
};

/* Begin.  The addresses must outlive the race. */
enum happy_eyeballs_state happy_eyeballs_start(struct happy_eyeballs *, const struct addrinfo *, int64_t now_us);
enum happy_eyeballs_state happy_eyeballs_continue(struct happy_eyeballs *, int64_t now_us);

/* What to poll for while it is busy. */
int happy_eyeballs_fd(const struct happy_eyeballs *);
short happy_eyeballs_events(const struct happy_eyeballs *);

/* Close whatever is still on its way.  Harmless after happy_eyeballs_init() or happy_eyeballs_start(), and twice. */
void happy_eyeballs_stop(struct happy_eyeballs *);
void happy_eyeballs_init(struct happy_eyeballs *);

/* A socket as all of ours are, -1 with errno set: it never blocks, is closed on exec, and notices a peer that is gone. */
int connect_socket(int family);

#endif
