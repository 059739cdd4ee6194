/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_SIM_ENTRY_H
#define DLOCK_SIM_ENTRY_H
/* What the files of the store share. */
#include "store.h"

struct value *value_of(enum value_kind);
struct value *value_integer(int64_t);
struct value *value_text(enum value_kind, const char *bytes, size_t length);
struct value *value_error(const char *);
struct value *value_ok(void);
struct value *value_list(size_t items);

bool arg_same(struct arg, struct arg);
struct arg arg_copy(struct arg);

/* A whole number as Redis takes one. */
bool arg_number(struct arg, int64_t *);

/* Find or make; the type has been checked. */
struct entry *entry_make(struct store *, struct arg key, enum type);
bool entry_drop(struct store *, struct arg key);

/* Its items: one by name, NULL if there is none; a new one at a place, before those that follow; and without one. */
struct item *entry_item(const struct entry *, struct arg name);
struct item *entry_insert(struct entry *, int at, struct arg name);
void entry_take_out(struct entry *, int at);
void entry_drop_if_empty(struct store *, struct arg key, const struct entry *);

/* How many of them the first argument's key has. */
struct value *entry_size(struct store *, const struct arg *);
struct value *value_of_arg(struct arg);

/* The commands on hashes, lists and sorted sets. */
typedef struct value *command_run(struct store *, int argc, const struct arg *);
command_run run_hset, run_hget, run_hmget, run_hincrby, run_hlen, run_hkeys;
command_run run_rpush, run_lpush, run_lpop, run_lindex, run_llen, run_blpop;
command_run run_zadd, run_zrem, run_zcard, run_zcount, run_zscore, run_zrangebyscore, run_zrevrange;
command_run run_zremrangebyscore;
command_run run_eval;

/* Run what a script calls; scripts call no scripts. */
struct value *store_call(struct store *, int argc, const struct arg *);

#endif
