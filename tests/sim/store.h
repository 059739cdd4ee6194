/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_SIM_STORE_H
#define DLOCK_SIM_STORE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A stand-in for a Redis server, as far as dlock uses one: the keys, the commands that its scripts call, and the
 * scripts themselves, run by the same Lua 5.1.  The clock is the caller's, the memory is the arena's.  compare.py holds
 * it against a real Redis.
 */
enum value_kind {
	VALUE_NIL,
	VALUE_INTEGER,
	VALUE_TEXT,
	VALUE_STATUS,
	VALUE_ERROR,
	VALUE_LIST
};

/* A reply. */
struct value {
	enum value_kind kind;
	int64_t integer;
	const char *text;
	size_t length;
	size_t items;
	struct value **item;
};

/* An argument; a NUL follows it. */
struct arg {
	const char *bytes;
	size_t length;
};

enum {
	STORE_KEYS = 64,
	STORE_ARGS = 64
};

enum type {
	TYPE_STRING,
	TYPE_HASH,
	TYPE_LIST,
	TYPE_ZSET
};

/* A field of a hash, a member of a sorted set, an element of a list. */
struct item {
	struct arg name, value;
	double score;
};

struct entry {
	struct arg key;
	enum type type;
	struct arg string;
	struct item *item; /* of all types but strings; of a sorted set in its order */
	int items, room;
	int64_t expires_ms; /* -1: never */
};

struct store {
	int64_t now_us;	    /* the server's time of day; set it before each call */
	int64_t started_us; /* likewise: since then it has been up */
	char run_id[41];
	int keys;
	struct entry *entry[STORE_KEYS];
};

/* Empty it, as a restart without persistence does. */
void store_empty(struct store *);

/* A copy that what happens to the store from now on does not change. */
void store_save(const struct store *, struct store *copy);

/* Run a command, EVAL included.  BLPOP answers nil where it would block. */
struct value *store_run(struct store *, int argc, const struct arg *);

/* The entry of a key, NULL if there is none (any more). */
struct entry *store_find(struct store *, struct arg key);
struct entry *store_find_text(struct store *, const char *key);

#endif
