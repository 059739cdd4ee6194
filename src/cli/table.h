/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_CLI_TABLE_H
#define DLOCK_CLI_TABLE_H
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "cli/columns.h"
#include "lock/backend.h"

/*
 * The table of status: a row for each lock.
 *
 * The widths of the columns are computed from the first TABLE_KEPT rows, which are kept until then; later rows are
 * printed one by one, so that memory does not grow with the table.  If a width is set, that of a terminal, no line is
 * wider: long keys, owners and labels are truncated.
 */
enum {
	TABLE_KEPT = 256
};

struct table {
	struct columns columns; /* chosen by the caller */
	bool headings;
	bool coloured;
	size_t width;	      /* 0: no limit */
	const char *line_end; /* "\n", on a terminal after an escape sequence */

	/* Private. */
	struct row *row[TABLE_KEPT];
	int rows;
	size_t widths[COLUMNS_MAX];
	bool laid_out;
};

/* Begin a table; nothing is printed yet. */
void table_begin(struct table *);

/* Add a lock.  ST_SYSTEM: out of memory. */
enum status table_add(struct table *, const char *key, const struct lock_status *, struct err *);

/* Print the rows that are kept, and free them; the table can begin again. */
void table_end(struct table *);

#endif
