/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_CLI_LAYOUT_H
#define DLOCK_CLI_LAYOUT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/err.h"

/*
 * Rows of cells that fit a terminal.  If they are too wide, columns are dropped, in the order of their ranks; if that
 * is not enough, texts are shortened in the middle; and if that is not enough either, the last columns are dropped.  No
 * column is cut off.  Texts of a column that differ still differ when they are shortened, and so do the hosts of
 * owners.
 *
 * LAYOUT_ROWS rows at a time are kept, fitted and printed, so that memory does not grow with the table.
 */
enum {
	LAYOUT_ROWS = 256,
	LAYOUT_COLUMNS_MAX = 24,
	LAYOUT_CELL_MAX = 700 /* a longer cell is shortened as if it ended there */
};

struct layout_column {
	char name[12];
	enum {
		LAYOUT_WHOLE, /* is not shortened */
		LAYOUT_LEAD,  /* the same, and dropped together with the next column */
		LAYOUT_TEXT,
		LAYOUT_OWNER /* user@host:pid */
	} kind;
	int rank; /* columns of rank 1 are dropped first, then those of rank 2 ...; 0: none */
};

struct layout {
	struct layout_column column[LAYOUT_COLUMNS_MAX];
	int columns;
	size_t width;  /* of the terminal; 0: no limit */
	bool sentence; /* the cells follow each other without space, and may be empty */
	FILE *out;
	const char *line_end; /* "\n", on a terminal after an escape sequence */

	/* Private. */
	struct layout_cell *cell;
	size_t cells;
	size_t widths[LAYOUT_COLUMNS_MAX];
	bool dropped[LAYOUT_COLUMNS_MAX];
	bool begun;
};

/*
 * Add the next cell of a row, escaped; "" is shown as "-" except in a sentence.  `colour` is an escape sequence, which
 * is not copied, or "".  ST_SYSTEM: out of memory.
 */
enum status layout_add(struct layout *, const char *text, const char *colour, struct err *);

/* Print what is kept, and free it.  The next table can begin. */
void layout_end(struct layout *);

/* Free what is kept without printing it. */
void layout_free(struct layout *);

/* Print an escaped text on standard output from column `from` on, wrapped between words at `width`; 0: not wrapped. */
void layout_wrap(const char *text, size_t from, size_t width);

#endif
