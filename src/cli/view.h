/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_CLI_VIEW_H
#define DLOCK_CLI_VIEW_H
#include <stdbool.h>

#include "base/array.h"
#include "base/err.h"
#include "base/json.h"
#include "cli/layout.h"
#include "lock/finding.h"
#include "lock/record.h"

/*
 * The output of what is seen of locks: rows of a table, or a JSON object on a line of its own for each row, or metrics.
 *
 * On a narrow terminal the less important columns are dropped first, unless the user has chosen them.
 */
enum {
	VIEW_FIELDS = 26
};

struct view {
	bool json;
	bool coloured;
	bool headings;
	bool found; /* names of rows may be those of locks that match a PATTERN, which are shortened as any text */
	struct layout layout;

	/* Private. */
	int shown[LAYOUT_COLUMNS_MAX]; /* the field in each column of the layout */
	bool locks;		       /* it is a table of locks, */
	bool all;		       /* and of how they ended last */
	bool chosen;		       /* by the user */
	enum lock_state state;	       /* of the lock in this row */
	struct json object;	       /* of this row */
	struct text cell[VIEW_FIELDS];
	char text[VIEW_FIELDS][LAYOUT_CELL_MAX];
	struct names samples; /* for the metrics */
};

/* The columns of the tables.  A table for one KEY needs no column for it. */
#define VIEW_KEY "KEY,"
#define VIEW_LOCKS VIEW_KEY "STATE,TTL,OWNER,LABEL,HELD,FENCE,WAITING,NODES"
#define VIEW_ALL VIEW_KEY "STATE,LAST,OUTCOME,TOOK,SUCCESS,OWNER"
#define VIEW_FORMERS VIEW_KEY "START,END,HELD,WAITED,OUTCOME,OWNER,LABEL,FENCE"
#define VIEW_WAITERS VIEW_KEY "PLACE,SINCE,WAITING,OWNER,LABEL"

/*
 * Prepare a table with these columns for standard output; `chosen`: those that the user has chosen, among the columns
 * of locks, or NULL.  ST_USAGE: an unknown name; the message lists all.
 */
enum status view_begin(struct view *, const char *names, const char *chosen, struct err *);

/* Add a row for the lock, or one for each earlier holder or waiter.  ST_SYSTEM: out of memory. */
enum status view_lock(struct view *, const char *key, const struct record *, struct err *);
enum status view_formers(struct view *, const char *key, const struct record *, struct err *);
enum status view_waiters(struct view *, const char *key, const struct record *, struct err *);

/* Print the table; of locks, without rows, the headings only. */
void view_end(struct view *);

/*
 * Locks as metrics for the textfile collector of Prometheus.  All samples of a metric must be printed together, so the
 * values of all locks are kept until the end.  Add a lock, with what is known of its history; duplicates count once.
 * ST_SYSTEM: out of memory.
 */
enum status view_add_sample(struct view *, const char *key, const struct record *, struct err *);

/* Print them, and which nodes are up. */
void view_metrics(struct view *, const struct probed *, int nodes);

/* -- Parts of the JSON of several commands ---------------------------------- */

/* An owner, mostly the member "owner": an object, or null for "". */
void view_json_owner(struct json *, const char *name, const char *owner);

/* The member "child": the end of a command, or null. */
void view_json_child(struct json *, const struct command_end *);

/* The members "owner", "client", "label" and "held_ms". */
void view_json_who(struct json *, const struct holder *);

/* The member "holder": an object, or null if it is not known. */
void view_json_holder(struct json *, const struct holder *);

#endif
