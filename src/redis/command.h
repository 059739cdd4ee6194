/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_REDIS_COMMAND_H
#define DLOCK_REDIS_COMMAND_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "redis/keys.h"

/*
 * One command for Redis, as a list of arguments.  Strings are borrowed: they must live until the command has been
 * passed to node_send() or encoded, which copies them.  The struct holds the digits of its own numbers, so it must be
 * filled in place, not copied.  Scripts are sent as EVAL with their text, so that a server that has lost its script
 * cache needs no second round trip.
 */
enum {
	COMMAND_ARGS = 24
};

/* The Lua scripts of src/lua, embedded at build time.  Each file documents its arguments and return value. */
enum script {
	SCRIPT_ACQUIRE,
	SCRIPT_BREAK,
	SCRIPT_FENCE,
	SCRIPT_HEAL,
	SCRIPT_HISTORY,
	SCRIPT_INSPECT,
	SCRIPT_LEAVE,
	SCRIPT_PASS,
	SCRIPT_RELEASE,
	SCRIPT_RENEW,
	SCRIPT_UNDO
};

struct command {
	int argc;
	const char *argv[COMMAND_ARGS];
	size_t length[COMMAND_ARGS];
	char number[10][24];
	int numbers;
	int again;	     /* index of the argument that command_add_again() added; 0: none */
	bool once;	     /* not sent again if its connection fails, since it may have been executed */
	bool keeps_trying;   /* retried until the caller gives up, while the server is unreachable or loading */
	int64_t connection;  /* the connection it must use (see struct result), or it fails; 0: any */
	bool needs_replicas; /* what it writes counts only once enough replicas have it */
	int part;	     /* for a command without a key: which server of a Cluster, from 0 */
};

/* Begin a plain command. */
void command_begin(struct command *, const char *command);

/*
 * Begin an EVAL of a script with the keys of a lock that it uses.  SCRIPT_HISTORY and SCRIPT_LEAVE take
 * one more key, to be added next.
 */
void command_eval(struct command *, enum script, const struct keys *);
void command_add(struct command *, const char *string);
void command_add_number(struct command *, int64_t);

/* Add a "0", which becomes a "1" if the request is sent again and may have been executed before. */
void command_add_again(struct command *);

/*
 * Encode the request in Redis's protocol.  The caller frees the result.  *again is the offset of the digit of
 * command_add_again(), unchanged if there is none.  NULL: out of memory.
 */
char *command_encode(const struct command *, size_t *length, size_t *again);

/* The text of a script, as it is sent. */
const char *command_script(enum script);

/* The key of the command, which decides on its server in a Cluster; NULL if it has none. */
const char *command_key(const struct command *);

#endif
