/* SPDX-License-Identifier: MIT */
#include "cli/grid.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	GAP = 2,
	LEAST_WIDTH = 8, /* to which a column is shortened */
	FAIR_WIDTH = 22	 /* before a column is shortened further, others are dropped */
};

enum status
grid_add(struct grid *g, const char *cell, struct err *err)
{
	const size_t room = g->room == 0 ? 128 : g->room * 2;
	char **grown;

	if (g->cells == g->room) {
		grown = realloc(g->cell, room * sizeof(*grown));
		if (grown == NULL)
			return err_set(err, ST_SYSTEM, "out of memory");
		g->cell = grown;
		g->room = room;
	}
	g->cell[g->cells] = strdup(cell[0] != '\0' ? cell : "-");
	if (g->cell[g->cells] == NULL)
		return err_set(err, ST_SYSTEM, "out of memory");
	g->cells++;
	return ST_OK;
}

/* The widths of the columns; 0 for one that is dropped. */
struct layout {
	size_t width[GRID_COLUMNS_MAX];
	size_t total;
};

static void
measure(const struct grid *g, struct layout *l)
{
	size_t i, width;
	int c;

	l->total = 0;
	for (c = 0; c < g->columns; c++) {
		l->width[c] = g->headings ? strlen(g->column[c].name) : 1;
		for (i = (size_t)c; i < g->cells; i += (size_t)g->columns) {
			width = text_columns(g->cell[i]);
			l->width[c] = width > l->width[c] ? width : l->width[c];
		}
		l->total += l->width[c] + (c > 0 ? GAP : 0);
	}
}

/* What could be saved by shortening the columns that may be cut. */
static size_t
spare(const struct grid *g, const struct layout *l)
{
	size_t most = 0;
	int c;

	for (c = 0; c < g->columns; c++) {
		if (g->column[c].may_be_cut && l->width[c] > FAIR_WIDTH)
			most += l->width[c] - FAIR_WIDTH;
	}
	return most;
}

/* Drop columns, as long as shortening texts to a fair width is not enough. */
static void
drop(const struct grid *g, struct layout *l)
{
	int c, rank;

	for (rank = 1; rank <= GRID_COLUMNS_MAX; rank++) {
		for (c = 0; c < g->columns && l->total > g->width + spare(g, l); c++) {
			if (g->column[c].drop != rank)
				continue;
			l->total -= l->width[c] + GAP;
			l->width[c] = 0;
		}
	}
}

static void
shorten(const struct grid *g, struct layout *l)
{
	int c, widest;

	while (l->total > g->width) {
		widest = -1;
		for (c = 0; c < g->columns; c++) {
			if (g->column[c].may_be_cut && l->width[c] > LEAST_WIDTH &&
			    (widest < 0 || l->width[c] > l->width[widest]))
				widest = c;
		}
		if (widest < 0)
			return;
		l->width[widest]--;
		l->total--;
	}
}

/* Print a cell in its width, shortened in the middle: the begin and the end distinguish hosts, keys and labels. */
static void
print_cell(const char *cell, size_t width, bool padded)
{
	const size_t columns = text_columns(cell);
	size_t bytes, head, taken, skipped;
	const char *tail = cell;

	if (columns <= width) {
		printf("%s%*s", cell, padded ? (int)(width - columns) : 0, "");
		return;
	}
	bytes = text_fitting(cell, (width - 2) * 2 / 3, &head);
	while (text_columns(tail) > width - 2 - head)
		tail += text_fitting(tail, 1, &skipped) > 0 ? text_fitting(tail, 1, &skipped)
							    : text_fitting(tail, 2, &skipped);
	taken = head + 2 + text_columns(tail);
	printf("%.*s..%s%*s", (int)bytes, cell, tail, padded ? (int)(width - taken) : 0, "");
}

static void
print_row(const struct grid *g, const struct layout *l, const char *const *cell)
{
	int c, last = 0;

	for (c = 0; c < g->columns; c++)
		last = l->width[c] > 0 ? c : last;
	for (c = 0; c <= last; c++) {
		if (l->width[c] == 0)
			continue;
		print_cell(cell[c], l->width[c], c < last);
		printf("%*s", c < last ? GAP : 0, "");
	}
	putchar('\n');
}

void
grid_print(struct grid *g)
{
	const char *heading[GRID_COLUMNS_MAX];
	struct layout layout;
	size_t i;
	int c;

	measure(g, &layout);
	if (g->width > 0) {
		drop(g, &layout);
		shorten(g, &layout);
	}
	for (c = 0; c < g->columns; c++)
		heading[c] = g->column[c].name;
	if (g->headings)
		print_row(g, &layout, heading);
	for (i = 0; i + (size_t)g->columns <= g->cells; i += (size_t)g->columns)
		print_row(g, &layout, (const char *const *)g->cell + i);
	for (i = 0; i < g->cells; i++)
		free(g->cell[i]);
	free(g->cell);
	g->cell = NULL;
	g->cells = g->room = 0;
}
