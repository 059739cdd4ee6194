/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_REDIS_COMMAND_H
#define DLOCK_REDIS_COMMAND_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lock/service.h"

/*
 * The Redis keys of one lock.
 *
 * KEY itself has exactly the name that the user gave.  Its sibling keys are in the same slot of a Redis Cluster, and no
 * two KEYs share a sibling.  The metadata key is:
 *
 *  -  {KEY}:dlock if KEY has no hash tag of its own;
 *  -  KEY:dlock if KEY has a hash tag;
 *  -  {N}:KEY:dlock-n, with the smallest number N in the same slot, if neither works: KEY has no hash tag but contains
 *     a brace that would end ours, or KEY is nothing but a hash tag, {X}, and would get the sibling of X.
 */
enum sibling {
	METADATA,
	HOLDS,
	WAKE,	 /* the list on which waiters block */
	WAITING, /* the waiters, and until when each of them waits */
	HISTORY,
	LEAVE, /* a list of one waiter, which waitqueue.c names */
	SIBLINGS
};

struct keys {
	const char *key;
	char sibling[SIBLINGS][KEY_MAX + 64];
};

/*
 * Slots: the slot 2 of KEY is a lock with the name KEY:slot-2 if KEY has a hash tag, else {KEY}:slot-2, behind the
 * prefix.  All slots of a KEY are in the same slot of a Redis Cluster.  Their waiters are common: WAITING is that of
 * KEY:slots.
 */
enum {
	SLOTS_KEY_MAX = 500 /* the maximum length of a KEY with slots, without its prefix */
};

/*
 * The name of a slot of `key`, whose first bytes are the prefix; slot 0: KEY:slots.  ST_USAGE: it cannot have slots,
 * since it is too long, or its braces are no hash tag, or nothing but one.
 */
enum status keys_of_slot(const char *key, size_t prefix, int slot, char name[KEY_MAX + 1], struct err *);

/* Fill in the names.  KEY must have at most KEY_MAX bytes and must outlive them. */
void keys_of(const char *key, struct keys *);

/* The KEY of a metadata key of so many bytes; false if the name is not that of a metadata key. */
bool keys_key(const char *metadata, size_t length, char key[KEY_MAX + 1]);

/* The kind of a name, and its KEY: a sibling of some lock; or SIBLINGS, if it is no sibling. */
enum sibling keys_sibling(const char *name, char key[KEY_MAX + 1]);

/* The slot of a key in a Redis Cluster, as CLUSTER KEYSLOT reports it. */
int keys_slot(const char *key, size_t length);

/*
 * One command for Redis, as a list of arguments.  Strings are borrowed: they must live until the command has been
 * passed to node_send() or encoded, which copies them.  The struct holds the digits of its own numbers, so it must be
 * filled in place, not copied.  Scripts are sent as EVAL with their text, so that a server that has lost its script
 * cache needs no second round trip.
 */
enum {
	COMMAND_ARGS = 2 * SLOTS_MAX + 8
};

/* The Lua scripts of src/lua, embedded at build time.  Each file documents its arguments and return value. */
enum script {
	SCRIPT_ACQUIRE,
	SCRIPT_ASK,
	SCRIPT_BREAK,
	SCRIPT_FENCE,
	SCRIPT_HEAL,
	SCRIPT_HISTORY,
	SCRIPT_INSPECT,
	SCRIPT_INVITE,
	SCRIPT_LAST,
	SCRIPT_LEAVE,
	SCRIPT_PASS,
	SCRIPT_RELEASE,
	SCRIPT_RENEW,
	SCRIPT_SHARE,
	SCRIPT_SLOTS,
	SCRIPT_UNDO,
	SCRIPT_UNSHARE
};

struct command {
	int argc;
	int numbers;
	int again;	     /* index of the argument of %c; 0: none */
	bool once;	     /* not sent again if its connection fails, since it may have been executed */
	bool keeps_trying;   /* retried until the caller gives up, while the server is unreachable or loading */
	int64_t connection;  /* the connection it must use (see struct result), or it fails; 0: any */
	bool needs_replicas; /* its writes count only once enough replicas have them */
	const char *key;     /* which decides on its server in a Cluster; NULL: it has none */
	int part;	     /* for a command without a key: which server of a Cluster, from 0 */
	const char *argv[COMMAND_ARGS];
	size_t length[COMMAND_ARGS];
	char number[12][24];
};

/*
 * Begin a plain command, or an EVAL of a script with the keys of a lock that it uses.  The format, which must outlive
 * the command, has the arguments, with blanks between them (" ": none): words, %s, %d for an int, %jd for an int64_t,
 * and %c for '0' or '1', which becomes '1' if the request is sent again and may have been executed before.
 */
void command_begin(struct command *, const char *format, ...) __attribute__((format(printf, 2, 3)));
void command_eval(struct command *, enum script, const struct keys *, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/*
 * Begin an EVAL of SCRIPT_SLOTS with the keys of so many slots, or of SCRIPT_LAST with those of so many locks.  The
 * arguments are to be added.
 */
void command_slots(struct command *, const struct keys *, int count);
void command_last(struct command *, const struct keys *, int count);

/* Add an argument. */
void command_add(struct command *, const char *string);
void command_add_number(struct command *, int64_t);

/*
 * Encode the request in Redis's protocol.  The caller frees the result.  *again is the offset of the digit of %c,
 * unchanged if there is none.  NULL: out of memory.
 */
char *command_encode(const struct command *, size_t *length, size_t *again);

/* The text of a script, as it is sent. */
const char *command_script(enum script);

#endif
