/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_CLI_GRID_H
#define DLOCK_CLI_GRID_H
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/text.h"

/*
 * A table of a few hundred rows, as wide as its content, but no wider than a terminal: columns are dropped, then texts
 * are shortened, so that no column is cut off.
 */
enum {
	GRID_COLUMNS_MAX = 10,
	GRID_CELL_MAX = 700
};

struct grid_column {
	const char *name;
	bool may_be_cut;
	int drop; /* columns with 1 are dropped first, then those with 2 ...; 0: never */
};

struct grid {
	const struct grid_column *column;
	int columns;
	size_t width; /* of the terminal; 0: no limit */
	bool headings;

	/* Private. */
	char **cell;
	size_t cells, room;
};

/* Add the next cell of a row; "" is shown as "-".  ST_SYSTEM: out of memory. */
enum status grid_add(struct grid *, const char *cell, struct err *);

/* Print all rows, and free them. */
void grid_print(struct grid *);

#endif
