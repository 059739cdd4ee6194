/* SPDX-License-Identifier: MIT */
#include "cli/view.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/output.h"

/* -- JSON ------------------------------------------------------------------- */

static void
json_owner(struct json *j, const char *owner)
{
	char copy[OWNER_MAX + 1];
	const char *user, *host, *pid;

	if (owner[0] == '\0') {
		json_null(j, "owner");
		return;
	}
	(void)snprintf(copy, sizeof(copy), "%s", owner);
	output_split_owner(copy, &user, &host, &pid);
	json_open(j, "owner", '{');
	json_string(j, "user", user);
	json_string(j, "host", host);
	json_number(j, "pid", strtoll(pid, NULL, 10));
	json_close(j, '}');
}

static void
json_number_or_null(struct json *j, const char *name, int64_t value, bool known)
{
	if (known)
		json_number(j, name, value);
	else
		json_null(j, name);
}

static void
json_nodes(struct json *j, const struct lock_view *v)
{
	int i;

	json_open(j, "nodes", '[');
	for (i = 0; i < v->nodes; i++) {
		json_open(j, NULL, '{');
		json_string(j, "node", v->node[i].name);
		json_string(j, "state", output_state(v->node[i].state));
		json_number(j, "ttl_ms", v->node[i].left_ms);
		if (v->node[i].state == LOCK_UNKNOWN)
			json_string(j, "error", v->node[i].err.text);
		else
			json_null(j, "error");
		json_close(j, '}');
	}
	json_close(j, ']');
}

static bool
has_holder(const struct lock_view *v)
{
	return v->state == LOCK_HELD || v->state == LOCK_HANDOVER || v->state == LOCK_FOREIGN;
}

void
view_print_json(const char *key, const struct lock_view *v)
{
	const struct holder *h = &v->holder;
	const bool held = has_holder(v);
	struct json j = { .out = stdout };
	char hint[TOKEN_HINT_SIZE];

	(void)snprintf(hint, sizeof(hint), "%.4s", h->token);
	json_open(&j, NULL, '{');
	json_string(&j, "key", key);
	json_string(&j, "state", output_state(v->state));
	json_number(&j, "ttl_ms", held ? h->left_ms : 0);
	json_owner(&j, h->owner);
	if (h->label[0] != '\0')
		json_string(&j, "label", h->label);
	else
		json_null(&j, "label");
	json_number_or_null(&j, "held_ms", h->held_ms, held && !h->foreign);
	json_number_or_null(&j, "fence", h->fence, h->fence > 0);
	json_number(&j, "waiting", h->waiting);
	json_number(&j, "holds", held && !h->foreign ? h->holds : 0);
	if (hint[0] != '\0')
		json_string(&j, "token_hint", hint);
	else
		json_null(&j, "token_hint");
	json_nodes(&j, v);
	json_close(&j, '}');
	putchar('\n');
}

/* -- Table ------------------------------------------------------------------ */

enum {
	KEY,
	STATE,
	TTL,
	OWNER,
	LABEL,
	HELD,
	FENCE,
	WAITING,
	NODES,
	COLUMNS
};

static const char *const headings[COLUMNS] = { "KEY", "STATE", "TTL", "OWNER", "LABEL", "HELD", "FENCE", "WAITING",
	"NODES" };

struct row {
	char cell[COLUMNS][512];
};

/* For how long, and how often if it was entered again. */
static void
fill_held(struct row *row, const struct holder *h)
{
	char length[32];

	duration_show(h->held_ms, length, sizeof(length));
	if (h->holds > 1)
		(void)snprintf(row->cell[HELD], sizeof(row->cell[HELD]), "%s (%" PRId64 " holds)", length, h->holds);
	else
		(void)snprintf(row->cell[HELD], sizeof(row->cell[HELD]), "%s", length);
}

static void
fill_row(struct row *row, const char *key, const struct lock_view *v)
{
	const struct holder *h = &v->holder;
	int i;

	for (i = 0; i < COLUMNS; i++)
		memcpy(row->cell[i], "-", 2);
	(void)text_show(key, row->cell[KEY], sizeof(row->cell[KEY]));
	(void)snprintf(row->cell[STATE], sizeof(row->cell[STATE]), "%s", output_state(v->state));
	(void)snprintf(row->cell[NODES], sizeof(row->cell[NODES]), "%d/%d", v->agreeing, v->nodes);
	if (!has_holder(v))
		return;
	duration_show(h->left_ms < 0 ? DURATION_FOREVER : h->left_ms, row->cell[TTL], sizeof(row->cell[TTL]));
	if (h->owner[0] != '\0')
		(void)text_show(h->owner, row->cell[OWNER], sizeof(row->cell[OWNER]));
	if (h->label[0] != '\0')
		(void)text_show(h->label, row->cell[LABEL], sizeof(row->cell[LABEL]));
	if (!h->foreign)
		fill_held(row, h);
	if (h->fence > 0)
		(void)snprintf(row->cell[FENCE], sizeof(row->cell[FENCE]), "%" PRId64, h->fence);
	if (h->waiting > 0)
		(void)snprintf(row->cell[WAITING], sizeof(row->cell[WAITING]), "%" PRId64, h->waiting);
}

static void
print_cells(const char *const cells[COLUMNS], const size_t widths[COLUMNS])
{
	size_t pad;
	int i;

	for (i = 0; i < COLUMNS; i++) {
		fputs(cells[i], stdout);
		pad = i + 1 < COLUMNS ? widths[i] - text_columns(cells[i]) + 2 : 0;
		printf("%*s", (int)pad, "");
	}
	putchar('\n');
}

enum status
view_add_row(struct view_table *t, const char *key, const struct lock_view *view, struct err *err)
{
	const int room = t->room == 0 ? 16 : t->room * 2;
	struct row *grown;

	if (t->count == t->room) {
		grown = realloc(t->rows, (size_t)room * sizeof(*grown));
		if (grown == NULL)
			return err_set(err, ST_SYSTEM, "out of memory");
		t->rows = grown;
		t->room = room;
	}
	fill_row(&t->rows[t->count++], key, view);
	return ST_OK;
}

void
view_print_table(const struct view_table *t)
{
	const char *cells[COLUMNS];
	size_t widths[COLUMNS], width;
	int i, c;

	for (c = 0; c < COLUMNS; c++) {
		widths[c] = strlen(headings[c]);
		for (i = 0; i < t->count; i++) {
			width = text_columns(t->rows[i].cell[c]);
			widths[c] = width > widths[c] ? width : widths[c];
		}
	}
	print_cells(headings, widths);
	for (i = 0; i < t->count; i++) {
		for (c = 0; c < COLUMNS; c++)
			cells[c] = t->rows[i].cell[c];
		print_cells(cells, widths);
	}
}

void
view_free_table(struct view_table *t)
{
	free(t->rows);
}
