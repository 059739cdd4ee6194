/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_SIM_STORE_H
#define DLOCK_SIM_STORE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All commands have the same parameters. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

/*
 * A substitute for the parts of a Redis server that dlock uses: the keys, the commands that its scripts call, and the
 * scripts themselves, run by the same Lua 5.1.  The caller sets the clock; the memory is from the arena.  compare.py
 * compares it with a real Redis.
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
	struct item *item; /* of all types except strings; for a sorted set in its order */
	int items, room;
	int64_t expires_ms; /* -1: never */
};

struct store {
	int64_t now_us;	    /* the time of day of the server; set it before each call */
	int64_t started_us; /* likewise: the start of the server */
	char run_id[41];
	int keys;
	struct entry *entry[STORE_KEYS];
};

/* Remove all data, as a restart without persistence does. */
void store_empty(struct store *);

/* Make a copy that later changes of the store do not affect. */
void store_save(const struct store *, struct store *copy);

/* Run a command, EVAL included, unless it is a script's: they can't call scripts.  BLPOP returns nil if it would block. */
struct value *store_run(struct store *, int argc, const struct arg *, bool by_script);

/* The entry of a key; NULL if there is none, or if it has expired. */
struct entry *store_find(struct store *, struct arg key);
struct entry *store_find_text(struct store *, const char *key);

/* Free the memory that scripts have left. */
void script_tidy(void);

/* Replace `from` by `to` in the source of the scripts, before the first one runs. */
void script_mutate(const char *from, const char *to);

#endif
