/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_SIM_ENTRY_H
#define DLOCK_SIM_ENTRY_H
/* Shared by the files of the store. */
#include "store.h"

struct value *value_of(enum value_kind);
struct value *value_integer(int64_t);
struct value *value_text(enum value_kind, const char *bytes, size_t length);
struct value *value_digits(int64_t);
struct value *value_error(const char *);
struct value *value_ok(void);
struct value *value_list(size_t items);

bool arg_same(struct arg, struct arg);
struct arg arg_copy(struct arg);

/* Parse an integer as Redis does. */
bool arg_number(struct arg, int64_t *);

/* Find or create an entry; the caller has checked the type. */
struct entry *entry_make(struct store *, struct arg key, enum type);
bool entry_drop(struct store *, struct arg key);

/* Items of an entry: find one by name (NULL: none), insert one at an index, remove one. */
struct item *entry_item(const struct entry *, struct arg name);
struct item *entry_insert(struct entry *, int at, struct arg name);
void entry_take_out(struct entry *, int at);
void entry_drop_if_empty(struct store *, struct arg key, const struct entry *);

struct value *value_of_arg(struct arg);

/* The commands on hashes, lists and sorted sets, with the entry of their first key; run_size is HLEN, LLEN, ZCARD. */
typedef struct value *command_run(struct store *, struct entry *, int argc, const struct arg *);
command_run run_hset, run_hget, run_hmget, run_hincrby, run_hkeys, run_size;
command_run run_rpush, run_lpush, run_lpop, run_lindex, run_lrange, run_lset, run_ltrim;
command_run run_blpop;
command_run run_zadd, run_zrem, run_zcount, run_zscore, run_zrangebyscore, run_zrevrange;
command_run run_zremrangebyscore;
command_run run_eval;

#endif
