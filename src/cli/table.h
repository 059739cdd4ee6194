/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_CLI_TABLE_H
#define DLOCK_CLI_TABLE_H
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "cli/columns.h"
#include "lock/service.h"

/*
 * The table that status shows: a row for each lock.
 *
 * The widths of the columns come of the first TABLE_KEPT rows, which are kept until then; what follows is printed row by row,
 * so that a table of any length takes as much memory.  Where a width is set, that of a terminal, no line is wider: long keys,
 * owners and labels are cut.
 */
enum {
	TABLE_KEPT = 256
};

struct table {
	struct columns columns; /* chosen by the caller */
	bool headings;
	bool coloured;
	size_t width;	      /* 0: as wide as it gets */
	const char *line_end; /* "\n", or with what the terminal needs to be told before */

	/* Its own. */
	struct row *row[TABLE_KEPT];
	int rows;
	size_t widths[COLUMNS_MAX];
	bool laid_out;
};

/* Begin: nothing is printed yet. */
void table_begin(struct table *);

/* Add a lock.  ST_SYSTEM: no memory. */
enum status table_add(struct table *, const char *key, const struct lock_view *, struct err *);

/* Print what is kept, and free it; the table can begin again. */
void table_end(struct table *);

#endif
