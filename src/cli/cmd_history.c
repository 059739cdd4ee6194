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
#include "cli/setup.h"
#include "cli/view.h"
#include "lock/service.h"
#include "run/signals.h"

enum {
	COLUMNS_MAX = 9
};

/* The cells of one row, in the order of its columns. */
typedef char row[COLUMNS_MAX][LAYOUT_CELL_MAX];

/* -- Cells ------------------------------------------------------------------ */

/* The time of day on this host, from milliseconds; "" for a time that is unknown. */
static void
show_time(int64_t ms, char cell[LAYOUT_CELL_MAX])
{
	const time_t seconds = (time_t)(ms / 1000);
	struct tm tm;

	cell[0] = '\0';
	if (ms > 0 && localtime_r(&seconds, &tm) != NULL)
		(void)strftime(cell, LAYOUT_CELL_MAX, "%Y-%m-%d %H:%M:%S", &tm);
}

static void
show_owner(const char *owner, char cell[LAYOUT_CELL_MAX])
{
	struct text text = text_in(cell, LAYOUT_CELL_MAX);

	text_add_shown(&text, owner, holder_owner_length(owner));
}

/* "exit 3", "SIGKILL", "lost", "broken by root@host:17" ... */
static void
show_outcome(const struct history_entry *e, char cell[LAYOUT_CELL_MAX])
{
	struct text text = text_in(cell, LAYOUT_CELL_MAX);
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
write_entry(row cell, const char *key, const struct history_entry *e)
{
	(void)text_show(key, cell[0], LAYOUT_CELL_MAX);
	show_time(e->start_ms, cell[1]);
	show_time(e->end_ms, cell[2]);
	cell[3][0] = '\0';
	if (e->held_ms >= 0)
		duration_show(e->held_ms, cell[3], LAYOUT_CELL_MAX);
	duration_show(e->waited_ms, cell[4], LAYOUT_CELL_MAX);
	show_outcome(e, cell[5]);
	show_owner(e->owner, cell[6]);
	(void)text_show(e->label, cell[7], LAYOUT_CELL_MAX);
	(void)snprintf(cell[8], LAYOUT_CELL_MAX, "%" PRId64, e->fence);
}

static void
print_json(const char *key, const struct history_entry *e)
{
	struct json j = json_begin_line(stdout);

	json_string(&j, "key", key);
	json_number(&j, "start_ms", e->start_ms);
	json_number_or_null(&j, "end_ms", e->end_ms, e->end_ms >= 0);
	json_number_or_null(&j, "held_ms", e->held_ms, e->held_ms >= 0);
	json_number(&j, "waited_ms", e->waited_ms);
	view_json_owner(&j, "owner", e->owner);
	json_string_or_null(&j, "label", e->label);
	json_number(&j, "fence", e->fence);
	json_string(&j, "outcome", e->outcome);
	view_json_child(&j, &e->command);
	json_string_or_null(&j, "broken_by", e->broken_by);
	json_end_line(&j);
}

/* -- The history ------------------------------------------------------------ */

/* The state of a command that reads the history of each KEY. */
struct reading {
	const struct invocation *inv;
	struct layout layout;
	int first; /* column that is shown */
	/* ST_NO: the answer for this KEY is no. */
	enum status (*show)(struct reading *, const char *key, const struct history *, struct err *);
};

/* The column KEY, the first, is there only if there are several. */
static void
set_columns(struct reading *r, const struct invocation *inv, const struct layout_column *all, int count)
{
	r->first = inv->operands > 1 ? 0 : 1;
	r->layout.columns = count - r->first;
	memcpy(r->layout.column, all + r->first, (size_t)r->layout.columns * sizeof(*all));
}

static enum status
add_row(struct reading *r, row cell, struct err *err)
{
	enum status status = ST_OK;
	int c;

	for (c = 0; c < r->layout.columns && status == ST_OK; c++)
		status = layout_add(&r->layout, cell[r->first + c], "", err);
	return status;
}

static enum status
show_entries(struct reading *r, const char *key, const struct history *h, struct err *err)
{
	enum status status = ST_OK;
	char shown[200];
	size_t i;
	row cell;

	for (i = 0; i < h->entries && status == ST_OK; i++) {
		if (r->inv->options.json) {
			print_json(key, &h->entry[i]);
			continue;
		}
		write_entry(cell, key, &h->entry[i]);
		status = add_row(r, cell, err);
	}
	if (status != ST_OK || h->entries > 0)
		return status;
	if (!r->inv->options.quiet)
		log_warn(&r->inv->log, "%s: no history: no dlock recorded a holder in the last 30 days (see --history)",
		    text_show(key, shown, sizeof(shown)));
	return ST_NO;
}

/* -- Waiters ---------------------------------------------------------------- */

static void
print_waiter_json(const char *key, const struct waiter *w)
{
	struct json j = json_begin_line(stdout);

	json_string(&j, "key", key);
	json_number_or_null(&j, "since_ms", w->since_ms, w->since_ms > 0);
	view_json_owner(&j, "owner", w->owner);
	json_string_or_null(&j, "label", w->label);
	json_end_line(&j);
}

static void
write_waiter(row cell, const char *key, const struct waiter *w, int64_t now_ms)
{
	(void)text_show(key, cell[0], LAYOUT_CELL_MAX);
	show_time(w->since_ms, cell[1]);
	cell[2][0] = '\0';
	if (w->since_ms > 0)
		duration_show(now_ms > w->since_ms ? now_ms - w->since_ms : 0, cell[2], LAYOUT_CELL_MAX);
	show_owner(w->owner, cell[3]);
	(void)text_show(w->label, cell[4], LAYOUT_CELL_MAX);
}

static enum status
show_waiters(struct reading *r, const char *key, const struct history *h, struct err *err)
{
	const int64_t now_ms = clock_wall_us() / 1000;
	enum status status = ST_OK;
	size_t i;
	row cell;

	for (i = 0; i < h->waiters && status == ST_OK; i++) {
		if (r->inv->options.json) {
			print_waiter_json(key, &h->waiter[i]);
			continue;
		}
		write_waiter(cell, key, &h->waiter[i], now_ms);
		status = add_row(r, cell, err);
	}
	return status == ST_OK && h->waiters == 0 ? ST_NO : status;
}

/* -- The age of the last success -------------------------------------------- */

static void
print_age_json(const char *key, const struct history *h, bool fine)
{
	struct json j = json_begin_line(stdout);

	json_string(&j, "key", key);
	json_string(&j, "state", fine ? "ok" : "late");
	json_number_or_null(&j, "last_success_ms", h->success_ms, h->success_ms > 0);
	json_number_or_null(&j, "age_ms", h->success_age_ms, h->success_ms > 0);
	json_end_line(&j);
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
	const struct wait wait = { CLOCK_NEVER, -1 };
	struct history history = { .entries = 0 };
	char full[KEY_MAX + 1], shown[200];
	enum status status = setup_key(r->inv, key, full, err);

	if (status == ST_OK)
		status = backend->service->history(backend, full, &wait, &history, err);
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
	const struct service *const service = r->inv->service;

	if (service->keeps_history || r->show == show_waiters)
		return ST_OK;
	return err_set(err, ST_USAGE, "%s keeps no history of its locks, which dlock history and --max-age need",
	    service->name);
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
	backend->service->close(backend);
	if (r->layout.cells > 0)
		layout_end(&r->layout);
	return (int)output_end_page(status == ST_OK ? worst : status, err);
}

int
cmd_history(struct invocation *inv, struct err *err)
{
	static const struct layout_column all[COLUMNS_MAX] = { { "KEY", LAYOUT_WHOLE, 0 }, { "START", LAYOUT_WHOLE, 0 },
		{ "END", LAYOUT_WHOLE, 2 }, { "HELD", LAYOUT_WHOLE, 0 }, { "WAITED", LAYOUT_WHOLE, 3 },
		{ "OUTCOME", LAYOUT_TEXT, 0 }, { "OWNER", LAYOUT_OWNER, 0 }, { "LABEL", LAYOUT_TEXT, 0 },
		{ "FENCE", LAYOUT_WHOLE, 1 } };
	struct reading r = { .show = show_entries };

	set_columns(&r, inv, all, COLUMNS_MAX);
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
cmd_status_history(struct invocation *inv, struct err *err)
{
	static const struct layout_column all[] = { { "KEY", LAYOUT_WHOLE, 0 }, { "SINCE", LAYOUT_WHOLE, 1 },
		{ "WAITING", LAYOUT_WHOLE, 0 }, { "OWNER", LAYOUT_OWNER, 0 }, { "LABEL", LAYOUT_TEXT, 0 } };
	const bool age = inv->options.max_age_given;
	struct reading r = { .show = age ? show_age : show_waiters };
	const enum status status = check(inv, age ? "--max-age" : "--waiters", err);

	set_columns(&r, inv, all, 5);
	return status == ST_OK ? read_keys(&r, inv, err) : (int)status;
}
