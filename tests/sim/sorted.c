/* SPDX-License-Identifier: MIT */
/* The sorted sets of the store. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "entry.h"

struct range {
	double low, high;
	bool without_low, without_high;
};

static bool
read_score(struct arg a, double *score)
{
	char *end;

	if (a.length == 0 || strchr(" \t\n", a.bytes[0]) != NULL)
		return false;
	*score = strtod(a.bytes, &end);
	return end == a.bytes + a.length && !isnan(*score);
}

static bool
read_bound(struct arg a, double *score, bool *without)
{
	*without = a.length > 0 && a.bytes[0] == '(';
	if (*without)
		a = (struct arg){ a.bytes + 1, a.length - 1 };
	return read_score(a, score);
}

static bool
read_range(const struct arg *a, struct range *r)
{
	return read_bound(a[0], &r->low, &r->without_low) && read_bound(a[1], &r->high, &r->without_high);
}

static bool
is_in(const struct range *r, double score)
{
	return (r->without_low ? score > r->low : score >= r->low) &&
	    (r->without_high ? score < r->high : score <= r->high);
}

static bool
sorts_before(const struct item *a, double score, struct arg name)
{
	const size_t shorter = a->name.length < name.length ? a->name.length : name.length;
	int order;

	if (a->score < score || a->score > score)
		return a->score < score;
	order = memcmp(a->name.bytes, name.bytes, shorter);
	return order != 0 ? order < 0 : a->name.length < name.length;
}

static void
put_member(struct entry *e, struct arg name, double score)
{
	int at = 0;

	while (at < e->items && sorts_before(&e->item[at], score, name))
		at++;
	entry_insert(e, at, name)->score = score;
}

static struct value *
score_text(double score)
{
	char digits[40];

	(void)snprintf(digits, sizeof(digits), floor(score) == score && fabs(score) < 1e15 ? "%.0f" : "%.17g", score);
	return value_text(VALUE_TEXT, digits, strlen(digits));
}

struct value *
run_zadd(struct store *s, struct entry *e, int argc, const struct arg *a)
{
	const int from = strcasecmp(a[2].bytes, "NX") == 0 ? 3 : 2;
	int added = 0;
	struct item *item;
	double score;

	if (argc == from || (argc - from) % 2 != 0)
		return value_error("ERR syntax error");
	for (int i = from; i < argc; i += 2) {
		if (!read_score(a[i], &score))
			return value_error("ERR value is not a valid float");
	}
	e = entry_make(s, a[1], TYPE_ZSET);
	for (int i = from; i < argc; i += 2) {
		(void)read_score(a[i], &score);
		item = entry_item(e, a[i + 1]);
		added += item == NULL;
		if (item != NULL && from == 3)
			continue;
		if (item != NULL)
			entry_take_out(e, (int)(item - e->item));
		put_member(e, a[i + 1], score);
	}
	return value_integer(added);
}

struct value *
run_zrem(struct store *s, struct entry *e, int argc, const struct arg *a)
{
	const struct item *item;
	int removed = 0;

	for (int i = 2; i < argc; i++) {
		item = entry_item(e, a[i]);
		if (item == NULL)
			continue;
		entry_take_out(e, (int)(item - e->item));
		removed++;
	}
	entry_drop_if_empty(s, a[1], e);
	return value_integer(removed);
}

struct value *
run_zscore(struct store *s, struct entry *e, int argc, const struct arg *a)
{
	const struct item *item = entry_item(e, a[2]);

	return item == NULL ? value_of(VALUE_NIL) : score_text(item->score);
}

/* ZCOUNT, and with `removing` ZREMRANGEBYSCORE */
static struct value *
by_score(struct store *s, struct entry *e, const struct arg *a, bool removing)
{
	struct range range;
	int count = 0;

	if (!read_range(a + 2, &range))
		return value_error("ERR min or max is not a float");
	for (int i = e == NULL ? -1 : e->items - 1; i >= 0; i--) {
		if (!is_in(&range, e->item[i].score))
			continue;
		count++;
		if (removing)
			entry_take_out(e, i);
	}
	entry_drop_if_empty(s, a[1], e);
	return value_integer(count);
}

struct value *
run_zcount(struct store *s, struct entry *e, int argc, const struct arg *a)
{
	return by_score(s, e, a, false);
}

struct value *
run_zremrangebyscore(struct store *s, struct entry *e, int argc, const struct arg *a)
{
	return by_score(s, e, a, true);
}

/* Append a member, with its score if `scores` is set. */
static void
tell(struct value *v, const struct item *item, bool scores)
{
	v->item[v->items++] = value_of_arg(item->name);
	if (scores)
		v->item[v->items++] = score_text(item->score);
}

static struct value *
room_for(const struct entry *e)
{
	struct value *v = value_list(e == NULL ? 0 : 2 * (size_t)e->items);

	v->items = 0;
	return v;
}

struct value *
run_zrangebyscore(struct store *s, struct entry *e, int argc, const struct arg *a)
{
	struct value *v = room_for(e);
	int64_t skip = 0, most = -1;
	bool scores = false;
	struct range range;

	if (!read_range(a + 2, &range))
		return value_error("ERR min or max is not a float");
	for (int i = 4; i < argc; i++) {
		if (strcasecmp(a[i].bytes, "WITHSCORES") == 0)
			scores = true;
		else if (strcasecmp(a[i].bytes, "LIMIT") != 0 || i + 2 >= argc)
			return value_error("ERR syntax error");
		else if (!arg_number(a[i + 1], &skip) || !arg_number(a[i + 2], &most))
			return value_error("ERR value is not an integer or out of range");
		else
			i += 2;
	}
	if (skip < 0)
		return v;
	for (int i = 0; e != NULL && i < e->items && most != 0; i++) {
		if (!is_in(&range, e->item[i].score) || skip-- > 0)
			continue;
		tell(v, &e->item[i], scores);
		most--;
	}
	return v;
}

struct value *
run_zrevrange(struct store *s, struct entry *e, int argc, const struct arg *a)
{
	const int64_t items = e == NULL ? 0 : e->items;
	struct value *v = room_for(e);
	int64_t from, to;

	if (!arg_number(a[2], &from) || !arg_number(a[3], &to))
		return value_error("ERR value is not an integer or out of range");
	if (argc == 5 && strcasecmp(a[4].bytes, "WITHSCORES") != 0)
		return value_error("ERR syntax error");
	from = from < 0 ? from + items : from;
	from = from < 0 ? 0 : from;
	to = to < 0 ? to + items : to;
	for (; from <= to && from < items; from++)
		tell(v, &e->item[items - 1 - from], argc == 5);
	return v;
}
