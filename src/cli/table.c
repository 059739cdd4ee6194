/* SPDX-License-Identifier: MIT */
#include "cli/table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/duration.h"
#include "base/text.h"
#include "cli/output.h"
#include "cli/view.h"

enum {
	CELL_MAX = 512,
	LEAST_WIDTH = 8, /* the least width to which a column is cut */
	READABLE = 24,	 /* the least width to which a column is cut in favour of columns that say less */
	GAP = 2
};

/* -- Columns ---------------------------------------------------------------- */

enum field {
	KEY,
	STATE,
	TTL,
	OWNER,
	LABEL,
	HELD,
	FENCE,
	WAITING,
	NODES,
	USER,
	HOST,
	PID,
	CLIENT,
	TOKEN
};

struct column {
	char name[12];
	bool usual;
	bool may_be_cut;
	bool of_holder; /* empty if there is none */
};

static const struct column all[] = {
	[KEY] = { "KEY", true, true, false },
	[STATE] = { "STATE", true, false, false },
	[TTL] = { "TTL", true, false, true },
	[OWNER] = { "OWNER", true, true, true },
	[LABEL] = { "LABEL", true, true, true },
	[HELD] = { "HELD", true, false, true },
	[FENCE] = { "FENCE", true, false, true },
	[WAITING] = { "WAITING", true, false, true },
	[NODES] = { "NODES", true, false, false },
	[USER] = { "USER", false, true, true },
	[HOST] = { "HOST", false, true, true },
	[PID] = { "PID", false, false, true },
	[CLIENT] = { "CLIENT", false, true, true },
	[TOKEN] = { "TOKEN", false, false, true },
};

#define ALL ((int)(sizeof(all) / sizeof(all[0])))

/* The time, and the number of holds if the lock was entered again. */
static void
write_held(struct text *cell, const struct holder *h)
{
	char length[32];

	if (h->other_client)
		return;
	duration_show(h->held_ms, length, sizeof(length));
	text_add(cell, length, strlen(length));
	if (h->holds > 1)
		text_addf(cell, " (%" PRId64 " holds)", h->holds);
}

/* The owner of a foreign lock is unknown: its column has the likely client instead. */
static void
write_client(struct text *cell, const struct holder *h, bool as_owner)
{
	char client[CLIENT_SIZE];

	if (as_owner && (!h->other_client || view_client(h, client) == NULL))
		text_add_shown(cell, h->owner, holder_owner_length(h->owner));
	else if (view_client(h, client) != NULL)
		text_addf(cell, as_owner ? "(%s)" : "%s", client);
}

/* Until which process ends the lock is held. */
static void
write_kept(struct text *cell, const struct holder *h)
{
	char owner[OWNER_MAX + 1];
	const char *user, *host, *pid;

	(void)snprintf(owner, sizeof(owner), "%s", h->owner);
	output_split_owner(owner, &user, &host, &pid);
	text_addf(cell, "%s(keeper of PID ", h->label[0] != '\0' ? " " : "");
	text_add_shown(cell, pid, strlen(pid));
	text_addf(cell, ")");
}

/*
 * Format a lock for a column; a cell that stays empty is shown as "-".  `usual`: among the default columns, whose LABEL
 * says more than the label.
 */
static void
write_cell(struct text *cell, const struct column *c, const char *key, const struct lock_status *v, bool usual)
{
	const struct holder *const h = &v->holder;
	char owner[OWNER_MAX + 1], left[32];
	const char *part[3];

	if (c->of_holder && !view_is_held(v))
		return;
	switch ((enum field)(c - all)) {
	case KEY:
		text_add_shown(cell, key, strlen(key));
		break;
	case STATE:
		text_add(cell, output_state(v->state), strlen(output_state(v->state)));
		break;
	case TTL:
		duration_show(h->left_ms < 0 ? DURATION_FOREVER : h->left_ms, left, sizeof(left));
		text_add(cell, left, strlen(left));
		break;
	case LABEL:
		text_add_shown(cell, h->label, strlen(h->label));
		if (usual && holder_from_acquire(h))
			text_addf(cell, "%s(acquire)", h->label[0] != '\0' ? " " : "");
		else if (usual && holder_is_kept(h))
			write_kept(cell, h);
		break;
	case HELD:
		write_held(cell, h);
		break;
	case FENCE:
	case WAITING:
		if ((c == &all[FENCE] ? h->fence : h->waiting) > 0)
			text_addf(cell, "%" PRId64, c == &all[FENCE] ? h->fence : h->waiting);
		break;
	case NODES:
		text_addf(cell, "%d/%d", v->agreeing, v->nodes);
		break;
	case USER:
	case HOST:
	case PID:
		memcpy(owner, h->owner, sizeof(owner));
		output_split_owner(owner, &part[0], &part[1], &part[2]);
		text_add_shown(cell, part[c - &all[USER]], strlen(part[c - &all[USER]]));
		break;
	case OWNER:
	case CLIENT:
		write_client(cell, h, c == &all[OWNER]);
		break;
	case TOKEN:
		text_add_shown(cell, h->token, strnlen(h->token, TOKEN_HINT_SIZE - 1));
	}
}

static enum status
unknown_column(const char *name, size_t length, struct err *err)
{
	struct text text = text_in(err->text, sizeof(err->text));
	int i;

	text_addf(&text, "--output: unknown column '");
	text_add_shown(&text, name, length);
	text_addf(&text, "'; the columns are");
	for (i = 0; i < ALL; i++)
		text_addf(&text, "%s %s", i > 0 ? "," : "", all[i].name);
	return ST_USAGE;
}

static enum status
choose_one(struct table *t, const char *name, size_t length, struct err *err)
{
	int i;

	for (i = 0; i < ALL; i++) {
		if (strlen(all[i].name) == length && strncasecmp(all[i].name, name, length) == 0)
			break;
	}
	if (i == ALL)
		return unknown_column(name, length, err);
	if (t->columns == COLUMNS_MAX)
		return err_set(err, ST_USAGE, "--output: more than %d columns", COLUMNS_MAX);
	t->column[t->columns++] = &all[i];
	return ST_OK;
}

enum status
table_choose(struct table *t, const char *names, struct err *err)
{
	enum status status = ST_OK;
	size_t length;
	int i;

	t->columns = 0;
	t->chosen = names != NULL;
	for (i = 0; names == NULL && i < ALL; i++) {
		if (all[i].usual)
			t->column[t->columns++] = &all[i];
	}
	while (names != NULL && status == ST_OK) {
		length = strcspn(names, ",");
		status = choose_one(t, names, length, err);
		names = names[length] == ',' ? names + length + 1 : NULL;
	}
	memcpy(t->choice, t->column, sizeof(t->choice));
	t->choices = t->columns;
	return status;
}

/* -- Rows ------------------------------------------------------------------- */

struct row {
	enum lock_state state;
	const char *cell[COLUMNS_MAX]; /* owned by the row */
};

static void
free_row(struct row *row)
{
	int i;

	for (i = 0; row != NULL && i < COLUMNS_MAX; i++)
		free((char *)(uintptr_t)row->cell[i]); /* NOLINT(performance-no-int-to-ptr): it only loses its const */
	free(row);
}

static struct row *
new_row(const struct table *t, const char *key, const struct lock_status *view)
{
	struct row *row = calloc(1, sizeof(*row));
	char cell[CELL_MAX];
	struct text text;
	int i;

	for (i = 0; row != NULL && i < t->columns; i++) {
		text = text_in(cell, sizeof(cell));
		write_cell(&text, t->column[i], key, view, !t->chosen);
		row->cell[i] = strdup(cell[0] != '\0' ? cell : "-");
		if (row->cell[i] == NULL) {
			free_row(row);
			return NULL;
		}
	}
	return row;
}

static const char *
colour_of(enum lock_state state)
{
	static const char *const colours[] = { [LOCK_FREE] = COLOUR_DIM,
		[LOCK_HELD] = COLOUR_GOOD,
		[LOCK_HANDOVER] = COLOUR_WARN,
		[LOCK_KEPT] = COLOUR_WARN,
		[LOCK_OTHER_CLIENT] = COLOUR_WARN,
		[LOCK_CONTENDED] = COLOUR_BAD,
		[LOCK_UNKNOWN] = COLOUR_BAD };

	return colours[state];
}

/* The end of an escaped text that takes at most `columns`; *taken: how many it takes. */
static const char *
tail_of(const char *shown, size_t columns, size_t *taken)
{
	const char *at = shown;

	for (*taken = text_columns(at); *taken > columns; *taken = text_columns(at))
		at += text_fitting(at, 1, taken) > 0 ? text_fitting(at, 1, taken) : text_fitting(at, 2, taken);
	return at;
}

/* Print a cell in at most `most` columns, shortened in the middle if necessary; returns the number of columns. */
static size_t
print_cell(const char *cell, size_t most, const char *colour)
{
	size_t taken, bytes = text_fitting(cell, most, &taken), rest = 0;
	const char *dots = "", *tail = "";

	if (cell[bytes] != '\0' && most > 3) {
		dots = "...";
		bytes = text_fitting(cell, (most - 2) / 2, &taken);
		tail = tail_of(cell + bytes, most - 3 - taken, &rest);
		taken += 3 + rest;
	}
	printf("%s%.*s%s%s%s", colour, (int)bytes, cell, dots, tail, colour[0] != '\0' ? COLOUR_END : "");
	return taken;
}

/* Print a line.  Without a terminal nothing is truncated, and a cell that is too wide shifts the rest of the line. */
static void
print_line(const struct table *t, const char *const cell[COLUMNS_MAX], const char *state_colour)
{
	const size_t width = t->width > 0 ? t->width : SIZE_MAX;
	size_t at = 0, most, taken, pad;
	int i;

	for (i = 0; i < t->columns && at < width; i++) {
		const struct column *c = t->column[i];

		most = t->width > 0 && c->may_be_cut && t->widths[i] < width - at ? t->widths[i] : width - at;
		if (i > 0 && !c->may_be_cut && text_columns(cell[i]) > most)
			break; /* a later row with a longer cell than those that were laid out */
		taken = print_cell(cell[i], most, c == &all[STATE] ? state_colour : "");
		pad = (taken < t->widths[i] ? t->widths[i] - taken : 0) + GAP;
		if (i + 1 == t->columns)
			break;
		printf("%*s", (int)pad, "");
		at += taken + pad;
	}
	fputs(t->line_end, stdout);
}

/* -- Layout ----------------------------------------------------------------- */

static void
fit_to_content(struct table *t)
{
	size_t width;
	int c, i;

	for (c = 0; c < t->columns; c++) {
		t->widths[c] = t->headings ? strlen(t->column[c]->name) : 1;
		for (i = 0; i < t->rows; i++) {
			width = text_columns(t->row[i]->cell[c]);
			t->widths[c] = width > t->widths[c] ? width : t->widths[c];
		}
	}
}

/* The widest column that may be cut further; -1 if there is none. */
static int
widest(const struct table *t)
{
	int c, best = -1;

	for (c = 0; c < t->columns; c++) {
		if (t->column[c]->may_be_cut && t->widths[c] > LEAST_WIDTH &&
		    (best < 0 || t->widths[c] > t->widths[best]))
			best = c;
	}
	return best;
}

/* The width of a line, if the columns that may be cut are not wider than `most`. */
static size_t
total_width(const struct table *t, size_t most)
{
	size_t total = 0;
	int c;

	for (c = 0; c < t->columns; c++)
		total += (t->column[c]->may_be_cut && t->widths[c] > most ? most : t->widths[c]) + (c > 0 ? GAP : 0);
	return total;
}

static void
drop_column(struct table *t, int c)
{
	int i;

	for (i = 0; i < t->rows; i++) {
		free((char *)(uintptr_t)t->row[i]
			 ->cell[c]); /* NOLINT(performance-no-int-to-ptr): it only loses its const */
		memmove(&t->row[i]->cell[c], &t->row[i]->cell[c + 1],
		    (size_t)(COLUMNS_MAX - c - 1) * sizeof(t->row[i]->cell[0]));
		t->row[i]->cell[COLUMNS_MAX - 1] = NULL;
	}
	t->columns--;
	memmove(&t->column[c], &t->column[c + 1], (size_t)(t->columns - c) * sizeof(t->column[0]));
	memmove(&t->widths[c], &t->widths[c + 1], (size_t)(t->columns - c) * sizeof(t->widths[0]));
}

/* The columns that say least are dropped first, of those that the user has not chosen. */
static bool
drop_least(struct table *t)
{
	static const enum field least[] = { FENCE, WAITING, NODES };
	size_t i;
	int c;

	for (i = 0; i < sizeof(least) / sizeof(least[0]) && !t->chosen; i++) {
		for (c = 0; c < t->columns; c++) {
			if (t->column[c] == &all[least[i]]) {
				drop_column(t, c);
				return true;
			}
		}
	}
	return false;
}

/* Drop whole columns, then shorten others, and if that is not enough, drop the last ones. */
static void
fit_to_terminal(struct table *t)
{
	int c;

	if (t->width == 0)
		return;
	while (total_width(t, READABLE) > t->width && drop_least(t))
		;
	while (total_width(t, SIZE_MAX) > t->width && (c = widest(t)) >= 0)
		t->widths[c]--;
	while (total_width(t, SIZE_MAX) > t->width && t->columns > 1)
		drop_column(t, t->columns - 1);
}

/* Compute the widths and print the rows kept so far. */
static void
lay_out(struct table *t)
{
	const char *headings[COLUMNS_MAX];
	int i;

	t->laid_out = true;
	fit_to_content(t);
	fit_to_terminal(t);
	for (i = 0; i < t->columns; i++)
		headings[i] = t->column[i]->name;
	if (t->headings)
		print_line(t, headings, "");
	for (i = 0; i < t->rows; i++) {
		print_line(t, t->row[i]->cell, t->coloured ? colour_of(t->row[i]->state) : "");
		free_row(t->row[i]);
	}
	t->rows = 0;
}

void
table_begin(struct table *t)
{
	memcpy(t->column, t->choice, sizeof(t->column));
	t->columns = t->choices;
	t->rows = 0;
	t->laid_out = false;
}

enum status
table_add(struct table *t, const char *key, const struct lock_status *view, struct err *err)
{
	struct row *row = new_row(t, key, view);

	if (row == NULL)
		return err_set(err, ST_SYSTEM, "out of memory");
	row->state = view->state;
	if (!t->laid_out && t->rows == TABLE_KEPT)
		lay_out(t);
	if (!t->laid_out) {
		t->row[t->rows++] = row;
		return ST_OK;
	}
	print_line(t, row->cell, t->coloured ? colour_of(row->state) : "");
	free_row(row);
	return ST_OK;
}

void
table_end(struct table *t)
{
	if (!t->laid_out)
		lay_out(t);
}
