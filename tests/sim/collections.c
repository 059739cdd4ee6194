/* SPDX-License-Identifier: MIT */
/* The hashes and lists of the store, and the code they share with sorted sets. */
#include <string.h>

#include "arena.h"
#include "entry.h"

struct item *
entry_item(const struct entry *e, struct arg name)
{
	for (int i = 0; e != NULL && i < e->items; i++) {
		if (arg_same(e->item[i].name, name))
			return &e->item[i];
	}
	return NULL;
}

/* Insert an item at an index; the items from there on move up. */
struct item *
entry_insert(struct entry *e, int at, struct arg name)
{
	const int room = e->room == 0 ? 12 : e->room * 2;
	struct item *grown;

	if (e->items == e->room) {
		grown = arena_alloc((size_t)room * sizeof(*grown));
		if (e->items > 0)
			memcpy(grown, e->item, (size_t)e->items * sizeof(*grown));
		e->item = grown;
		e->room = room;
	}
	memmove(e->item + at + 1, e->item + at, (size_t)(e->items - at) * sizeof(*e->item));
	e->items++;
	e->item[at] = (struct item){ .name = arg_copy(name) };
	return &e->item[at];
}

void
entry_take_out(struct entry *e, int at)
{
	e->items--;
	memmove(e->item + at, e->item + at + 1, (size_t)(e->items - at) * sizeof(*e->item));
}

void
entry_drop_if_empty(struct store *s, struct arg key, const struct entry *e)
{
	if (e != NULL && e->items == 0)
		(void)entry_drop(s, key);
}

struct value *
value_of_arg(struct arg a)
{
	return value_text(VALUE_TEXT, a.bytes, a.length);
}

struct value *
run_size(struct store *s, struct entry *e, int argc, const struct arg *a)
{
	return value_integer(e == NULL ? 0 : e->items);
}

/* -- Hashes -------------------------------------------------------------------- */

static void
set_field(struct entry *e, struct arg name, struct arg value)
{
	struct item *item = entry_item(e, name);

	if (item == NULL)
		item = entry_insert(e, e->items, name);
	item->value = value;
}

struct value *
run_hset(struct store *s, struct entry *e, int argc, const struct arg *a)
{
	int before;

	if (argc % 2 != 0)
		return value_error("ERR wrong number of arguments for 'hset' command");
	e = entry_make(s, a[1], TYPE_HASH);
	before = e->items;
	for (int i = 2; i < argc; i += 2)
		set_field(e, a[i], arg_copy(a[i + 1]));
	return value_integer(e->items - before);
}

static struct value *
field(const struct entry *e, struct arg name)
{
	const struct item *item = entry_item(e, name);

	return item == NULL ? value_of(VALUE_NIL) : value_of_arg(item->value);
}

struct value *
run_hget(struct store *s, struct entry *e, int argc, const struct arg *a)
{
	return field(e, a[2]);
}

struct value *
run_hmget(struct store *s, struct entry *e, int argc, const struct arg *a)
{
	struct value *v = value_list((size_t)argc - 2);

	for (int i = 2; i < argc; i++)
		v->item[i - 2] = field(e, a[i]);
	return v;
}

struct value *
run_hincrby(struct store *s, struct entry *e, int argc, const struct arg *a)
{
	const struct item *old = entry_item(e, a[2]);
	const struct value *sum;
	int64_t n = 0, by;

	if (!arg_number(a[3], &by))
		return value_error("ERR value is not an integer or out of range");
	if (old != NULL && !arg_number(old->value, &n))
		return value_error("ERR hash value is not an integer");
	sum = value_digits(n + by);
	set_field(entry_make(s, a[1], TYPE_HASH), a[2], (struct arg){ sum->text, sum->length });
	return value_integer(n + by);
}

struct value *
run_hkeys(struct store *s, struct entry *e, int argc, const struct arg *a)
{
	struct value *v = value_list(e == NULL ? 0 : (size_t)e->items);

	for (size_t i = 0; i < v->items; i++)
		v->item[i] = value_of_arg(e->item[i].name);
	return v;
}

/* -- Lists --------------------------------------------------------------------- */

static struct value *
push(struct store *s, int argc, const struct arg *a, bool in_front)
{
	struct entry *e = entry_make(s, a[1], TYPE_LIST);

	for (int i = 2; i < argc; i++)
		(void)entry_insert(e, in_front ? 0 : e->items, a[i]);
	return value_integer(e->items);
}

struct value *
run_rpush(struct store *s, struct entry *e, int argc, const struct arg *a)
{
	return push(s, argc, a, false);
}

struct value *
run_lpush(struct store *s, struct entry *e, int argc, const struct arg *a)
{
	return push(s, argc, a, true);
}

static struct value *
pop(struct store *s, struct arg key, struct entry *e)
{
	struct value *v = value_of_arg(e->item[0].name);

	entry_take_out(e, 0);
	entry_drop_if_empty(s, key, e);
	return v;
}

struct value *
run_lpop(struct store *s, struct entry *e, int argc, const struct arg *a)
{
	return e == NULL ? value_of(VALUE_NIL) : pop(s, a[1], e);
}

struct value *
run_lindex(struct store *s, struct entry *e, int argc, const struct arg *a)
{
	int64_t i;

	if (e == NULL)
		return value_of(VALUE_NIL);
	if (!arg_number(a[2], &i))
		return value_error("ERR value is not an integer or out of range");
	if (i < 0)
		i += e->items;
	return i < 0 || i >= e->items ? value_of(VALUE_NIL) : value_of_arg(e->item[i].name);
}

struct value *
run_lrange(struct store *s, struct entry *e, int argc, const struct arg *a)
{
	const int items = e == NULL ? 0 : e->items;
	int64_t from, to;
	struct value *v;

	if (!arg_number(a[2], &from) || !arg_number(a[3], &to))
		return value_error("ERR value is not an integer or out of range");
	from = from >= 0 ? from : from + items >= 0 ? from + items : 0;
	to = to < 0 ? to + items + 1 : to < items ? to + 1 : items;
	v = value_list(from < to ? (size_t)(to - from) : 0);
	for (size_t i = 0; i < v->items; i++)
		v->item[i] = value_of_arg(e->item[(size_t)from + i].name);
	return v;
}

struct value *
run_lset(struct store *s, struct entry *e, int argc, const struct arg *a)
{
	int64_t i;

	if (e == NULL)
		return value_error("ERR no such key");
	if (!arg_number(a[2], &i))
		return value_error("ERR value is not an integer or out of range");
	if (i < 0)
		i += e->items;
	if (i < 0 || i >= e->items)
		return value_error("ERR index out of range");
	e->item[i].name = arg_copy(a[3]);
	return value_ok();
}

/* Only with indices that are not negative, except -1 for the end. */
struct value *
run_ltrim(struct store *s, struct entry *e, int argc, const struct arg *a)
{
	int64_t from, to;

	if (!arg_number(a[2], &from) || !arg_number(a[3], &to))
		return value_error("ERR value is not an integer or out of range");
	if (e == NULL)
		return value_ok();
	while (to >= 0 && e->items > to + 1)
		entry_take_out(e, e->items - 1);
	for (; from > 0 && e->items > 0; from--)
		entry_take_out(e, 0);
	entry_drop_if_empty(s, a[1], e);
	return value_ok();
}

/* The caller handles the timeout. */
struct value *
run_blpop(struct store *s, struct entry *e, int argc, const struct arg *a)
{
	struct value *v;

	for (int i = 1; i < argc - 1; i++) {
		e = store_find(s, a[i]);
		if (e == NULL)
			continue;
		if (e->type != TYPE_LIST)
			return value_error("WRONGTYPE Operation against a key holding the wrong kind of value");
		v = value_list(2);
		v->item[0] = value_of_arg(a[i]);
		v->item[1] = pop(s, a[i], e);
		return v;
	}
	return value_of(VALUE_NIL);
}
