/* SPDX-License-Identifier: MIT */
#include "cli/columns.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/duration.h"
#include "base/text.h"
#include "cli/output.h"
#include "cli/view.h"

static void
fill_key(char cell[CELL_MAX], const char *key, const struct lock_status *v)
{
	(void)v;
	(void)text_show(key, cell, CELL_MAX);
}

static void
fill_state(char cell[CELL_MAX], const char *key, const struct lock_status *v)
{
	(void)key;
	(void)snprintf(cell, CELL_MAX, "%s", output_state(v->state));
}

static void
fill_ttl(char cell[CELL_MAX], const char *key, const struct lock_status *v)
{
	(void)key;
	if (view_is_held(v))
		duration_show(v->holder.left_ms < 0 ? DURATION_FOREVER : v->holder.left_ms, cell, CELL_MAX);
}

/* The owner of a foreign lock is unknown; show the likely client instead. */
static void
fill_owner(char cell[CELL_MAX], const char *key, const struct lock_status *v)
{
	char client[CLIENT_SIZE];

	(void)key;
	if (v->state == LOCK_OTHER_CLIENT && view_client(&v->holder, client) != NULL)
		(void)snprintf(cell, CELL_MAX, "(%s)", client);
	else if (view_is_held(v))
		(void)text_show(v->holder.owner, cell, CELL_MAX);
}

static void
fill_part_of_owner(char cell[CELL_MAX], const struct lock_status *v, int part)
{
	char owner[OWNER_MAX + 1];
	const char *parts[3];

	if (!view_is_held(v))
		return;
	memcpy(owner, v->holder.owner, sizeof(owner));
	output_split_owner(owner, &parts[0], &parts[1], &parts[2]);
	(void)text_show(parts[part], cell, CELL_MAX);
}

static void
fill_user(char cell[CELL_MAX], const char *key, const struct lock_status *v)
{
	(void)key;
	fill_part_of_owner(cell, v, 0);
}

static void
fill_host(char cell[CELL_MAX], const char *key, const struct lock_status *v)
{
	(void)key;
	fill_part_of_owner(cell, v, 1);
}

static void
fill_pid(char cell[CELL_MAX], const char *key, const struct lock_status *v)
{
	(void)key;
	fill_part_of_owner(cell, v, 2);
}

static void
fill_label(char cell[CELL_MAX], const char *key, const struct lock_status *v)
{
	(void)key;
	if (view_is_held(v))
		(void)text_show(v->holder.label, cell, CELL_MAX);
}

/* The time, and the number of holds if the lock was entered again. */
static void
fill_held(char cell[CELL_MAX], const char *key, const struct lock_status *v)
{
	char length[32];

	(void)key;
	if (!view_is_held(v) || v->holder.other_client)
		return;
	duration_show(v->holder.held_ms, length, sizeof(length));
	if (v->holder.holds > 1)
		(void)snprintf(cell, CELL_MAX, "%s (%" PRId64 " holds)", length, v->holder.holds);
	else
		(void)snprintf(cell, CELL_MAX, "%s", length);
}

static void
fill_fence(char cell[CELL_MAX], const char *key, const struct lock_status *v)
{
	(void)key;
	if (view_is_held(v) && v->holder.fence > 0)
		(void)snprintf(cell, CELL_MAX, "%" PRId64, v->holder.fence);
}

static void
fill_waiting(char cell[CELL_MAX], const char *key, const struct lock_status *v)
{
	(void)key;
	if (view_is_held(v) && v->holder.waiting > 0)
		(void)snprintf(cell, CELL_MAX, "%" PRId64, v->holder.waiting);
}

static void
fill_nodes(char cell[CELL_MAX], const char *key, const struct lock_status *v)
{
	(void)key;
	(void)snprintf(cell, CELL_MAX, "%d/%d", v->agreeing, v->nodes);
}

static void
fill_client(char cell[CELL_MAX], const char *key, const struct lock_status *v)
{
	char client[CLIENT_SIZE];

	(void)key;
	if (view_is_held(v) && view_client(&v->holder, client) != NULL)
		(void)snprintf(cell, CELL_MAX, "%s", client);
}

static void
fill_token(char cell[CELL_MAX], const char *key, const struct lock_status *v)
{
	char hint[TOKEN_HINT_SIZE];

	(void)key;
	(void)snprintf(hint, sizeof(hint), "%.4s", v->holder.token);
	if (view_is_held(v))
		(void)text_show(hint, cell, CELL_MAX);
}

static const struct column all[] = {
	{ "KEY", fill_key, true, true, false },
	{ "STATE", fill_state, true, false, true },
	{ "TTL", fill_ttl, true, false, false },
	{ "OWNER", fill_owner, true, true, false },
	{ "LABEL", fill_label, true, true, false },
	{ "HELD", fill_held, true, false, false },
	{ "FENCE", fill_fence, true, false, false },
	{ "WAITING", fill_waiting, true, false, false },
	{ "NODES", fill_nodes, true, false, false },
	{ "USER", fill_user, false, true, false },
	{ "HOST", fill_host, false, true, false },
	{ "PID", fill_pid, false, false, false },
	{ "CLIENT", fill_client, false, true, false },
	{ "TOKEN", fill_token, false, false, false },
};

#define ALL ((int)(sizeof(all) / sizeof(all[0])))

static enum status
unknown_column(const char *name, size_t length, struct err *err)
{
	struct text text = text_in(err->text, sizeof(err->text));
	int i;

	text_addf(&text, "--output: unknown column '");
	text_add_shown(&text, name, length);
	text_addf(&text, "'; the columns are");
	for (i = 0; i < ALL; i++)
		text_addf(&text, "%s %s", i > 0 ? "," : "", all[i].name);
	return ST_USAGE;
}

static enum status
choose_one(struct columns *c, const char *name, size_t length, struct err *err)
{
	int i;

	for (i = 0; i < ALL; i++) {
		if (strlen(all[i].name) == length && strncasecmp(all[i].name, name, length) == 0)
			break;
	}
	if (i == ALL)
		return unknown_column(name, length, err);
	if (c->count == COLUMNS_MAX)
		return err_set(err, ST_USAGE, "--output: more than %d columns", COLUMNS_MAX);
	c->column[c->count++] = &all[i];
	return ST_OK;
}

enum status
columns_choose(struct columns *c, const char *names, struct err *err)
{
	enum status status = ST_OK;
	size_t length;
	int i;

	c->count = 0;
	for (i = 0; names == NULL && i < ALL; i++) {
		if (all[i].usual)
			c->column[c->count++] = &all[i];
	}
	while (names != NULL && status == ST_OK) {
		length = strcspn(names, ",");
		status = choose_one(c, names, length, err);
		names = names[length] == ',' ? names + length + 1 : NULL;
	}
	return status;
}
