/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_REDIS_REQUEST_H
#define DLOCK_REDIS_REQUEST_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "redis/names.h"
#include "redis/script.h"

/*
 * One command for Redis, as arguments.  Strings are borrowed: they must live until the request has been given to a
 * node, which copies them.  A request holds the digits of its numbers, so it is filled in place, not copied.  Scripts go as
 * EVAL with their text, so that a server that lost its script cache needs no second trip.
 */
enum {
	REQUEST_ARGS = 24
};

struct request {
	int argc;
	const char *argv[REQUEST_ARGS];
	size_t length[REQUEST_ARGS];
	char number[8][24];
	int numbers;
	int again; /* the argument that tells whether the same was sent before, see request_add_again(); 0: none does */
	bool once; /* it is not sent again where a connection is closed on which it may have been carried out */
	bool
	    patient; /* nor given up where the server can't be reached, or is loading its data, until whoever waits gives up */
	int64_t connection; /* it goes on this one, see struct delivery, or fails; 0: on any */
	bool lasting;	    /* what it writes must not be lost: it counts when the replicas that are wanted have it */
	int part;	    /* about no key: to which of the servers that are a Cluster */
};

/* Begin a plain command. */
void request_begin(struct request *, const char *command);

/* Begin an EVAL of a script with the keys of a lock that it takes; SCRIPT_LEAVE takes one more, to be added next. */
void request_eval(struct request *, enum script, const struct names *);
void request_add(struct request *, const char *string);
void request_add_number(struct request *, int64_t);

/* Add a "0", which becomes a "1" where the request is sent once more and may have been carried out before. */
void request_add_again(struct request *);

/* The request as it goes over the wire, to be freed, and where in it that digit stands.  NULL if there is no memory. */
char *request_encode(const struct request *, size_t *length, size_t *again);

/* The key that it is about, which decides where it goes in a Cluster; NULL if it is about none. */
const char *request_key(const struct request *);

#endif
