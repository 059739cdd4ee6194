/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_REDIS_RACE_H
#define DLOCK_REDIS_RACE_H
#include <netdb.h>
#include <stdint.h>

/*
 * From the addresses of a host to a connected socket, without blocking.  The families take turns, and an address that
 * is slow to answer doesn't keep the next one from being tried beside it (RFC 8305): of two families of which one leads
 * nowhere, the other one's connection is there nearly at once.
 */
enum {
	RACE_MOST = 8 /* addresses; further ones are not tried */
};

struct race {
	const struct addrinfo *address[RACE_MOST];
	int addresses, next;
	int fd[RACE_MOST]; /* sockets on their way, -1 for none */
	int running;
	int epoll;	 /* shows all of them as one descriptor; -1 while there is but one */
	int winner;	 /* the connected socket; -1: none */
	int64_t wake_us; /* call race_go() then */
	int error;	 /* the last errno */
};

enum race_state {
	RACE_BUSY, /* poll for race_fd(), or wait until wake_us, and call race_go() */
	RACE_WON,  /* the winner is the caller's */
	RACE_LOST  /* `error` says why */
};

/* Begin.  The addresses must outlive the race. */
enum race_state race_start(struct race *, const struct addrinfo *, int64_t now_us);
enum race_state race_go(struct race *, int64_t now_us);

/* What to poll for while it is busy. */
int race_fd(const struct race *);
short race_events(const struct race *);

/* Close whatever is still on its way.  Harmless after race_init() or race_start(), and twice. */
void race_stop(struct race *);
void race_init(struct race *);

/* A socket as all of ours are, -1 with errno set: it never blocks, is closed on exec, and notices a peer that is gone. */
int race_socket(int family);

#endif
