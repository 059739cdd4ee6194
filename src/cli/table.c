/* SPDX-License-Identifier: MIT */
#include "cli/table.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/duration.h"
#include "base/text.h"
#include "cli/output.h"
#include "cli/view.h"

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
	struct layout_column layout;
	bool usual;
	bool of_holder; /* empty if there is none */
};

static const struct column all[] = {
	[KEY] = { { "KEY", LAYOUT_TEXT, 0 }, true, false },
	[STATE] = { { "STATE", LAYOUT_WHOLE, 0 }, true, false },
	[TTL] = { { "TTL", LAYOUT_WHOLE, 0 }, true, true },
	[OWNER] = { { "OWNER", LAYOUT_OWNER, 0 }, true, true },
	[LABEL] = { { "LABEL", LAYOUT_TEXT, 0 }, true, true },
	[HELD] = { { "HELD", LAYOUT_WHOLE, 0 }, true, true },
	[FENCE] = { { "FENCE", LAYOUT_WHOLE, 1 }, true, true },
	[WAITING] = { { "WAITING", LAYOUT_WHOLE, 3 }, true, true },
	[NODES] = { { "NODES", LAYOUT_WHOLE, 4 }, true, false }, /* 2: of a single node it says nothing */
	[USER] = { { "USER", LAYOUT_TEXT, 0 }, false, true },
	[HOST] = { { "HOST", LAYOUT_TEXT, 0 }, false, true },
	[PID] = { { "PID", LAYOUT_WHOLE, 0 }, false, true },
	[CLIENT] = { { "CLIENT", LAYOUT_TEXT, 0 }, false, true },
	[TOKEN] = { { "TOKEN", LAYOUT_WHOLE, 0 }, false, true },
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
		text_addf(&text, "%s %s", i > 0 ? "," : "", all[i].layout.name);
	return ST_USAGE;
}

static void
add_column(struct table *t, const struct column *c)
{
	t->column[t->layout.columns] = c;
	t->layout.column[t->layout.columns] = c->layout;
	if (t->chosen)
		t->layout.column[t->layout.columns].rank = 0;
	t->layout.columns++;
}

static enum status
choose_one(struct table *t, const char *name, size_t length, struct err *err)
{
	int i;

	for (i = 0; i < ALL; i++) {
		if (strlen(all[i].layout.name) == length && strncasecmp(all[i].layout.name, name, length) == 0)
			break;
	}
	if (i == ALL)
		return unknown_column(name, length, err);
	if (t->layout.columns == LAYOUT_COLUMNS_MAX)
		return err_set(err, ST_USAGE, "--output: more than %d columns", LAYOUT_COLUMNS_MAX);
	add_column(t, &all[i]);
	return ST_OK;
}

enum status
table_choose(struct table *t, const char *names, struct err *err)
{
	enum status status = ST_OK;
	size_t length;
	int i;

	t->layout.columns = 0;
	t->chosen = names != NULL;
	for (i = 0; names == NULL && i < ALL; i++) {
		if (all[i].usual)
			add_column(t, &all[i]);
	}
	while (names != NULL && status == ST_OK) {
		length = strcspn(names, ",");
		status = choose_one(t, names, length, err);
		names = names[length] == ',' ? names + length + 1 : NULL;
	}
	return status;
}

/* -- Rows ------------------------------------------------------------------- */

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

enum status
table_add(struct table *t, const char *key, const struct lock_status *view, struct err *err)
{
	enum status status = ST_OK;
	char cell[LAYOUT_CELL_MAX];
	struct text text;
	int i;

	for (i = 0; i < t->layout.columns && status == ST_OK; i++) {
		text = text_in(cell, sizeof(cell));
		if (t->column[i] == &all[NODES] && view->nodes == 1 && !t->chosen)
			t->layout.column[i].rank = 2;
		write_cell(&text, t->column[i], key, view, !t->chosen);
		status = layout_add(&t->layout, cell,
		    t->coloured && t->column[i] == &all[STATE] ? colour_of(view->state) : "", err);
	}
	return status;
}
