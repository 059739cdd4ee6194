/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_CLI_VIEW_H
#define DLOCK_CLI_VIEW_H
#include <stdbool.h>

#include "base/err.h"
#include "base/json.h"
#include "cli/layout.h"
#include "lock/record.h"

/*
 * The output of what is seen of locks: rows of a table, or a JSON object on a line of its own for each row.
 *
 * On a narrow terminal the less important columns are dropped first, unless the user has chosen them.
 */
enum {
	VIEW_COLUMNS = 16
};

struct view {
	bool json;
	bool coloured;
	struct layout layout;

	/* Private. */
	const struct layout_column *all; /* of this table */
	int columns;
	const struct layout_column *shown[LAYOUT_COLUMNS_MAX];
	bool chosen;	       /* by the user */
	int nodes;	       /* of the lock in this row */
	enum lock_state state; /* likewise */
	struct text cell[VIEW_COLUMNS];
	char text[VIEW_COLUMNS][LAYOUT_CELL_MAX];
};

enum view_table {
	VIEW_LOCKS,
	VIEW_FORMERS,
	VIEW_WAITERS
};

/*
 * Prepare a table for standard output.  For locks, `names` chooses the columns, separated by commas; NULL: the default
 * ones.  Else it is the first column that is left out; NULL: none.  ST_USAGE: an unknown name; the message lists all.
 */
enum status view_begin(struct view *, enum view_table, const char *names, struct err *);

/* Add a row for the lock, or one for each earlier holder or waiter.  ST_SYSTEM: out of memory. */
enum status view_lock(struct view *, const char *key, const struct record *, struct err *);
enum status view_formers(struct view *, const char *key, const struct record *, struct err *);
enum status view_waiters(struct view *, const char *key, const struct record *, struct err *);

/* -- Parts of the JSON of several commands ---------------------------------- */

/* An owner, mostly the member "owner": an object, or null for "". */
void view_json_owner(struct json *, const char *name, const char *owner);

/* The member "child": how a command ended, or null. */
void view_json_child(struct json *, const struct command_end *);

/* The members "owner", "client", "label" and "held_ms". */
void view_json_who(struct json *, const struct holder *);

/* The member "holder": an object, or null for NULL, or if it is not known. */
void view_json_holder(struct json *, const struct holder *);

#endif
