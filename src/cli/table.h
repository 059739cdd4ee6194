/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_CLI_TABLE_H
#define DLOCK_CLI_TABLE_H
#include <stdbool.h>

#include "base/err.h"
#include "cli/layout.h"
#include "lock/service.h"

/*
 * The table of status: a row for each lock.  On a narrow terminal FENCE, WAITING and NODES are dropped first, unless the
 * user has chosen them.
 */
struct table {
	struct layout layout;
	bool coloured;

	/* Private. */
	const struct column *column[LAYOUT_COLUMNS_MAX];
	bool chosen; /* by the user */
};

/*
 * Choose the columns by their names, separated by commas; NULL for the default columns.  ST_USAGE: an unknown name; the
 * message lists all.
 */
enum status table_choose(struct table *, const char *names, struct err *);

/* Add a lock; layout_end() ends the table.  ST_SYSTEM: out of memory. */
enum status table_add(struct table *, const char *key, const struct lock_status *, struct err *);

#endif
