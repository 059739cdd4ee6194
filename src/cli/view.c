/* SPDX-License-Identifier: MIT */
#include "cli/view.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/duration.h"
#include "base/text.h"
#include "cli/output.h"
#include "run/signals.h"

/* -- Columns ---------------------------------------------------------------- */

enum {
	OF_LOCKS = 14 /* columns; the others are those of the other tables */
};

/* Those of locks come first.  Of the same name, the others have the later one. */
static const struct layout_column columns[VIEW_COLUMNS] = {
	{ "KEY", LAYOUT_TEXT, 0 },
	{ "STATE", LAYOUT_WHOLE, 0 },
	{ "TTL", LAYOUT_WHOLE, 0 },
	{ "OWNER", LAYOUT_OWNER, 0 },
	{ "LABEL", LAYOUT_TEXT, 0 },
	{ "HELD", LAYOUT_WHOLE, 0 },
	{ "FENCE", LAYOUT_WHOLE, 1 },
	{ "WAITING", LAYOUT_WHOLE, 3 },
	{ "NODES", LAYOUT_WHOLE, 4 }, /* 2: of a single node it says nothing */
	{ "USER", LAYOUT_TEXT, 0 },
	{ "HOST", LAYOUT_TEXT, 0 },
	{ "PID", LAYOUT_WHOLE, 0 },
	{ "CLIENT", LAYOUT_TEXT, 0 },
	{ "TOKEN", LAYOUT_WHOLE, 0 },
	{ "START", LAYOUT_WHOLE, 0 },
	{ "END", LAYOUT_WHOLE, 2 },
	{ "WAITED", LAYOUT_WHOLE, 3 },
	{ "OUTCOME", LAYOUT_TEXT, 0 },
	{ "SINCE", LAYOUT_WHOLE, 1 },
	{ "WAITING", LAYOUT_WHOLE, 0 },
	{ "KEY", LAYOUT_WHOLE, 0 },
};

/* The index of the column of that name; -1: there is none. */
static int
find_column(const struct view *v, const char *name, size_t length)
{
	int i = (v->locks ? OF_LOCKS : VIEW_COLUMNS) - 1;

	while (i >= 0 && (strlen(columns[i].name) != length || strncasecmp(columns[i].name, name, length) != 0))
		i--;
	return i;
}

static enum status
unknown_column(const char *name, size_t length, struct err *err)
{
	struct text text = text_in(err->text, sizeof(err->text));
	int i;

	text_addf(&text, "--output: unknown column '");
	text_add_shown(&text, name, length);
	text_addf(&text, "'; the columns are");
	for (i = 0; i < OF_LOCKS; i++)
		text_addf(&text, "%s %s", i > 0 ? "," : "", columns[i].name);
	return ST_USAGE;
}

enum status
view_begin(struct view *v, const char *names, const char *chosen, struct err *err)
{
	struct layout *const l = &v->layout;
	const char *at = chosen != NULL ? chosen : names;
	size_t length;
	int i;

	l->columns = 0;
	l->width = output_extent(STDOUT_FILENO).columns;
	l->line_end = "\n";
	l->out = stdout;
	v->locks = strcmp(names, VIEW_LOCKS) == 0;
	v->chosen = chosen != NULL;
	for (; at != NULL; at = at[length] == ',' ? at + length + 1 : NULL) {
		length = strcspn(at, ",");
		i = find_column(v, at, length);
		if (i < 0)
			return unknown_column(at, length, err);
		if (l->columns == LAYOUT_COLUMNS_MAX)
			return err_set(err, ST_USAGE, "--output: more than %d columns", LAYOUT_COLUMNS_MAX);
		l->column[l->columns] = columns[i];
		if (v->chosen)
			l->column[l->columns].rank = 0;
		v->shown[l->columns++] = i;
	}
	return ST_OK;
}

/* -- Fields ----------------------------------------------------------------- */

/*
 * What is written next: a member of an object, or the cell of a column.  Each field has a name for both, NULL where it is not
 * shown.
 */
struct out {
	struct json *json; /* NULL: a row of the table */
	struct view *view;
};

/* The cell of a column, in a row of the table. */
static struct text *
cell(const struct out *o, const char *column)
{
	return &o->view->cell[find_column(o->view, column, strlen(column))];
}

static void
put_text(const struct out *o, const char *column, const char *member, const char *value)
{
	if (o->json != NULL)
		json_string_or_null(o->json, member, value);
	else
		text_add_shown(cell(o, column), value, strlen(value));
}

static void
put_number(const struct out *o, const char *column, const char *member, int64_t n, bool known)
{
	if (o->json != NULL)
		json_number_or_null(o->json, member, n, known);
	else if (known)
		text_addf(cell(o, column), "%" PRId64, n);
}

/* A length of time. */
static void
put_ms(const struct out *o, const char *column, const char *member, int64_t ms, bool known)
{
	char length[32];

	if (o->json != NULL)
		json_number_or_null(o->json, member, ms, known);
	else if (known) {
		duration_show(ms < 0 ? DURATION_FOREVER : ms, length, sizeof(length));
		text_addf(cell(o, column), "%s", length);
	}
}

/* A time of day on this host, in milliseconds since 1970; up to 0 it is unknown. */
static void
put_time(const struct out *o, const char *column, const char *member, int64_t ms)
{
	const time_t seconds = (time_t)(ms / 1000);
	char shown[32];
	struct tm tm;

	if (o->json != NULL)
		json_number_or_null(o->json, member, ms, ms > 0);
	else if (ms > 0 && localtime_r(&seconds, &tm) != NULL)
		text_add(cell(o, column), shown, strftime(shown, sizeof(shown), "%Y-%m-%d %H:%M:%S", &tm));
}

/* An owner; `instead` is what the table has of one that is unknown. */
static void
put_owner(const struct out *o, const char *owner, const char *instead)
{
	if (o->json != NULL)
		view_json_owner(o->json, "owner", owner);
	else if (owner[0] == '\0' && instead[0] != '\0')
		text_addf(cell(o, "OWNER"), "(%s)", instead);
	else
		text_add_shown(cell(o, "OWNER"), owner, holder_owner_length(owner));
}

/* Begin a row, and print it. */
static struct out
begin(struct view *v, const char *key, struct json *json)
{
	struct out o = { v->json ? json : NULL, v };
	int i;

	if (v->json)
		*json = json_begin_line(stdout);
	for (i = 0; i < VIEW_COLUMNS && !v->json; i++)
		v->cell[i] = text_in(v->text[i], LAYOUT_CELL_MAX);
	put_text(&o, "KEY", "key", key);
	return o;
}

static enum status
add_headings(struct view *v, struct err *err)
{
	enum status status = ST_OK;
	int i;

	for (i = 0; i < v->layout.columns && v->headings && status == ST_OK; i++)
		status = layout_add(&v->layout, v->layout.column[i].name, "", err);
	return status;
}

static enum status
end(const struct out *o, struct err *err)
{
	struct view *const v = o->view;
	const char *const colour = !v->coloured			     ? ""
	    : v->state == LOCK_HELD				     ? COLOUR_GOOD
	    : v->state == LOCK_FREE				     ? COLOUR_DIM
	    : v->state == LOCK_CONTENDED || v->state == LOCK_UNKNOWN ? COLOUR_BAD
								     : COLOUR_WARN;
	enum status status = ST_OK;
	int i;

	if (v->json) {
		json_end_line(o->json);
		return ST_OK;
	}
	if (v->layout.cells == 0 && !v->layout.begun)
		status = add_headings(v, err);
	for (i = 0; i < v->layout.columns && status == ST_OK; i++)
		status = layout_add(&v->layout, v->text[v->shown[i]],
		    strcmp(v->layout.column[i].name, "STATE") == 0 ? colour : "", err);
	return status;
}

/* -- Locks ------------------------------------------------------------------ */

static bool
is_dlock(const struct holder *h)
{
	return h->state != LOCK_FREE && h->state != LOCK_OTHER_CLIENT;
}

/* The holder.  The owner of a foreign lock is unknown: its column has the likely client instead. */
static void
put_who(const struct out *o, const struct holder *h)
{
	const char *const client = holder_client(h);

	put_owner(o, h->owner, h->state == LOCK_OTHER_CLIENT ? client : "");
	if (o->json != NULL)
		json_string_or_null(o->json, "client", client);
	else
		text_addf(cell(o, "CLIENT"), "%s", client); /* escaped already */
	put_text(o, "LABEL", "label", h->label);
	put_ms(o, "HELD", "held_ms", h->held_ms, is_dlock(h));
}

static void
put_holder(const struct out *o, const struct holder *h)
{
	put_ms(o, "TTL", "ttl_ms", h->left_ms, o->json != NULL || h->state != LOCK_FREE);
	put_who(o, h);
	if (o->json != NULL) {
		json_number_or_null(o->json, "ended_ms", h->ended_ms, h->state == LOCK_KEPT);
		json_string_or_null(o->json, "kept_by", h->state == LOCK_KEPT ? h->kept_by : NULL);
	}
	put_number(o, "FENCE", "fence", h->fence, h->fence > 0);
}

/* What only JSON has of a lock. */
static void
json_more(struct json *j, const struct record *r, const struct holder *h)
{
	char hint[TOKEN_HINT_SIZE];
	int i;

	(void)snprintf(hint, sizeof(hint), "%.4s", h->token);
	json_number(j, "holds", is_dlock(h) ? h->holds : 0);
	json_string_or_null(j, "token_hint", hint);
	json_open(j, "nodes", '[');
	for (i = 0; i < r->nodes; i++) {
		json_open(j, NULL, '{');
		json_string(j, "node", r->node[i].name);
		json_string(j, "state", record_state(r->node[i].state));
		json_number(j, "ttl_ms", r->node[i].left_ms);
		if (r->node[i].state == LOCK_UNKNOWN)
			json_string(j, "error", r->node[i].reason.text);
		else
			json_null(j, "error");
		json_close(j, '}');
	}
	json_close(j, ']');
}

/* What only the table has of a lock, or words it in its own way. */
static void
put_more(const struct out *o, const struct record *r, const struct holder *h)
{
	char owner[OWNER_MAX + 1], hint[TOKEN_HINT_SIZE];
	const char *user, *host, *pid, *gap = h->label[0] != '\0' ? " " : "";

	memcpy(owner, h->owner, sizeof(owner));
	output_split_owner(owner, &user, &host, &pid);
	put_text(o, "USER", NULL, user);
	put_text(o, "HOST", NULL, host);
	put_text(o, "PID", NULL, pid);
	(void)snprintf(hint, sizeof(hint), "%.4s", h->token);
	put_text(o, "TOKEN", NULL, hint);
	text_addf(cell(o, "NODES"), "%d/%d", r->agreeing, r->nodes);
	if (is_dlock(h) && h->holds > 1)
		text_addf(cell(o, "HELD"), " (%" PRId64 " holds)", h->holds);
	if (!o->view->chosen && holder_from_acquire(h))
		text_addf(cell(o, "LABEL"), "%s(acquire)", gap);
	if (!o->view->chosen && holder_has_keeper(h)) {
		text_addf(cell(o, "LABEL"), "%s(keeper of PID ", gap);
		put_text(o, "LABEL", NULL, pid);
		text_addf(cell(o, "LABEL"), ")");
	}
}

enum status
view_lock(struct view *v, const char *key, const struct record *r, struct err *err)
{
	const struct holder *const h = record_holder(r);
	struct json json;
	const struct out o = begin(v, key, &json);
	int i;

	v->state = r->state;
	for (i = 0; i < v->layout.columns && !v->chosen; i++) {
		if (r->nodes == 1 && strcmp(v->layout.column[i].name, "NODES") == 0)
			v->layout.column[i].rank = 2;
	}
	put_text(&o, "STATE", "state", record_state(r->state));
	put_holder(&o, h);
	put_number(&o, "WAITING", "waiting", h->waiting, v->json || h->waiting > 0);
	if (v->json)
		json_more(&json, r, h);
	else
		put_more(&o, r, h);
	return end(&o, err);
}

/* -- Earlier holders, and waiters ------------------------------------------- */

/* "exit 3", "SIGKILL", "lost", "broken by root@host:17" ... */
static void
write_outcome(struct text *text, const struct former *f)
{
	char signal[SIGNAL_NAME_SIZE];

	if (strcmp(f->outcome, "ran") != 0)
		text_add_shown(text, f->outcome, strlen(f->outcome));
	else if (f->command.status < 0)
		text_addf(text, "%s", signals_name(-f->command.status, signal));
	else
		text_addf(text, "exit %d", f->command.status);
	if (f->broken_by[0] != '\0') {
		text_addf(text, " by ");
		text_add_shown(text, f->broken_by, strlen(f->broken_by));
	}
}

enum status
view_formers(struct view *v, const char *key, const struct record *r, struct err *err)
{
	enum status status = ST_OK;
	const struct former *f;
	struct json json;
	struct out o;
	size_t i;

	for (i = 0; i < r->formers && status == ST_OK; i++) {
		f = &r->former[i];
		o = begin(v, key, &json);
		put_time(&o, "START", "start_ms", f->start_ms);
		put_time(&o, "END", "end_ms", f->end_ms);
		put_ms(&o, "HELD", "held_ms", f->held_ms, f->held_ms >= 0);
		put_ms(&o, "WAITED", "waited_ms", f->waited_ms, true);
		put_owner(&o, f->owner, "");
		put_text(&o, "LABEL", "label", f->label);
		put_number(&o, "FENCE", "fence", f->fence, true);
		if (v->json) {
			json_string(&json, "outcome", f->outcome);
			view_json_child(&json, &f->command);
			json_string_or_null(&json, "broken_by", f->broken_by);
		} else
			write_outcome(cell(&o, "OUTCOME"), f);
		status = end(&o, err);
	}
	return status;
}

enum status
view_waiters(struct view *v, const char *key, const struct record *r, struct err *err)
{
	const int64_t now_ms = clock_wall_us() / 1000;
	enum status status = ST_OK;
	const struct waiter *w;
	struct json json;
	struct out o;
	size_t i;

	for (i = 0; i < r->waiters && status == ST_OK; i++) {
		w = &r->waiter[i];
		o = begin(v, key, &json);
		put_time(&o, "SINCE", "since_ms", w->since_ms);
		if (!v->json)
			put_ms(&o, "WAITING", NULL, now_ms > w->since_ms ? now_ms - w->since_ms : 0, w->since_ms > 0);
		put_owner(&o, w->owner, "");
		put_text(&o, "LABEL", "label", w->label);
		status = end(&o, err);
	}
	return status;
}

void
view_end(struct view *v)
{
	struct err ignored;

	if (v->locks && v->layout.cells == 0 && !v->layout.begun)
		(void)add_headings(v, &ignored);
	if (v->layout.cells > 0)
		layout_end(&v->layout);
}

/* -- Parts of the JSON of several commands ---------------------------------- */

void
view_json_owner(struct json *j, const char *name, const char *owner)
{
	char copy[OWNER_MAX + 1];
	const char *user, *host, *pid;

	if (owner[0] == '\0') {
		json_null(j, name);
		return;
	}
	(void)snprintf(copy, sizeof(copy), "%s", owner);
	output_split_owner(copy, &user, &host, &pid);
	json_open(j, name, '{');
	json_string(j, "user", user);
	json_string(j, "host", host);
	json_number(j, "pid", strtoll(pid, NULL, 10));
	if (strcmp(name, "owner") == 0)
		json_string(j, "command",
		    owner[holder_owner_length(owner)] == '\0' ? "run" : owner + holder_owner_length(owner) + 1);
	json_close(j, '}');
}

void
view_json_child(struct json *j, const struct command_end *e)
{
	if (!e->is) {
		json_null(j, "child");
		return;
	}
	json_open(j, "child", '{');
	json_number(j, e->status < 0 ? "signal" : "exit", e->status < 0 ? -e->status : e->status);
	json_close(j, '}');
}

void
view_json_who(struct json *j, const struct holder *h)
{
	const struct out o = { j, NULL };

	put_who(&o, h);
}

void
view_json_holder(struct json *j, const struct holder *h)
{
	const struct out o = { j, NULL };

	if (h == NULL || h->token[0] == '\0') {
		json_null(j, "holder");
		return;
	}
	json_open(j, "holder", '{');
	json_string(j, "state", record_state(h->state));
	put_holder(&o, h);
	json_close(j, '}');
}
