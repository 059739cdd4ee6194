/* SPDX-License-Identifier: MIT */
#include "store.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "arena.h"
#include "entry.h"

struct value *
value_of(enum value_kind kind)
{
	struct value *v = arena_alloc(sizeof(*v));

	v->kind = kind;
	return v;
}

struct value *
value_integer(int64_t n)
{
	struct value *v = value_of(VALUE_INTEGER);

	v->integer = n;
	return v;
}

struct value *
value_text(enum value_kind kind, const char *bytes, size_t length)
{
	struct value *v = value_of(kind);

	v->text = arena_copy(bytes, length);
	v->length = length;
	return v;
}

struct value *
value_error(const char *text)
{
	return value_text(VALUE_ERROR, text, strlen(text));
}

struct value *
value_ok(void)
{
	return value_text(VALUE_STATUS, "OK", 2);
}

struct value *
value_digits(int64_t n)
{
	char digits[24];

	(void)snprintf(digits, sizeof(digits), "%" PRId64, n);
	return value_text(VALUE_TEXT, digits, strlen(digits));
}

struct value *
value_list(size_t items)
{
	struct value *v = value_of(VALUE_LIST);

	v->items = items;
	v->item = arena_alloc((items + 1) * sizeof(struct value *));
	return v;
}

bool
arg_same(struct arg a, struct arg b)
{
	return a.length == b.length && memcmp(a.bytes, b.bytes, a.length) == 0;
}

struct arg
arg_copy(struct arg a)
{
	return (struct arg){ arena_copy(a.bytes, a.length), a.length };
}

bool
arg_number(struct arg a, int64_t *n)
{
	const char *digits = a.bytes + (a.length > 1 && a.bytes[0] == '-');
	char *end;

	if (a.length == 0 || a.length > 20 || strspn(digits, "0123456789") != a.length - (size_t)(digits - a.bytes))
		return false;
	if (digits[0] == '0' && a.length > 1)
		return false;
	*n = strtoll(a.bytes, &end, 10);
	return true;
}

static void
forget(struct store *s, int i)
{
	s->entry[i] = s->entry[--s->keys];
}

static int
place_of(struct store *s, struct arg key)
{
	for (int i = 0; i < s->keys; i++) {
		if (!arg_same(s->entry[i]->key, key))
			continue;
		if (s->entry[i]->expires_ms < 0 || s->entry[i]->expires_ms >= s->now_us / 1000)
			return i;
		forget(s, i);
		return -1;
	}
	return -1;
}

struct entry *
store_find(struct store *s, struct arg key)
{
	const int i = place_of(s, key);

	return i < 0 ? NULL : s->entry[i];
}

struct entry *
store_find_text(struct store *s, const char *key)
{
	return store_find(s, (struct arg){ key, strlen(key) });
}

bool
entry_drop(struct store *s, struct arg key)
{
	const int i = place_of(s, key);

	if (i >= 0)
		forget(s, i);
	return i >= 0;
}

struct entry *
entry_make(struct store *s, struct arg key, enum type type)
{
	struct entry *e = store_find(s, key);

	if (e != NULL)
		return e;
	if (s->keys == STORE_KEYS)
		abort();
	e = arena_alloc(sizeof(*e));
	e->key = arg_copy(key);
	e->type = type;
	e->expires_ms = -1;
	s->entry[s->keys++] = e;
	return e;
}

void
store_save(const struct store *s, struct store *copy)
{
	struct entry *e;

	*copy = *s;
	for (int i = 0; i < s->keys; i++) {
		e = copy->entry[i] = arena_alloc(sizeof(*e));
		*e = *s->entry[i];
		if (e->items == 0)
			continue;
		e->item = arena_alloc((size_t)e->room * sizeof(e->item[0]));
		memcpy(e->item, s->entry[i]->item, (size_t)e->items * sizeof(e->item[0]));
	}
}

void
store_empty(struct store *s)
{
	s->keys = 0;
}

static struct value *
run_set(struct store *s, struct entry *e, int argc, const struct arg *a)
{
	int64_t px = -1;
	bool absent_only = false;

	for (int i = 3; i < argc; i++) {
		if (strcasecmp(a[i].bytes, "NX") == 0)
			absent_only = true;
		else if (strcasecmp(a[i].bytes, "PX") != 0 || i + 1 >= argc || px >= 0)
			return value_error("ERR syntax error");
		else if (!arg_number(a[++i], &px))
			return value_error("ERR value is not an integer or out of range");
		else if (px <= 0)
			return value_error("ERR invalid expire time in 'set' command");
	}
	if (absent_only && e != NULL)
		return value_of(VALUE_NIL);
	(void)entry_drop(s, a[1]);
	e = entry_make(s, a[1], TYPE_STRING);
	e->string = arg_copy(a[2]);
	if (px >= 0)
		e->expires_ms = s->now_us / 1000 + px;
	return value_ok();
}

static struct value *
run_get(struct store *s, struct entry *e, int argc, const struct arg *a)
{
	return e == NULL ? value_of(VALUE_NIL) : value_text(VALUE_TEXT, e->string.bytes, e->string.length);
}

static struct value *
run_del(struct store *s, struct entry *e, int argc, const struct arg *a)
{
	int dropped = 0;

	for (int i = 1; i < argc; i++)
		dropped += entry_drop(s, a[i]);
	return value_integer(dropped);
}

static struct value *
run_exists(struct store *s, struct entry *e, int argc, const struct arg *a)
{
	int found = 0;

	for (int i = 1; i < argc; i++)
		found += store_find(s, a[i]) != NULL;
	return value_integer(found);
}

static struct value *
run_type(struct store *s, struct entry *e, int argc, const struct arg *a)
{
	static const char *const names[] = { "string", "hash", "list", "zset" };
	const char *name = e == NULL ? "none" : names[e->type];

	return value_text(VALUE_STATUS, name, strlen(name));
}

static struct value *
run_pexpire(struct store *s, struct entry *e, int argc, const struct arg *a)
{
	int64_t ms;

	if (!arg_number(a[2], &ms))
		return value_error("ERR value is not an integer or out of range");
	if (e == NULL)
		return value_integer(0);
	if (ms <= 0)
		(void)entry_drop(s, a[1]);
	else
		e->expires_ms = s->now_us / 1000 + ms;
	return value_integer(1);
}

static struct value *
run_pttl(struct store *s, struct entry *e, int argc, const struct arg *a)
{
	if (e == NULL)
		return value_integer(-2);
	return value_integer(e->expires_ms < 0 ? -1 : e->expires_ms - s->now_us / 1000);
}

static struct value *
run_time(struct store *s, struct entry *e, int argc, const struct arg *a)
{
	struct value *v = value_list(2);

	v->item[0] = value_digits(s->now_us / 1000000);
	v->item[1] = value_digits(s->now_us % 1000000);
	return v;
}

static struct value *
run_info(struct store *s, struct entry *e, int argc, const struct arg *a)
{
	char info[200];

	(void)snprintf(info, sizeof(info), "# Server\r\nrun_id:%s\r\nuptime_in_seconds:%" PRId64 "\r\n", s->run_id,
	    (s->now_us - s->started_us) / 1000000);
	return value_text(VALUE_TEXT, info, strlen(info));
}

enum {
	ANY = -1
};

/* In the order of their names.  `most` 0: no limit.  `type` is the type that the key must have. */
static const struct command {
	const char *name;
	int least, most; /* number of arguments, name included */
	int type;
	command_run *run;
} commands[] = {
	{ "BLPOP", 3, 0, TYPE_LIST, run_blpop },
	{ "DEL", 2, 0, ANY, run_del },
	{ "EVAL", 3, 0, ANY, run_eval },
	{ "EXISTS", 2, 0, ANY, run_exists },
	{ "GET", 2, 2, TYPE_STRING, run_get },
	{ "HGET", 3, 3, TYPE_HASH, run_hget },
	{ "HINCRBY", 4, 4, TYPE_HASH, run_hincrby },
	{ "HKEYS", 2, 2, TYPE_HASH, run_hkeys },
	{ "HLEN", 2, 2, TYPE_HASH, run_size },
	{ "HMGET", 3, 0, TYPE_HASH, run_hmget },
	{ "HSET", 4, 0, TYPE_HASH, run_hset },
	{ "INFO", 1, 0, ANY, run_info },
	{ "LINDEX", 3, 3, TYPE_LIST, run_lindex },
	{ "LLEN", 2, 2, TYPE_LIST, run_size },
	{ "LPOP", 2, 2, TYPE_LIST, run_lpop },
	{ "LPUSH", 3, 0, TYPE_LIST, run_lpush },
	{ "LRANGE", 4, 4, TYPE_LIST, run_lrange },
	{ "LSET", 4, 4, TYPE_LIST, run_lset },
	{ "LTRIM", 4, 4, TYPE_LIST, run_ltrim },
	{ "PEXPIRE", 3, 3, ANY, run_pexpire },
	{ "PTTL", 2, 2, ANY, run_pttl },
	{ "RPUSH", 3, 0, TYPE_LIST, run_rpush },
	{ "SET", 3, 0, ANY, run_set },
	{ "TIME", 1, 1, ANY, run_time },
	{ "TYPE", 2, 2, ANY, run_type },
	{ "ZADD", 4, 0, TYPE_ZSET, run_zadd },
	{ "ZCARD", 2, 2, TYPE_ZSET, run_size },
	{ "ZCOUNT", 4, 4, TYPE_ZSET, run_zcount },
	{ "ZRANGEBYSCORE", 4, 0, TYPE_ZSET, run_zrangebyscore },
	{ "ZREM", 3, 0, TYPE_ZSET, run_zrem },
	{ "ZREMRANGEBYSCORE", 4, 4, TYPE_ZSET, run_zremrangebyscore },
	{ "ZREVRANGE", 4, 5, TYPE_ZSET, run_zrevrange },
	{ "ZSCORE", 3, 3, TYPE_ZSET, run_zscore },
};

static int
by_name(const void *name, const void *command)
{
	return strcasecmp(name, ((const struct command *)command)->name);
}

struct value *
store_run(struct store *s, int argc, const struct arg *a, bool by_script)
{
	const struct command *c = argc > 0
	    ? bsearch(a[0].bytes, commands, sizeof(commands) / sizeof(commands[0]), sizeof(commands[0]), by_name)
	    : NULL;
	struct entry *e;
	char text[120];

	if (c == NULL || (by_script && c->run == run_eval)) {
		(void)snprintf(text, sizeof(text), "ERR unknown command '%.60s'", argc > 0 ? a[0].bytes : "");
		return value_error(text);
	}
	if (argc < c->least || (c->most > 0 && argc > c->most)) {
		(void)snprintf(text, sizeof(text), "ERR wrong number of arguments for '%.60s' command", c->name);
		return value_error(text);
	}
	e = argc > 1 ? store_find(s, a[1]) : NULL;
	if (c->type != ANY && e != NULL && (int)e->type != c->type)
		return value_error("WRONGTYPE Operation against a key holding the wrong kind of value");
	return c->run(s, e, argc, a);
}
