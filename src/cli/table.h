/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_CLI_TABLE_H
#define DLOCK_CLI_TABLE_H
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "lock/backend.h"

/*
 * The table of status: a row for each lock.
 *
 * The widths of the columns are computed from the first TABLE_KEPT rows, which are kept until then; later rows are
 * printed one by one, so that memory does not grow with the table.  If a width is set, that of a terminal, no line is
 * wider: FENCE, WAITING and NODES are dropped first, then long keys, owners and labels are shortened in the middle.
 */
enum {
	TABLE_KEPT = 256,
	COLUMNS_MAX = 24 /* the maximum on the command line */
};

struct table {
	bool headings;
	bool coloured;
	size_t width;	      /* 0: no limit */
	const char *line_end; /* "\n", on a terminal after an escape sequence */

	/* Private. */
	const struct column *choice[COLUMNS_MAX];
	int choices;
	const struct column *column[COLUMNS_MAX]; /* those that fit */
	int columns;
	bool chosen; /* by the user */
	struct row *row[TABLE_KEPT];
	int rows;
	size_t widths[COLUMNS_MAX];
	bool laid_out;
};

/*
 * Choose the columns by their names, separated by commas; NULL for the default columns.  ST_USAGE: an unknown name; the
 * message lists all.
 */
enum status table_choose(struct table *, const char *names, struct err *);

/* Begin a table; nothing is printed yet. */
void table_begin(struct table *);

/* Add a lock.  ST_SYSTEM: out of memory. */
enum status table_add(struct table *, const char *key, const struct lock_status *, struct err *);

/* Print the rows that are kept, and free them; the table can begin again. */
void table_end(struct table *);

#endif
