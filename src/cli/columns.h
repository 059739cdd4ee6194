/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_CLI_COLUMNS_H
#define DLOCK_CLI_COLUMNS_H
#include <stdbool.h>

#include "base/err.h"
#include "lock/backend.h"

/*
 * The columns of the table of locks, by name.
 */
enum {
	CELL_MAX = 512,
	COLUMNS_MAX = 24 /* the maximum on the command line */
};

struct column {
	char name[12];
	/* Format a lock for this column into an empty cell; a cell that stays empty is shown as "-". */
	void (*fill)(char cell[CELL_MAX], const char *key, const struct lock_status *);
	bool usual;
	bool may_be_cut;
	bool is_state;
};

struct columns {
	const struct column *column[COLUMNS_MAX];
	int count;
};

/* Names are separated by commas; NULL for the default columns.  ST_USAGE: an unknown name; the message lists all. */
enum status columns_choose(struct columns *, const char *names, struct err *);

#endif
