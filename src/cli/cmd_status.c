/* SPDX-License-Identifier: MIT */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/duration.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/metrics.h"
#include "cli/output.h"
#include "cli/screen.h"
#include "cli/setup.h"
#include "cli/table.h"
#include "cli/view.h"
#include "lock/service.h"

struct display {
	const struct invocation *inv;
	struct backend *backend;
	struct table table;
	struct metrics metrics;
	struct screen screen;
	struct wait wait;
	size_t most; /* number of locks that fit the terminal; 0: no limit */
	size_t shown;
	size_t hidden; /* locks in lists that this user may not read */

	/* Locks that are inspected together. */
	char *key[STATUS_MAX];
	int keys;
	bool even_if_free;
	const char *but; /* a full key that was shown already; NULL: none */

	bool one_key; /* a single key was given: its state is the exit status */
	enum lock_state last;
	enum status failed; /* not ST_OK: stop */
	enum status worst;  /* of the keys that could not be inspected */
	struct err err;	    /* for `failed` or `worst` */
};

static bool
is_pattern(const char *operand)
{
	return strpbrk(operand, "*?[") != NULL;
}

static void
say_nodes(const struct invocation *inv, const struct lock_status *v)
{
	int i;

	for (i = 0; i < v->nodes; i++)
		log_debug(&inv->log, "%s: %s%s%s", v->node[i].name, output_state(v->node[i].state),
		    v->node[i].state == LOCK_UNKNOWN ? ": " : "", v->node[i].reason.text);
}

/* -- Locks ------------------------------------------------------------------ */

/* Show one lock.  Called by a survey, in order of the keys. */
static void
show(void *context, const char *full_key, const struct lock_status *view, enum status status, const struct err *err)
{
	struct display *d = context;
	const char *key = full_key + strlen(d->inv->options.prefix);

	if (d->failed != ST_OK || (d->most > 0 && d->shown == d->most))
		return;
	if (status == ST_DENIED && view->hidden && !d->even_if_free) {
		d->hidden++; /* a lock of others, which share the server */
		return;
	}
	if (status != ST_OK) {
		d->err = *err;
		setup_blame_denied(key, status, &d->err);
	}
	if (status != ST_OK && (view->answered == 0 || d->one_key)) {
		d->failed = status;
		return;
	}
	if (status != ST_OK) /* this key has an error; the others may not */
		d->worst = status;
	say_nodes(d->inv, view);
	d->last = view->state;
	if (view->state == LOCK_FREE && !d->even_if_free)
		return;
	d->shown++;
	if (d->inv->options.quiet)
		return;
	if (d->inv->options.prometheus)
		d->failed = metrics_add(&d->metrics, key, view, &d->err);
	else if (!d->inv->options.json)
		d->failed = table_add(&d->table, key, view, &d->err);
	else
		view_print_json(key, view);
}

/* Inspect the collected keys together, and show them. */
static void
show_keys(struct display *d)
{
	const struct status_args args = { (const char *const *)(void *)d->key, d->keys, d->wait, show, d, NULL };
	enum status status = ST_OK;
	int i;

	if (d->keys > 0 && d->failed == ST_OK)
		status = d->backend->service->status(d->backend, &args, &d->err);
	if (status != ST_OK)
		d->failed = status;
	for (i = 0; i < d->keys; i++)
		free(d->key[i]);
	d->keys = 0;
}

/* Add a key; false if no more are wanted. */
static bool
add_key(struct display *d, const char *full_key)
{
	d->key[d->keys] = strdup(full_key);
	if (d->key[d->keys] == NULL)
		d->failed = err_set(&d->err, ST_SYSTEM, "out of memory");
	else if (++d->keys == STATUS_MAX)
		show_keys(d);
	return d->failed == ST_OK && (d->most == 0 || d->shown < d->most);
}

/* -- Operands --------------------------------------------------------------- */

static bool
note_found(void *context, const char *full_key)
{
	struct display *d = context;
	const char *prefix = d->inv->options.prefix;

	if (strncmp(full_key, prefix, strlen(prefix)) != 0 || (d->but != NULL && strcmp(full_key, d->but) == 0))
		return true;
	return add_key(d, full_key);
}

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

/* Show all locks that match; NULL: all locks held by dlock. */
static void
show_matching(struct display *d, const char *operand)
{
	char pattern[3 * KEY_MAX];
	const struct list_args list = { operand != NULL ? pattern : NULL, d->wait, note_found, d };
	enum status status;

	d->even_if_free = false;
	if (operand != NULL)
		write_pattern(d->inv, operand, pattern, sizeof(pattern));
	status = d->backend->service->list(d->backend, &list, &d->err);
	if (status != ST_OK)
		d->failed = status;
	show_keys(d);
}

/* Show a KEY or a PATTERN.  A PATTERN may also be the key of a lock itself, which is shown first. */
static void
show_operand(struct display *d, const char *operand)
{
	const bool pattern = is_pattern(operand);
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
	d->but = key;
	if (d->failed == ST_OK)
		show_matching(d, operand);
	d->but = NULL;
}

static void
show_operands(struct display *d)
{
	const struct invocation *inv = d->inv;
	int i;

	if (inv->operands == 0)
		show_matching(d, NULL);
	for (i = 0; i < inv->operands && d->failed == ST_OK; i++)
		show_operand(d, inv->operand[i]);
	show_keys(d);
}

/* -- Frames ----------------------------------------------------------------- */

/* Metrics of the last runs, of the locks whose history can be read. */
static void
add_histories(struct display *d)
{
	struct history history;
	char key[KEY_MAX + 1];
	struct err ignored;
	size_t i;

	for (i = 0; i < metrics_keys(&d->metrics) && d->inv->service->keeps_history; i++) {
		if (setup_key(d->inv, metrics_key(&d->metrics, i), key, &ignored) == ST_OK &&
		    d->backend->service->history(d->backend, key, &d->wait, &history, &ignored) == ST_OK) {
			metrics_add_history(&d->metrics, i, &history);
			history_free(&history);
		}
	}
}

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
	add_histories(d);
	metrics_print(&d->metrics, probed, nodes);
	free(probed);
}

/* Show everything once.  ST_NO: the single key that was given is free. */
static enum status
show_all(struct display *d, struct err *err)
{
	const struct options *o = &d->inv->options;

	d->failed = d->worst = ST_OK;
	d->shown = d->hidden = 0;
	show_operands(d);
	if (o->prometheus && !o->quiet)
		print_metrics(d); /* even on failure: they include the nodes that are down */
	else if (!o->json && !o->quiet && (d->failed == ST_OK || d->shown > 0))
		layout_end(&d->table.layout);
	layout_free(&d->table.layout);
	if (d->failed != ST_OK || d->worst != ST_OK)
		*err = d->err;
	if (d->hidden > 0 && !o->quiet && !o->watch && !o->json && !o->prometheus)
		log_warn(&d->inv->log, "%zu %s not shown: this user may not read %s keys", d->hidden,
		    d->hidden == 1 ? "lock is" : "locks are", d->hidden == 1 ? "its" : "their");
	if (d->failed != ST_OK)
		return d->failed;
	if (d->worst != ST_OK)
		return d->worst;
	return d->one_key && d->last == LOCK_FREE ? ST_NO : ST_OK;
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
	printf("%s%s, every %s%s%s", d->table.coloured ? COLOUR_DIM : "", now, interval,
	    d->table.coloured ? COLOUR_END : "", screen_line_end(&d->screen));
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
		d->table.layout.width = s->extent.columns;
		d->most = s->extent.rows > 4 ? s->extent.rows - 4 : 1;
	}
	status = show_all(d, err);
	if (s->terminal && d->most > 0 && d->shown == d->most)
		printf("...%s", screen_line_end(s));
	if (s->terminal && status != ST_OK && status != ST_NO && status != ST_INTERRUPTED) {
		bytes = text_fitting(text_show(err->text, shown, sizeof(shown)), s->extent.columns - 1, &taken);
		printf("%.*s%s", (int)bytes, shown, screen_line_end(s));
	}
	screen_end(s);
	return status;
}

/* May the next frame succeed after this status? */
static bool
may_pass(enum status status)
{
	return status == ST_OK || status == ST_NO || status == ST_NO_QUORUM || status == ST_DENIED ||
	    status == ST_INTERRUPTED;
}

/* Repeat until a signal arrives.  A failure of the first frame is final; a later one may pass. */
static enum status
watch(struct display *d, struct err *err)
{
	struct screen *s = &d->screen;
	enum status status = screen_open(s, &d->inv->given_mask, !d->inv->options.json, err);
	bool again = status == ST_OK;

	d->wait.interrupt_fd = s->signals.fd;
	d->table.layout.line_end = screen_line_end(s);
	while (again) {
		const bool first = s->first;

		status = show_frame(d, err);
		if (first && status != ST_OK && status != ST_NO && status != ST_INTERRUPTED)
			break;
		if (!s->terminal && may_pass(status) && status != ST_OK && status != ST_NO && status != ST_INTERRUPTED)
			log_warn(&d->inv->log, "%s", err->text);
		if (may_pass(status) && output_flush(err) != ST_OK)
			status = ST_SYSTEM;
		again = may_pass(status) && screen_wait(s, d->inv->options.watch_ms);
	}
	screen_close(s);
	if (s->ended_by == 0)
		return status;
	err->text[0] = '\0';
	return s->ended_by == SIGINT ? ST_OK : ST_INTERRUPTED;
}

/* -- The command ------------------------------------------------------------ */

static enum status
prepare(struct display *d, struct err *err)
{
	const struct options *o = &d->inv->options;

	if (o->prometheus && o->json)
		return err_set(err, ST_USAGE, "--prometheus and --json cannot be used together");
	if (o->prometheus && o->watch)
		return err_set(err, ST_USAGE,
		    "--prometheus and --watch cannot be used together; repeat the command by cron or a timer");
	d->table.layout.headings = !o->no_headings;
	d->table.coloured = output_coloured();
	d->table.layout.width = output_extent(STDOUT_FILENO).columns;
	d->table.layout.line_end = "\n";
	d->table.layout.out = stdout;
	return table_choose(&d->table, o->columns, err);
}

int
cmd_status(struct invocation *inv, struct err *err)
{
	struct display display = { .inv = inv,
		.wait = { CLOCK_NEVER, -1 },
		.one_key = inv->operands == 1 && !is_pattern(inv->operand[0]) };
	enum status status;

	if (inv->options.max_age_given || inv->options.waiters)
		return cmd_status_history(inv, err);
	status = prepare(&display, err);
	if (status == ST_OK)
		status = setup_service(inv, &display.backend, err);
	if (status != ST_OK)
		return (int)status;
	status = inv->options.watch ? watch(&display, err) : show_all(&display, err);
	display.backend->service->close(display.backend);
	if (status == ST_INTERRUPTED)
		inv->died_of = display.screen.ended_by;
	return (int)output_end_page(status, err);
}
