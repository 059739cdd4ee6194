/* SPDX-License-Identifier: MIT */
#include "cli/table.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/duration.h"
#include "base/text.h"
#include "cli/output.h"
#include "cli/view.h"

enum {
	CELL_MAX = 512,
	LEAST_WIDTH = 8, /* to which a column is cut */
	GAP = 2
};

/* One lock in one column; an empty cell is shown as "-". */
typedef void fill(char cell[CELL_MAX], const char *key, const struct lock_view *);

/* -- Columns ---------------------------------------------------------------- */

static void
fill_key(char cell[CELL_MAX], const char *key, const struct lock_view *v)
{
	(void)v;
	(void)text_show(key, cell, CELL_MAX);
}

static void
fill_state(char cell[CELL_MAX], const char *key, const struct lock_view *v)
{
	(void)key;
	(void)snprintf(cell, CELL_MAX, "%s", output_state(v->state));
}

static void
fill_ttl(char cell[CELL_MAX], const char *key, const struct lock_view *v)
{
	(void)key;
	if (view_is_held(v))
		duration_show(v->holder.left_ms < 0 ? DURATION_FOREVER : v->holder.left_ms, cell, CELL_MAX);
}

/* A foreign client has told nothing of its owner; what it looks like is better than nothing. */
static void
fill_owner(char cell[CELL_MAX], const char *key, const struct lock_view *v)
{
	char client[CLIENT_SIZE];

	(void)key;
	if (v->state == LOCK_FOREIGN && view_client(&v->holder, client) != NULL)
		(void)snprintf(cell, CELL_MAX, "(%s)", client);
	else if (view_is_held(v))
		(void)text_show(v->holder.owner, cell, CELL_MAX);
}

static void
fill_part_of_owner(char cell[CELL_MAX], const struct lock_view *v, int part)
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
fill_user(char cell[CELL_MAX], const char *key, const struct lock_view *v)
{
	(void)key;
	fill_part_of_owner(cell, v, 0);
}

static void
fill_host(char cell[CELL_MAX], const char *key, const struct lock_view *v)
{
	(void)key;
	fill_part_of_owner(cell, v, 1);
}

static void
fill_pid(char cell[CELL_MAX], const char *key, const struct lock_view *v)
{
	(void)key;
	fill_part_of_owner(cell, v, 2);
}

static void
fill_label(char cell[CELL_MAX], const char *key, const struct lock_view *v)
{
	(void)key;
	if (view_is_held(v))
		(void)text_show(v->holder.label, cell, CELL_MAX);
}

/* For how long, and how often if it was entered again. */
static void
fill_held(char cell[CELL_MAX], const char *key, const struct lock_view *v)
{
	char length[32];

	(void)key;
	if (!view_is_held(v) || v->holder.foreign)
		return;
	duration_show(v->holder.held_ms, length, sizeof(length));
	if (v->holder.holds > 1)
		(void)snprintf(cell, CELL_MAX, "%s (%" PRId64 " holds)", length, v->holder.holds);
	else
		(void)snprintf(cell, CELL_MAX, "%s", length);
}

static void
fill_fence(char cell[CELL_MAX], const char *key, const struct lock_view *v)
{
	(void)key;
	if (view_is_held(v) && v->holder.fence > 0)
		(void)snprintf(cell, CELL_MAX, "%" PRId64, v->holder.fence);
}

static void
fill_waiting(char cell[CELL_MAX], const char *key, const struct lock_view *v)
{
	(void)key;
	if (view_is_held(v) && v->holder.waiting > 0)
		(void)snprintf(cell, CELL_MAX, "%" PRId64, v->holder.waiting);
}

static void
fill_nodes(char cell[CELL_MAX], const char *key, const struct lock_view *v)
{
	(void)key;
	(void)snprintf(cell, CELL_MAX, "%d/%d", v->agreeing, v->nodes);
}

static void
fill_client(char cell[CELL_MAX], const char *key, const struct lock_view *v)
{
	char client[CLIENT_SIZE];

	(void)key;
	if (view_is_held(v) && view_client(&v->holder, client) != NULL)
		(void)snprintf(cell, CELL_MAX, "%s", client);
}

static void
fill_token(char cell[CELL_MAX], const char *key, const struct lock_view *v)
{
	char hint[TOKEN_HINT_SIZE];

	(void)key;
	(void)snprintf(hint, sizeof(hint), "%.4s", v->holder.token);
	if (view_is_held(v))
		(void)text_show(hint, cell, CELL_MAX);
}

static const struct column {
	char name[12];
	fill *fill;
	bool usual;
	bool may_be_cut;
} columns[] = {
	{ "KEY", fill_key, true, true },
	{ "STATE", fill_state, true, false },
	{ "TTL", fill_ttl, true, false },
	{ "OWNER", fill_owner, true, true },
	{ "LABEL", fill_label, true, true },
	{ "HELD", fill_held, true, false },
	{ "FENCE", fill_fence, true, false },
	{ "WAITING", fill_waiting, true, false },
	{ "NODES", fill_nodes, true, false },
	{ "USER", fill_user, false, true },
	{ "HOST", fill_host, false, true },
	{ "PID", fill_pid, false, false },
	{ "CLIENT", fill_client, false, true },
	{ "TOKEN", fill_token, false, false },
};

#define COLUMN_COUNT (sizeof(columns) / sizeof(columns[0]))

static enum status
unknown_column(const char *name, size_t length, struct err *err)
{
	struct text text = text_in(err->text, sizeof(err->text));
	size_t i;

	text_addf(&text, "--output: unknown column '");
	text_add_shown(&text, name, length);
	text_addf(&text, "'; use some of");
	for (i = 0; i < COLUMN_COUNT; i++)
		text_addf(&text, "%s %s", i > 0 ? "," : "", columns[i].name);
	return ST_USAGE;
}

static enum status
choose_one(struct table *t, const char *name, size_t length, struct err *err)
{
	int i;

	for (i = 0; i < (int)COLUMN_COUNT; i++) {
		if (strlen(columns[i].name) == length && strncasecmp(columns[i].name, name, length) == 0)
			break;
	}
	if (i == (int)COLUMN_COUNT)
		return unknown_column(name, length, err);
	if (t->columns == TABLE_COLUMNS)
		return err_set(err, ST_USAGE, "--output: more than %d columns", TABLE_COLUMNS);
	t->column[t->columns++] = i;
	return ST_OK;
}

enum status
table_choose(struct table *t, const char *names, struct err *err)
{
	enum status status = ST_OK;
	size_t length;
	int i;

	t->columns = 0;
	for (i = 0; names == NULL && i < (int)COLUMN_COUNT; i++) {
		if (columns[i].usual)
			t->column[t->columns++] = i;
	}
	while (names != NULL && status == ST_OK) {
		length = strcspn(names, ",");
		status = choose_one(t, names, length, err);
		names = names[length] == ',' ? names + length + 1 : NULL;
	}
	return status;
}

/* -- Rows ------------------------------------------------------------------- */

struct row {
	enum lock_state state;
	const char *cell[TABLE_COLUMNS]; /* its own */
};

static void
free_row(struct row *row)
{
	int i;

	for (i = 0; row != NULL && i < TABLE_COLUMNS; i++)
		free((char *)(uintptr_t)row->cell[i]); /* NOLINT(performance-no-int-to-ptr): it only loses its const */
	free(row);
}

static struct row *
new_row(const struct table *t, const char *key, const struct lock_view *view)
{
	struct row *row = calloc(1, sizeof(*row));
	char cell[CELL_MAX];
	int i;

	for (i = 0; row != NULL && i < t->columns; i++) {
		cell[0] = '\0';
		columns[t->column[i]].fill(cell, key, view);
		row->cell[i] = strdup(cell[0] != '\0' ? cell : "-");
		if (row->cell[i] == NULL) {
			free_row(row);
			return NULL;
		}
	}
	return row;
}

static const char *
colour_of(enum lock_state state)
{
	switch (state) {
	case LOCK_FREE:
		return COLOUR_DIM;
	case LOCK_HELD:
		return COLOUR_GOOD;
	case LOCK_HANDOVER:
	case LOCK_FOREIGN:
		return COLOUR_WARN;
	case LOCK_CONTENDED:
	case LOCK_UNKNOWN:
		break;
	}
	return COLOUR_BAD;
}

/* Print a cell in so many columns, cut if need be; returns how many it took. */
static size_t
print_cell(const char *cell, size_t most, const char *colour)
{
	const char *dots = "";
	size_t taken, bytes = text_fitting(cell, most, &taken);

	if (cell[bytes] != '\0' && most > 3) {
		dots = "...";
		bytes = text_fitting(cell, most - 3, &taken);
		taken += 3;
	}
	printf("%s%.*s%s%s", colour, (int)bytes, cell, dots, colour[0] != '\0' ? COLOUR_END : "");
	return taken;
}

/* Print a line; without a terminal nothing is cut, and a cell that is too wide pushes the rest aside. */
static void
print_line(const struct table *t, const char *const cell[TABLE_COLUMNS], const char *state_colour)
{
	const size_t width = t->width > 0 ? t->width : SIZE_MAX;
	size_t at = 0, most, taken, pad;
	int i;

	for (i = 0; i < t->columns; i++) {
		const struct column *c = &columns[t->column[i]];

		most = t->width > 0 && c->may_be_cut && t->widths[i] < width - at ? t->widths[i] : width - at;
		taken = print_cell(cell[i], most, c->fill == fill_state ? state_colour : "");
		pad = (taken < t->widths[i] ? t->widths[i] - taken : 0) + GAP;
		if (i + 1 == t->columns || at + taken + pad >= width)
			break;
		printf("%*s", (int)pad, "");
		at += taken + pad;
	}
	fputs(t->line_end, stdout);
}

/* -- Layout ----------------------------------------------------------------- */

static void
fit_to_content(struct table *t)
{
	size_t width;
	int c, i;

	for (c = 0; c < t->columns; c++) {
		t->widths[c] = t->headings ? strlen(columns[t->column[c]].name) : 1;
		for (i = 0; i < t->rows; i++) {
			width = text_columns(t->row[i]->cell[c]);
			t->widths[c] = width > t->widths[c] ? width : t->widths[c];
		}
	}
}

/* The widest of the columns that may be cut any further; -1 if there is none. */
static int
widest(const struct table *t)
{
	int c, best = -1;

	for (c = 0; c < t->columns; c++) {
		if (columns[t->column[c]].may_be_cut && t->widths[c] > LEAST_WIDTH &&
		    (best < 0 || t->widths[c] > t->widths[best]))
			best = c;
	}
	return best;
}

static void
fit_to_terminal(struct table *t)
{
	size_t total = 0;
	int c;

	for (c = 0; c < t->columns; c++)
		total += t->widths[c] + (c > 0 ? GAP : 0);
	while (t->width > 0 && total > t->width && (c = widest(t)) >= 0) {
		t->widths[c]--;
		total--;
	}
}

/* The widths are certain now: print what was kept. */
static void
lay_out(struct table *t)
{
	const char *headings[TABLE_COLUMNS];
	int i;

	t->laid_out = true;
	fit_to_content(t);
	fit_to_terminal(t);
	for (i = 0; i < t->columns; i++)
		headings[i] = columns[t->column[i]].name;
	if (t->headings)
		print_line(t, headings, "");
	for (i = 0; i < t->rows; i++) {
		print_line(t, t->row[i]->cell, t->coloured ? colour_of(t->row[i]->state) : "");
		free_row(t->row[i]);
	}
	t->rows = 0;
}

void
table_begin(struct table *t)
{
	t->rows = 0;
	t->laid_out = false;
}

enum status
table_add(struct table *t, const char *key, const struct lock_view *view, struct err *err)
{
	struct row *row = new_row(t, key, view);

	if (row == NULL)
		return err_set(err, ST_SYSTEM, "out of memory");
	row->state = view->state;
	if (!t->laid_out && t->rows == TABLE_KEPT)
		lay_out(t);
	if (!t->laid_out) {
		t->row[t->rows++] = row;
		return ST_OK;
	}
	print_line(t, row->cell, t->coloured ? colour_of(row->state) : "");
	free_row(row);
	return ST_OK;
}

void
table_end(struct table *t)
{
	if (!t->laid_out)
		lay_out(t);
}
