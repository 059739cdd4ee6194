/* SPDX-License-Identifier: MIT */
/* The commands that only look at locks: status and history. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/duration.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/metrics.h"
#include "cli/output.h"
#include "cli/screen.h"
#include "cli/setup.h"
#include "cli/view.h"
#include "lock/service.h"

struct display {
	const struct invocation *inv;
	struct backend *backend;
	struct view view;
	struct metrics metrics;
	struct screen screen;
	struct look_args look;
	size_t most; /* number of locks that fit the terminal; 0: no limit */
	size_t shown;
	size_t hidden; /* locks in lists that this user may not read */

	/* Show one lock.  ST_NO: the answer for it is no. */
	enum status (*show)(struct display *, const char *key, const struct record *);

	struct record *record; /* of locks that are looked at together */
	char *key[LOOK_COUNT_MAX];
	bool even_if_free;

	bool one_key;	    /* a single key was given */
	bool no;	    /* the answer for one of the locks is no */
	enum status failed; /* not ST_OK: stop */
	enum status worst;  /* of the keys that could not be looked at */
	struct err err;	    /* for `failed` or `worst` */
};

static bool
is_pattern(const char *operand)
{
	return strpbrk(operand, "*?[") != NULL;
}

/* -- The state -------------------------------------------------------------- */

/* Of a single key that was given, its state is the exit status. */
static enum status
show_state(struct display *d, const char *key, const struct record *r)
{
	enum status status = ST_OK;
	int i;

	for (i = 0; i < r->nodes; i++)
		log_debug(&d->inv->log, "%s: %s%s%s", r->node[i].name, record_state(r->node[i].state),
		    r->node[i].state == LOCK_UNKNOWN ? ": " : "", r->node[i].reason.text);
	if (r->state == LOCK_FREE && !d->even_if_free)
		return ST_OK;
	d->shown++;
	if (d->inv->options.quiet)
		;
	else if (d->inv->options.prometheus)
		status = metrics_add(&d->metrics, key, r, &d->err);
	else
		status = view_lock(&d->view, key, r, &d->err);
	return status == ST_OK && d->one_key && r->state == LOCK_FREE ? ST_NO : status;
}

/* -- The history, and waiters ----------------------------------------------- */

static enum status
show_formers(struct display *d, const char *key, const struct record *r)
{
	char shown[200];

	if (r->formers == 0 && !d->inv->options.quiet)
		log_warn(&d->inv->log, "%s: no history: no dlock recorded a holder in the last 30 days (see --history)",
		    text_show(key, shown, sizeof(shown)));
	return r->formers == 0 ? ST_NO : view_formers(&d->view, key, r, &d->err);
}

static enum status
show_waiters(struct display *d, const char *key, const struct record *r)
{
	return r->waiters == 0 ? ST_NO : view_waiters(&d->view, key, r, &d->err);
}

/* How long ago the last success was. */
static enum status
show_age(struct display *d, const char *key, const struct record *r)
{
	const int64_t most_ms = d->inv->options.max_age_ms;
	const bool fine = r->success.at_ms > 0 && r->success.age_ms <= most_ms;
	char shown[300], age[32], most[32];
	struct json j;

	duration_show(r->success.age_ms, age, sizeof(age));
	duration_show(most_ms, most, sizeof(most));
	(void)text_show(key, shown, sizeof(shown));
	if (d->inv->options.json) {
		j = json_begin_line(stdout);
		json_string(&j, "key", key);
		json_string(&j, "state", fine ? "ok" : "late");
		json_number_or_null(&j, "last_success_ms", r->success.at_ms, r->success.at_ms > 0);
		json_number_or_null(&j, "age_ms", r->success.age_ms, r->success.at_ms > 0);
		json_end_line(&j);
	} else if (!d->inv->options.quiet && r->success.at_ms > 0)
		printf("%s: %s: the last success was %s ago, the maximum is %s\n", shown, fine ? "ok" : "late", age,
		    most);
	else if (!d->inv->options.quiet)
		printf("%s: late: no success is known, the maximum is %s\n", shown, most);
	return fine ? ST_OK : ST_NO;
}

/* -- Locks ------------------------------------------------------------------ */

static void
show_record(struct display *d, const struct record *r)
{
	const char *const key = r->key + strlen(d->inv->options.prefix);
	const bool state = (d->look.what & LOOK_STATE) != 0;
	enum status status = r->status;
	char shown[200];

	if (d->failed != ST_OK || (d->most > 0 && d->shown == d->most))
		return;
	if (status == ST_DENIED && r->hidden && !d->even_if_free) {
		d->hidden++; /* a lock of others, which share the server */
		return;
	}
	if (status != ST_OK) {
		d->err = r->err;
		if (state)
			setup_blame_denied(key, status, &d->err);
		else if (!d->one_key)
			err_prefix(&d->err, text_show(key, shown, sizeof(shown)));
		d->worst = status; /* this key has an error; the others may not */
	}
	if (status != ST_OK && (!state || r->answered == 0 || d->one_key)) {
		d->failed = status;
		return;
	}
	status = d->show(d, key, r);
	d->no |= status == ST_NO;
	d->failed = status == ST_NO ? ST_OK : status;
}

/* Look at the collected keys together, and show them. */
static void
show_keys(struct display *d)
{
	enum status status = ST_OK;
	int i;

	if (d->look.count > 0 && d->failed == ST_OK)
		status = d->backend->service->look(d->backend, &d->look, d->record, &d->err);
	for (i = 0; i < d->look.count; i++) {
		if (status == ST_OK)
			show_record(d, &d->record[i]);
		record_free(&d->record[i]);
		free(d->key[i]);
		memset(&d->record[i], 0, sizeof(d->record[i]));
	}
	d->look.count = 0;
	if (status != ST_OK)
		d->failed = status;
}

/* Add a key; false if no more are wanted. */
static bool
add_key(struct display *d, const char *full_key)
{
	const int i = d->look.count;

	d->record[i].key = d->key[i] = strdup(full_key);
	if (d->key[i] == NULL)
		d->failed = err_set(&d->err, ST_SYSTEM, OUT_OF_MEMORY);
	else if (++d->look.count == LOOK_COUNT_MAX)
		show_keys(d);
	return d->failed == ST_OK && (d->most == 0 || d->shown < d->most);
}

/* -- Operands --------------------------------------------------------------- */

/* The prefix, escaped to match only itself, followed by the pattern of the user. */
static void
write_pattern(const struct invocation *inv, const char *operand, char *pattern, size_t size)
{
	struct text text = text_in(pattern, size);
	const char *at;

	for (at = inv->options.prefix; *at != '\0'; at++) {
		if (strchr("*?[]\\^", *at) != NULL)
			text_add(&text, "\\", 1);
		text_add(&text, at, 1);
	}
	text_add(&text, operand, strlen(operand));
}

/* Show all locks that match, but this full key, which was shown already.  NULL: all locks held by dlock. */
static void
show_matching(struct display *d, const char *operand, const char *but)
{
	const char *const prefix = d->inv->options.prefix;
	struct names found = { NULL, 0, 0 };
	char pattern[3 * KEY_MAX];
	bool on;
	size_t i;

	d->even_if_free = false;
	if (operand != NULL)
		write_pattern(d->inv, operand, pattern, sizeof(pattern));
	d->failed = d->backend->service->list(d->backend, operand != NULL ? pattern : NULL, &d->look.wait, &found,
	    &d->err);
	on = d->failed == ST_OK;
	for (i = 0; i < found.count && on; i++) {
		if (strncmp(found.at[i], prefix, strlen(prefix)) == 0 && (but == NULL || strcmp(found.at[i], but) != 0))
			on = add_key(d, found.at[i]);
	}
	names_free(&found);
	show_keys(d);
}

/* Show a KEY or a PATTERN.  A PATTERN may also be the key of a lock itself, which is shown first. */
static void
show_operand(struct display *d, const char *operand)
{
	const bool pattern = d->show == show_state && is_pattern(operand);
	const size_t hidden = d->hidden;
	char key[KEY_MAX + 1];

	d->failed = setup_key(d->inv, operand, key, &d->err);
	if (d->failed != ST_OK)
		return;
	if (pattern)
		show_keys(d);
	d->even_if_free = !pattern;
	(void)add_key(d, key);
	if (!pattern || d->failed != ST_OK)
		return;
	show_keys(d);
	d->hidden = hidden;
	if (d->failed == ST_OK)
		show_matching(d, operand, key);
}

static void
show_operands(struct display *d)
{
	const struct invocation *inv = d->inv;
	int i;

	if (inv->operands == 0)
		show_matching(d, NULL, NULL);
	for (i = 0; i < inv->operands && d->failed == ST_OK; i++)
		show_operand(d, inv->operand[i]);
	show_keys(d);
}

/* -- Frames ----------------------------------------------------------------- */

static void
print_metrics(struct display *d)
{
	struct probed *const probed = calloc(NODES_MAX, sizeof(*probed));
	int nodes;

	if (probed == NULL) {
		d->failed = err_set(&d->err, ST_SYSTEM, OUT_OF_MEMORY);
		return;
	}
	nodes = d->backend->service->probe(d->backend, probed);
	metrics_print(&d->metrics, probed, nodes);
	free(probed);
}

/* Show everything once.  ST_NO: the answer for a lock is no. */
static enum status
show_all(struct display *d, struct err *err)
{
	const struct options *o = &d->inv->options;

	d->failed = d->worst = ST_OK;
	d->no = false;
	d->shown = d->hidden = 0;
	show_operands(d);
	if (o->prometheus && !o->quiet)
		print_metrics(d); /* even on failure: they include the nodes that are down */
	else if (!o->json && (d->show != show_state || (!o->quiet && (d->failed == ST_OK || d->shown > 0))))
		view_end(&d->view);
	layout_free(&d->view.layout);
	if (d->failed != ST_OK || d->worst != ST_OK)
		*err = d->err;
	if (d->hidden > 0 && !o->quiet && !o->watch && !o->json && !o->prometheus)
		log_warn(&d->inv->log, "%zu %s not shown: this user may not read %s keys", d->hidden,
		    d->hidden == 1 ? "lock is" : "locks are", d->hidden == 1 ? "its" : "their");
	if (d->failed != ST_OK)
		return d->failed;
	if (d->worst != ST_OK)
		return d->worst;
	return d->no ? ST_NO : ST_OK;
}

/* The first line of a frame on a terminal: the current time and the interval. */
static void
print_time(const struct display *d)
{
	char now[32] = "", interval[32];
	const time_t seconds = time(NULL);
	struct tm tm;

	if (localtime_r(&seconds, &tm) != NULL)
		(void)strftime(now, sizeof(now), "%H:%M:%S", &tm);
	duration_show(d->inv->options.watch_ms, interval, sizeof(interval));
	printf("%s%s, every %s%s%s", d->view.coloured ? COLOUR_DIM : "", now, interval,
	    d->view.coloured ? COLOUR_END : "", screen_line_end(&d->screen));
}

static bool
has_failed(enum status status)
{
	return status != ST_OK && status != ST_NO && status != ST_INTERRUPTED;
}

static enum status
show_frame(struct display *d, struct err *err)
{
	struct screen *s = &d->screen;
	char shown[sizeof(err->text)];
	enum status status;
	size_t bytes, taken;

	screen_begin(s);
	if (s->terminal) {
		print_time(d);
		d->view.layout.width = s->extent.columns;
		d->most = s->extent.rows > 4 ? s->extent.rows - 4 : 1;
	}
	status = show_all(d, err);
	if (s->terminal && d->most > 0 && d->shown == d->most)
		printf("...%s", screen_line_end(s));
	if (s->terminal && has_failed(status)) {
		bytes = text_fitting(text_show(err->text, shown, sizeof(shown)), s->extent.columns - 1, &taken);
		printf("%.*s%s", (int)bytes, shown, screen_line_end(s));
	}
	screen_end(s);
	return status;
}

/* Repeat until a signal arrives.  A failure of the first frame is final; a later one may pass. */
static enum status
watch(struct display *d, struct err *err)
{
	struct screen *s = &d->screen;
	enum status status = screen_open(s, &d->inv->given_mask, !d->inv->options.json, err);
	bool again = status == ST_OK;

	d->look.wait.interrupt_fd = s->signals.fd;
	d->view.layout.line_end = screen_line_end(s);
	while (again) {
		const bool first = s->first;

		status = show_frame(d, err);
		again = !has_failed(status) || (!first && (status == ST_NO_QUORUM || status == ST_DENIED));
		if (again && has_failed(status) && !s->terminal)
			log_warn(&d->inv->log, "%s", err->text);
		if (again && output_flush(err) != ST_OK) {
			status = ST_SYSTEM;
			again = false;
		}
		again = again && screen_wait(s, d->inv->options.watch_ms);
	}
	screen_close(s);
	if (s->ended_by == 0)
		return status;
	err->text[0] = '\0';
	return s->ended_by == SIGINT ? ST_OK : ST_INTERRUPTED;
}

/* -- The commands ----------------------------------------------------------- */

/* --waiters and --max-age take names, and no other form of output. */
static enum status
check_names(const struct invocation *inv, const char *option, struct err *err)
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
		if (is_pattern(inv->operand[i]))
			return err_set(err, ST_USAGE, "%s needs a KEY, not a PATTERN", option);
	}
	return ST_OK;
}

static enum status
check_status(const struct invocation *inv, struct err *err)
{
	const struct options *const o = &inv->options;

	if (o->max_age_given || o->waiters)
		return check_names(inv, o->max_age_given ? "--max-age" : "--waiters", err);
	if (o->prometheus && o->json)
		return err_set(err, ST_USAGE, "--prometheus and --json cannot be used together");
	if (o->prometheus && o->watch)
		return err_set(err, ST_USAGE,
		    "--prometheus and --watch cannot be used together; repeat the command by cron or a timer");
	return ST_OK;
}

/* Look at what the command line names.  The caller has set what to look for, and how it is shown. */
static enum status
look(struct display *d, struct invocation *inv, const char *columns, struct err *err)
{
	const struct options *const o = &inv->options;
	const struct service *const service = inv->service;
	enum status status;

	d->inv = inv;
	d->look.wait = (struct wait){ CLOCK_NEVER, -1 };
	d->one_key = inv->operands == 1 && (d->show != show_state || !is_pattern(inv->operand[0]));
	d->view.json = o->json;
	d->view.coloured = output_coloured();
	d->view.headings = !o->no_headings;
	if (d->look.what == LOOK_HISTORY && !service->keeps_history)
		return err_set(err, ST_USAGE,
		    "%s keeps no history of its locks, which dlock history and --max-age need", service->name);
	if (o->prometheus && service->keeps_history)
		d->look.what |= LOOK_HISTORY;
	if (d->show != show_state && d->one_key)
		columns += strlen(VIEW_KEY);
	status = view_begin(&d->view, columns, o->columns, err);
	if (status == ST_OK)
		status = setup_service(inv, &d->backend, err);
	if (status != ST_OK)
		return status;
	d->record = calloc(LOOK_COUNT_MAX, sizeof(*d->record));
	if (d->record == NULL)
		status = err_set(err, ST_SYSTEM, OUT_OF_MEMORY);
	else
		status = o->watch ? watch(d, err) : show_all(d, err);
	free(d->record);
	d->backend->service->close(d->backend);
	if (status == ST_INTERRUPTED)
		inv->died_of = d->screen.ended_by;
	return output_end_page(status, err);
}

enum status
cmd_status(struct invocation *inv, struct err *err)
{
	struct display d = { .look.what = LOOK_STATE, .show = show_state };
	const enum status status = check_status(inv, err);

	if (status != ST_OK)
		return status;
	if (inv->options.max_age_given)
		d.look.what = LOOK_HISTORY;
	else if (inv->options.waiters)
		d.look.what = LOOK_WAITERS;
	if (d.look.what != LOOK_STATE)
		d.show = inv->options.waiters ? show_waiters : show_age;
	return look(&d, inv, d.show == show_state ? VIEW_LOCKS : VIEW_WAITERS, err);
}

enum status
cmd_history(struct invocation *inv, struct err *err)
{
	struct display d = { .look.what = LOOK_HISTORY, .show = show_formers };

	/* A configuration file may have these for status. */
	inv->options.watch = inv->options.prometheus = false;
	inv->options.columns = NULL;
	return look(&d, inv, VIEW_FORMERS, err);
}
