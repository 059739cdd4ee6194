/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/duration.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/layout.h"
#include "cli/output.h"
#include "cli/services.h"
#include "cli/setup.h"
#include "cli/view.h"
#include "run/signals.h"

static const struct layout_column columns[] = {
	{ "KEY", LAYOUT_TEXT, 0 },
	{ "START", LAYOUT_WHOLE, 0 },
	{ "END", LAYOUT_WHOLE, 2 },
	{ "HELD", LAYOUT_WHOLE, 0 },
	{ "WAITED", LAYOUT_WHOLE, 3 },
	{ "OUTCOME", LAYOUT_TEXT, 0 },
	{ "OWNER", LAYOUT_OWNER, 0 },
	{ "LABEL", LAYOUT_TEXT, 0 },
	{ "FENCE", LAYOUT_WHOLE, 1 },
};

enum {
	COLUMNS = sizeof(columns) / sizeof(columns[0])
};

/* -- Cells ------------------------------------------------------------------ */

/* The time of day on this host, from milliseconds; "" for a time that is unknown. */
static void
show_time(int64_t ms, char *to, size_t size)
{
	const time_t seconds = (time_t)(ms / 1000);
	struct tm tm;

	to[0] = '\0';
	if (ms > 0 && localtime_r(&seconds, &tm) != NULL)
		(void)strftime(to, size, "%Y-%m-%d %H:%M:%S", &tm);
}

/* "exit 3", "SIGKILL", "lost", "broken by root@host:17" ... */
static void
show_outcome(const struct history_entry *e, char *to, size_t size)
{
	struct text text = text_in(to, size);
	char signal[SIGNAL_NAME_SIZE];

	if (strcmp(e->outcome, "ran") != 0)
		text_add_shown(&text, e->outcome, strlen(e->outcome));
	else if (e->command.status < 0)
		text_addf(&text, "%s", signals_name(-e->command.status, signal));
	else
		text_addf(&text, "exit %d", e->command.status);
	if (e->broken_by[0] != '\0') {
		text_addf(&text, " by ");
		text_add_shown(&text, e->broken_by, strlen(e->broken_by));
	}
}

static void
write_cell(const struct history_entry *e, const char *key, int column, char cell[LAYOUT_CELL_MAX])
{
	struct text text = text_in(cell, LAYOUT_CELL_MAX);
	const char *const name = columns[column].name;

	if (strcmp(name, "KEY") == 0)
		text_add_shown(&text, key, strlen(key));
	else if (strcmp(name, "START") == 0)
		show_time(e->start_ms, cell, LAYOUT_CELL_MAX);
	else if (strcmp(name, "END") == 0)
		show_time(e->end_ms, cell, LAYOUT_CELL_MAX);
	else if (strcmp(name, "HELD") == 0 && e->held_ms >= 0)
		duration_show(e->held_ms, cell, LAYOUT_CELL_MAX);
	else if (strcmp(name, "WAITED") == 0)
		duration_show(e->waited_ms, cell, LAYOUT_CELL_MAX);
	else if (strcmp(name, "OUTCOME") == 0)
		show_outcome(e, cell, LAYOUT_CELL_MAX);
	else if (strcmp(name, "OWNER") == 0)
		text_add_shown(&text, e->owner, holder_owner_length(e->owner));
	else if (strcmp(name, "LABEL") == 0)
		text_add_shown(&text, e->label, strlen(e->label));
	else if (strcmp(name, "FENCE") == 0)
		text_addf(&text, "%" PRId64, e->fence);
}

static void
print_json(const char *key, const struct history_entry *e)
{
	struct json j = { .out = stdout };

	json_open(&j, NULL, '{');
	json_string(&j, "key", key);
	json_number(&j, "start_ms", e->start_ms);
	if (e->end_ms >= 0)
		json_number(&j, "end_ms", e->end_ms);
	else
		json_null(&j, "end_ms");
	if (e->held_ms >= 0)
		json_number(&j, "held_ms", e->held_ms);
	else
		json_null(&j, "held_ms");
	json_number(&j, "waited_ms", e->waited_ms);
	view_json_owner(&j, e->owner);
	json_string_or_null(&j, "label", e->label);
	json_number(&j, "fence", e->fence);
	json_string(&j, "outcome", e->outcome);
	if (e->command.is) {
		json_open(&j, "child", '{');
		json_number(&j, e->command.status < 0 ? "signal" : "exit",
		    e->command.status < 0 ? -e->command.status : e->command.status);
		json_close(&j, '}');
	} else
		json_null(&j, "child");
	json_string_or_null(&j, "broken_by", e->broken_by);
	json_close(&j, '}');
	putchar('\n');
}

/* -- The history ------------------------------------------------------------ */

/* The state of a command that reads the history of each KEY. */
struct reading {
	const struct invocation *inv;
	struct layout layout;
	/* ST_NO: the answer for this KEY is no. */
	enum status (*show)(struct reading *, const char *key, const struct history *, struct err *);
};

/* The column KEY, the first, is there only if there are several. */
static void
set_columns(struct reading *r, const struct invocation *inv, const struct layout_column *all, int count)
{
	const int first = inv->operands > 1 ? 0 : 1;

	r->layout.columns = count - first;
	memcpy(r->layout.column, all + first, (size_t)r->layout.columns * sizeof(*all));
}

static enum status
show_entries(struct reading *r, const char *key, const struct history *h, struct err *err)
{
	const int first = COLUMNS - r->layout.columns;
	char cell[LAYOUT_CELL_MAX], shown[200];
	enum status status = ST_OK;
	size_t i;
	int c;

	for (i = 0; i < h->entries && status == ST_OK; i++) {
		if (r->inv->options.json)
			print_json(key, &h->entry[i]);
		for (c = first; c < COLUMNS && status == ST_OK && !r->inv->options.json; c++) {
			cell[0] = '\0';
			write_cell(&h->entry[i], key, c, cell);
			status = layout_add(&r->layout, cell, "", err);
		}
	}
	if (status != ST_OK || h->entries > 0)
		return status;
	if (!r->inv->options.quiet)
		log_warn(&r->inv->log, "%s: no history: it was not held in the last 30 days, or only with --history 0",
		    text_show(key, shown, sizeof(shown)));
	return ST_NO;
}

/* -- Waiters ---------------------------------------------------------------- */

static void
print_waiter_json(const char *key, const struct waiter *w)
{
	struct json j = { .out = stdout };

	json_open(&j, NULL, '{');
	json_string(&j, "key", key);
	if (w->since_ms > 0)
		json_number(&j, "since_ms", w->since_ms);
	else
		json_null(&j, "since_ms");
	view_json_owner(&j, w->owner);
	json_string_or_null(&j, "label", w->label);
	json_close(&j, '}');
	putchar('\n');
}

static enum status
show_waiters(struct reading *r, const char *key, const struct history *h, struct err *err)
{
	char cell[5][LAYOUT_CELL_MAX];
	const int first = 5 - r->layout.columns;
	const int64_t now_ms = clock_wall_us() / 1000;
	enum status status = ST_OK;
	size_t i;
	int c;

	for (i = 0; i < h->waiters && status == ST_OK; i++) {
		const struct waiter *const w = &h->waiter[i];

		if (r->inv->options.json) {
			print_waiter_json(key, w);
			continue;
		}
		(void)text_show(key, cell[0], sizeof(cell[0]));
		show_time(w->since_ms, cell[1], sizeof(cell[1]));
		cell[2][0] = '\0';
		if (w->since_ms > 0)
			duration_show(now_ms > w->since_ms ? now_ms - w->since_ms : 0, cell[2], sizeof(cell[2]));
		(void)text_show(w->owner, cell[3], sizeof(cell[3]));
		cell[3][holder_owner_length(cell[3])] = '\0';
		(void)text_show(w->label, cell[4], sizeof(cell[4]));
		for (c = first; c < 5 && status == ST_OK; c++)
			status = layout_add(&r->layout, cell[c], "", err);
	}
	return status == ST_OK && h->waiters == 0 ? ST_NO : status;
}

/* -- The age of the last success -------------------------------------------- */

static void
print_age_json(const char *key, const struct history *h, bool fine)
{
	struct json j = { .out = stdout };

	json_open(&j, NULL, '{');
	json_string(&j, "key", key);
	json_string(&j, "state", fine ? "ok" : "late");
	if (h->success_ms > 0) {
		json_number(&j, "last_success_ms", h->success_ms);
		json_number(&j, "age_ms", h->success_age_ms);
	} else {
		json_null(&j, "last_success_ms");
		json_null(&j, "age_ms");
	}
	json_close(&j, '}');
	putchar('\n');
}

static enum status
show_age(struct reading *r, const char *key, const struct history *h, struct err *err)
{
	const int64_t most_ms = r->inv->options.max_age_ms;
	const bool fine = h->success_ms > 0 && h->success_age_ms <= most_ms;
	char shown[300], age[32], most[32];

	(void)err;
	duration_show(h->success_age_ms, age, sizeof(age));
	duration_show(most_ms, most, sizeof(most));
	(void)text_show(key, shown, sizeof(shown));
	if (r->inv->options.json)
		print_age_json(key, h, fine);
	else if (!r->inv->options.quiet && h->success_ms > 0)
		printf("%s: %s: the last success was %s ago, the maximum is %s\n", shown, fine ? "ok" : "late", age,
		    most);
	else if (!r->inv->options.quiet)
		printf("%s: late: no success is known, the maximum is %s\n", shown, most);
	return fine ? ST_OK : ST_NO;
}

/* -- The commands ----------------------------------------------------------- */

static enum status
read_key(struct reading *r, struct backend *backend, const char *key, struct err *err)
{
	struct history history = { .entries = 0 };
	char full[KEY_MAX + 1], shown[200];
	enum status status = setup_key(r->inv, key, full, err);

	if (status == ST_OK)
		status = backend->ops->history(backend, full, -1, &history, err);
	if (status == ST_OK)
		status = r->show(r, key, &history, err);
	else if (r->inv->operands > 1)
		err_prefix(err, text_show(key, shown, sizeof(shown)));
	history_free(&history);
	return status;
}

/* Is there a history?  Who waits is told by every service. */
static enum status
check_service(const struct reading *r, struct err *err)
{
	const struct service *const service = service_of(r->inv->options.node[0]);

	if (service->history || r->show == show_waiters)
		return ST_OK;
	return err_set(err, ST_USAGE,
	    "%s keeps no history of its locks; dlock history and --max-age need nodes of Redis", service->name);
}

/* ST_NO: the answer for one of the KEYs is no. */
static int
read_keys(struct reading *r, struct invocation *inv, struct err *err)
{
	struct backend *backend = NULL;
	enum status status, worst = ST_OK;
	int i;

	r->inv = inv;
	r->layout.width = output_extent(STDOUT_FILENO).columns;
	r->layout.headings = !inv->options.no_headings;
	r->layout.out = stdout;
	r->layout.line_end = "\n";
	status = check_service(r, err);
	if (status == ST_OK)
		status = setup_service(inv, &backend, err);
	if (status != ST_OK)
		return (int)status;
	for (i = 0; i < inv->operands && status == ST_OK; i++) {
		status = read_key(r, backend, inv->operand[i], err);
		worst = status == ST_NO ? ST_NO : worst;
		status = status == ST_NO ? ST_OK : status;
	}
	backend->ops->close(backend);
	if (r->layout.cells > 0)
		layout_end(&r->layout);
	return (int)output_end_page(status == ST_OK ? worst : status, err);
}

int
cmd_history(struct invocation *inv, struct err *err)
{
	struct reading r = { .show = show_entries };

	set_columns(&r, inv, columns, COLUMNS);
	return read_keys(&r, inv, err);
}

/* These take names, and no other form of output. */
static enum status
check(const struct invocation *inv, const char *option, struct err *err)
{
	const struct options *const o = &inv->options;
	int i;

	if (o->prometheus || o->watch || o->columns != NULL || (o->waiters && o->max_age_given))
		return err_set(err, ST_USAGE,
		    "%s cannot be used together with --prometheus, --watch, --output or the other of --waiters and "
		    "--max-age",
		    option);
	if (inv->operands == 0)
		return err_set(err, ST_USAGE, "%s needs a KEY", option);
	for (i = 0; i < inv->operands; i++) {
		if (strpbrk(inv->operand[i], "*?[") != NULL)
			return err_set(err, ST_USAGE, "%s needs a KEY, not a PATTERN", option);
	}
	return ST_OK;
}

int
cmd_status_waiters(struct invocation *inv, struct err *err)
{
	static const struct layout_column all[] = { { "KEY", LAYOUT_TEXT, 0 }, { "SINCE", LAYOUT_WHOLE, 1 },
		{ "WAITING", LAYOUT_WHOLE, 0 }, { "OWNER", LAYOUT_OWNER, 0 }, { "LABEL", LAYOUT_TEXT, 0 } };
	struct reading r = { .show = show_waiters };
	const enum status status = check(inv, "--waiters", err);

	set_columns(&r, inv, all, 5);
	return status == ST_OK ? read_keys(&r, inv, err) : (int)status;
}

int
cmd_status_age(struct invocation *inv, struct err *err)
{
	struct reading r = { .show = show_age };
	const enum status status = check(inv, "--max-age", err);

	return status == ST_OK ? read_keys(&r, inv, err) : (int)status;
}
