/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_CLI_VIEW_H
#define DLOCK_CLI_VIEW_H
#include "base/err.h"
#include "lock/service.h"

/*
 * How status shows a lock: as JSON at once, or as a row of a table whose widths are known only at its end.
 */
struct view_table {
	struct row *rows; /* all zero at first */
	int count, room;
};

void view_print_json(const char *key, const struct lock_view *);

enum status view_add_row(struct view_table *, const char *key, const struct lock_view *, struct err *);
void view_print_table(const struct view_table *);
void view_free_table(struct view_table *);

#endif
