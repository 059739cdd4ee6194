/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_REDIS_COMMAND_H
#define DLOCK_REDIS_COMMAND_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "redis/keys.h"
#include "redis/script.h"

/*
 * One command for Redis, as arguments.  Strings are borrowed: they must live until the request has been given to a
 * node, which copies them.  A request holds the digits of its numbers, so it is filled in place, not copied.  Scripts go as
 * EVAL with their text, so that a server that lost its script cache needs no second trip.
 */
enum {
	COMMAND_ARGS = 24
};

struct command {
	int argc;
	const char *argv[COMMAND_ARGS];
	size_t length[COMMAND_ARGS];
	char number[8][24];
	int numbers;
	int again; /* the argument that tells whether the same was sent before, see command_add_again(); 0: none does */
	bool once; /* it is not sent again where a connection is closed on which it may have been carried out */
	bool
	    patient; /* nor given up where the server can't be reached, or is loading its data, until whoever waits gives up */
	int64_t connection;  /* it goes on this one, see struct result, or fails; 0: on any */
	bool needs_replicas; /* what it writes must not be lost: it counts when the replicas that are wanted have it */
	int part;	     /* about no key: to which of the servers that are a Cluster */
};

/* Begin a plain command. */
void command_begin(struct command *, const char *command);

/* Begin an EVAL of a script with the keys of a lock that it takes; SCRIPT_LEAVE takes one more, to be added next. */
void command_eval(struct command *, enum script, const struct keys *);
void command_add(struct command *, const char *string);
void command_add_number(struct command *, int64_t);

/* Add a "0", which becomes a "1" where the request is sent once more and may have been carried out before. */
void command_add_again(struct command *);

/* The request as it goes over the wire, to be freed, and where in it that digit stands.  NULL if there is no memory. */
char *command_encode(const struct command *, size_t *length, size_t *again);

/* The key that it is about, which decides where it goes in a Cluster; NULL if it is about none. */
const char *command_key(const struct command *);

#endif
