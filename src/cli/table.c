/* SPDX-License-Identifier: MIT */
#include "cli/table.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/output.h"

enum {
	LEAST_WIDTH = 8, /* the least width to which a column is cut */
	GAP = 2
};

/* -- Rows ------------------------------------------------------------------- */

struct row {
	enum lock_state state;
	const char *cell[COLUMNS_MAX]; /* owned by the row */
};

static void
free_row(struct row *row)
{
	int i;

	for (i = 0; row != NULL && i < COLUMNS_MAX; i++)
		free((char *)(uintptr_t)row->cell[i]); /* NOLINT(performance-no-int-to-ptr): it only loses its const */
	free(row);
}

static struct row *
new_row(const struct table *t, const char *key, const struct lock_status *view)
{
	struct row *row = calloc(1, sizeof(*row));
	char cell[CELL_MAX];
	int i;

	for (i = 0; row != NULL && i < t->columns.count; i++) {
		cell[0] = '\0';
		t->columns.column[i]->fill(cell, key, view);
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
	case LOCK_OTHER_CLIENT:
		return COLOUR_WARN;
	case LOCK_CONTENDED:
	case LOCK_UNKNOWN:
		break;
	}
	return COLOUR_BAD;
}

/* Print a cell in at most `most` columns, truncated if necessary; returns the number of columns. */
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

/* Print a line.  Without a terminal nothing is truncated, and a cell that is too wide shifts the rest of the line. */
static void
print_line(const struct table *t, const char *const cell[COLUMNS_MAX], const char *state_colour)
{
	const size_t width = t->width > 0 ? t->width : SIZE_MAX;
	size_t at = 0, most, taken, pad;
	int i;

	for (i = 0; i < t->columns.count; i++) {
		const struct column *c = t->columns.column[i];

		most = t->width > 0 && c->may_be_cut && t->widths[i] < width - at ? t->widths[i] : width - at;
		taken = print_cell(cell[i], most, c->is_state ? state_colour : "");
		pad = (taken < t->widths[i] ? t->widths[i] - taken : 0) + GAP;
		if (i + 1 == t->columns.count || at + taken + pad >= width)
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

	for (c = 0; c < t->columns.count; c++) {
		t->widths[c] = t->headings ? strlen(t->columns.column[c]->name) : 1;
		for (i = 0; i < t->rows; i++) {
			width = text_columns(t->row[i]->cell[c]);
			t->widths[c] = width > t->widths[c] ? width : t->widths[c];
		}
	}
}

/* The widest column that may be cut further; -1 if there is none. */
static int
widest(const struct table *t)
{
	int c, best = -1;

	for (c = 0; c < t->columns.count; c++) {
		if (t->columns.column[c]->may_be_cut && t->widths[c] > LEAST_WIDTH &&
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

	for (c = 0; c < t->columns.count; c++)
		total += t->widths[c] + (c > 0 ? GAP : 0);
	while (t->width > 0 && total > t->width && (c = widest(t)) >= 0) {
		t->widths[c]--;
		total--;
	}
}

/* Compute the widths and print the rows kept so far. */
static void
lay_out(struct table *t)
{
	const char *headings[COLUMNS_MAX];
	int i;

	t->laid_out = true;
	fit_to_content(t);
	fit_to_terminal(t);
	for (i = 0; i < t->columns.count; i++)
		headings[i] = t->columns.column[i]->name;
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
table_add(struct table *t, const char *key, const struct lock_status *view, struct err *err)
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
