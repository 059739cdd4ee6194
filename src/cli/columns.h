/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_CLI_COLUMNS_H
#define DLOCK_CLI_COLUMNS_H
#include <stdbool.h>

#include "base/err.h"
#include "lock/service.h"

/*
 * What a table can show of a lock: columns, by their names.
 */
enum {
	CELL_MAX = 512,
	COLUMNS_MAX = 24 /* as many may be asked for */
};

struct column {
	char name[12];
	/* One lock in this column, into an empty cell; one that stays so is shown as "-". */
	void (*fill)(char cell[CELL_MAX], const char *key, const struct lock_view *);
	bool usual;
	bool may_be_cut;
	bool is_state;
};

struct columns {
	const struct column *column[COLUMNS_MAX];
	int count;
};

/* Names are separated by commas; NULL for the usual ones.  ST_USAGE names one that there is not, and lists all. */
enum status columns_choose(struct columns *, const char *names, struct err *);

#endif
