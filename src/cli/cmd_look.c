/* SPDX-License-Identifier: MIT */
/* The commands that only look at locks: status and history. */
#include <errno.h>
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
#include "cli/output.h"
#include "cli/setup.h"
#include "cli/view.h"
#include "lock/service.h"
#include "run/signals.h"

#define SECOND_SCREEN "\033[?1049h\033[?25l" /* and hide the cursor */
#define FIRST_SCREEN "\033[?25h\033[?1049l"
#define HOME "\033[H"
#define WIPE_LINE "\033[K"
#define WIPE_REST "\033[J"

struct display {
	struct invocation *inv;
	struct backend *backend;
	struct view view;
	struct look_args look;
	size_t most; /* number of locks that fit the terminal; 0: no limit */
	size_t shown;
	size_t hidden; /* locks in lists that this user may not read */

	/* Show one lock.  ST_NO: the answer for it is no. */
	enum status (*show)(struct display *, const char *key, const struct record *);

	struct batch { /* locks that are looked at together */
		struct names keys;
		struct record *record;
	} asked, seen;	   /* those of `seen` are shown while the nodes reply about the next ones */
	bool even_if_free; /* or without a history */

	bool one_key;	    /* a single key was given */
	bool no;	    /* the answer for one of the locks is no */
	enum status failed; /* not ST_OK: stop */
	enum status worst;  /* of the keys that could not be looked at */
	struct err err;	    /* for `failed` or `worst` */

	/* Of --watch. */
	struct signals signals;
	bool terminal; /* on which each frame replaces the one before */
	int ended_by;  /* the signal that ended it; 0: none yet */
};

/* -- The state -------------------------------------------------------------- */

/* Of a single key that was given, its state is the exit status. */
static enum status
show_state(struct display *d, const char *key, const struct record *r)
{
	const bool all = d->look.what == LOOK_LAST, failed = d->inv->options.failed;
	const struct former *const last = record_last(r);
	enum status status = ST_OK;
	int i;

	for (i = 0; i < r->nodes; i++)
		log_debug(&d->inv->log, "%s: %s%s%s", r->node[i].name, record_state(r->node[i].state),
		    r->node[i].state == LOCK_UNKNOWN ? ": " : "", r->node[i].reason.text);
	if ((r->state == LOCK_FREE && r->status == ST_OK && !d->even_if_free && (!all || r->formers == 0)) ||
	    (failed && (last == NULL || former_succeeded(last))))
		return ST_OK;
	d->shown++;
	if (d->inv->options.quiet)
		;
	else if (d->inv->options.prometheus)
		status = view_add_sample(&d->view, key, r, &d->err);
	else
		status = view_lock(&d->view, key, r, &d->err);
	return status == ST_OK && (failed || (!all && d->one_key && r->state == LOCK_FREE)) ? ST_NO : status;
}

/* -- The history, and waiters ----------------------------------------------- */

static enum status
show_rows(struct display *d, const char *key, const struct record *r)
{
	char shown[200];

	if (d->look.what == LOOK_WAITERS)
		return r->waiters == 0 ? ST_NO : view_waiters(&d->view, key, r, &d->err);
	d->shown += r->formers > 0;
	if (r->formers > 0)
		return view_formers(&d->view, key, r, &d->err);
	if (!d->even_if_free)
		return ST_OK;
	if (!d->inv->options.quiet)
		log_warn(&d->inv->log, "%s: no history: no dlock recorded a holder in the last 30 days (see --history)",
		    text_show(key, shown, sizeof(shown)));
	return ST_NO;
}

/* The age of the last success. */
static enum status
show_age(struct display *d, const char *key, const struct record *r)
{
	const int64_t most_ms = d->inv->options.max_age_ms;
	const bool fine = r->success.at_ms > 0 && r->success.age_ms <= most_ms;
	char shown[300], age[32], most[32];
	struct json j;

	if (r->formers == 0 && !d->even_if_free)
		return ST_OK;
	d->shown++;
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
	const bool state = d->show == show_state;
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

/* Show what was seen last, while the nodes reply about other locks. */
static void
show_seen(void *context)
{
	struct display *const d = context;
	size_t i;

	for (i = 0; i < d->seen.keys.count && d->seen.record != NULL; i++) {
		show_record(d, &d->seen.record[i]);
		record_free(&d->seen.record[i]);
	}
	free(d->seen.record);
	names_free(&d->seen.keys);
	d->seen.record = NULL;
}

/* Look at the collected keys together. */
static void
look_at_keys(struct display *d)
{
	struct batch *const b = &d->asked;
	struct err err;
	enum status status;
	size_t i;

	d->look.count = (int)b->keys.count;
	d->look.meanwhile = show_seen;
	d->look.context = d;
	b->record = calloc(b->keys.count, sizeof(*b->record));
	for (i = 0; i < b->keys.count && b->record != NULL; i++)
		b->record[i].key = b->keys.at[i];
	status = b->record != NULL ? d->backend->service->look(d->backend, &d->look, b->record, &err)
				   : err_set(&err, ST_SYSTEM, OUT_OF_MEMORY);
	show_seen(d);
	d->seen = *b;
	*b = (struct batch){ .record = NULL };
	if (status != ST_OK && d->failed == ST_OK) {
		d->failed = status;
		d->err = err;
	}
}

/* Look at what is left, and show everything. */
static void
show_keys(struct display *d)
{
	if (d->asked.keys.count > 0)
		look_at_keys(d);
	show_seen(d);
}

/* Add a key; false if no more are wanted. */
static bool
add_key(struct display *d, const char *full_key)
{
	if (!names_add(&d->asked.keys, full_key))
		d->failed = err_set(&d->err, ST_SYSTEM, OUT_OF_MEMORY);
	else if (d->asked.keys.count == LOOK_COUNT_MAX)
		look_at_keys(d);
	return d->failed == ST_OK && (d->most == 0 || d->shown < d->most);
}

/* -- Operands --------------------------------------------------------------- */

/* Show all locks that match, but this full key, which was shown already.  NULL: all locks held by dlock. */
static void
show_matching(struct display *d, const char *operand, const char *but)
{
	const char *const prefix = d->inv->options.prefix;
	struct names found = { .count = 0 };
	char pattern[3 * KEY_MAX];
	struct text text = text_in(pattern, sizeof(pattern));
	struct look_args what = d->look;
	const char *at;
	bool on;
	size_t i;

	d->even_if_free = false;
	for (at = prefix; *at != '\0'; at++) /* it must match only itself */
		text_addf(&text, strchr("*?[]\\^", *at) != NULL ? "\\%c" : "%c", *at);
	text_addf(&text, "%s", operand != NULL ? operand : "");
	if (d->show != show_state)
		what.what = LOOK_LAST;
	d->failed = d->backend->service->list(d->backend, operand != NULL ? pattern : NULL, &what, &found, &d->err);
	on = d->failed == ST_OK;
	for (i = 0; i < found.count && on; i++) {
		if (strncmp(found.at[i], prefix, strlen(prefix)) == 0 && (but == NULL || strcmp(found.at[i], but) != 0))
			on = add_key(d, found.at[i]);
	}
	names_free(&found);
	show_keys(d);
}

/* Show the slots of a KEY; for --waiters those who wait for any of them. */
static void
show_slots(struct display *d, const char *full_key)
{
	const bool waiters = d->show != show_state;
	const int last = waiters ? 0 : d->inv->options.slots;
	char name[KEY_MAX + 1];
	bool on = true;
	int i;

	d->even_if_free = true;
	for (i = waiters ? 0 : 1; on && i <= last; i++) {
		d->failed = setup_slot_key(d->inv, full_key, i, name, &d->err);
		on = d->failed == ST_OK && add_key(d, name);
	}
}

/* Show a KEY or a PATTERN.  A PATTERN may also be the key of a lock itself, which is shown first. */
static void
show_operand(struct display *d, const char *operand)
{
	const bool pattern = d->look.what != LOOK_WAITERS && setup_is_pattern(operand);
	const bool slots = !pattern && d->inv->options.slots > 0 && d->inv->command->bit == CMD_STATUS &&
	    (d->look.what & (LOOK_STATE | LOOK_WAITERS)) != 0;
	size_t hidden, shown;
	char key[KEY_MAX + 1], quoted[200];

	d->failed = setup_key(d->inv, operand, key, &d->err);
	if (d->failed == ST_OK && slots)
		show_slots(d, key);
	if (d->failed != ST_OK || slots)
		return;
	if (pattern)
		show_keys(d);
	hidden = d->hidden;
	shown = d->shown;
	d->even_if_free = !pattern;
	(void)add_key(d, key);
	if (!pattern || d->failed != ST_OK)
		return;
	show_keys(d);
	d->hidden = hidden;
	if (d->failed == ST_OK)
		show_matching(d, operand, key);
	if (d->failed != ST_OK || d->show == show_state || d->shown > shown)
		return;
	d->no = true;
	if (!d->inv->options.quiet)
		log_warn(&d->inv->log, "%s: no lock with a history matches",
		    text_show(operand, quoted, sizeof(quoted)));
}

/* -- Frames ----------------------------------------------------------------- */

/* Show everything once.  ST_NO: the answer for a lock is no. */
static enum status
show_all(struct display *d, struct err *err)
{
	const struct invocation *const inv = d->inv;
	const struct options *o = &inv->options;
	struct probed *probed = NULL;
	int i;

	d->failed = d->worst = ST_OK;
	d->no = false;
	d->shown = d->hidden = 0;
	if (inv->operands == 0)
		show_matching(d, NULL, NULL);
	for (i = 0; i < inv->operands && d->failed == ST_OK; i++)
		show_operand(d, inv->operand[i]);
	show_keys(d);
	if (o->prometheus && !o->quiet && (probed = calloc(NODES_MAX, sizeof(*probed))) == NULL)
		d->failed = err_set(&d->err, ST_SYSTEM, OUT_OF_MEMORY);
	else if (probed != NULL) /* even on failure: they include the nodes that are down */
		view_metrics(&d->view, probed, d->backend->service->probe(d->backend, probed));
	else if (!o->json && (d->show != show_state || (!o->quiet && (d->failed == ST_OK || d->shown > 0))))
		view_end(&d->view);
	free(probed);
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

/* -- Frames of --watch ------------------------------------------------------ */

static bool
has_failed(enum status status)
{
	return status != ST_OK && status != ST_NO && status != ST_INTERRUPTED;
}

/*
 * On a terminal it begins with the current time and the interval.  Elsewhere an empty line is before each but the
 * first.
 */
static enum status
show_frame(struct display *d, bool first, struct err *err)
{
	const struct extent extent = output_extent(STDOUT_FILENO);
	const char *const line_end = d->view.layout.line_end, *const dim = d->view.coloured ? COLOUR_DIM : "";
	char shown[sizeof(err->text)], now[32] = "", interval[32];
	const time_t seconds = time(NULL);
	enum status status;
	struct tm tm;
	size_t taken;

	if (!d->terminal) {
		fputs(first || d->inv->options.json ? "" : "\n", stdout);
		return show_all(d, err);
	}
	if (localtime_r(&seconds, &tm) != NULL)
		(void)strftime(now, sizeof(now), "%H:%M:%S", &tm);
	duration_show(d->inv->options.watch_ms, interval, sizeof(interval));
	printf(HOME WIPE_LINE "%s%s, every %s%s%s", dim, now, interval, dim[0] != '\0' ? COLOUR_END : "", line_end);
	d->view.layout.width = extent.columns;
	d->most = extent.rows > 4 ? extent.rows - 4 : 1;
	status = show_all(d, err);
	if (d->shown == d->most)
		printf("...%s", line_end);
	if (has_failed(status))
		printf("%.*s%s",
		    (int)text_fitting(text_show(err->text, shown, sizeof(shown)), extent.columns - 1, &taken), shown,
		    line_end);
	fputs(WIPE_REST, stdout);
	return status;
}

/* Wait until the next frame is due, at once after most signals; false if one has ended dlock. */
static bool
wait_for_frame(struct display *d)
{
	const struct wait wait = { clock_add(clock_now_us(), d->inv->options.watch_ms * 1000), d->signals.fd };
	bool due = false;
	int signal;

	while (!due) {
		due = !clock_wait(&wait);
		for (; (signal = signals_next(&d->signals, NULL)) != 0; due = true) {
			if (signal == SIGTSTP) { /* restore the terminal, and redraw when continued */
				fputs(d->terminal ? FIRST_SCREEN : "", stdout);
				(void)fflush(stdout);
				(void)signals_stop(false, CLOCK_NEVER);
				fputs(d->terminal ? SECOND_SCREEN : "", stdout);
			} else if (signal != SIGWINCH && signal != SIGCONT && signal != SIGCHLD)
				d->ended_by = signal;
		}
	}
	return d->ended_by == 0;
}

/*
 * Repeat until a signal arrives: ^C ends it.  A failure of the first frame is final; a later one may pass.  On a
 * terminal frames are on the alternate screen, so that the original one is restored at the end.
 */
static enum status
watch(struct display *d, struct err *err)
{
	bool first, failed;
	enum status status;

	if (!signals_open(&d->signals, &d->inv->given_mask) || !signals_watch_command(&d->signals))
		return err_system(err, errno, "cannot watch for signals");
	d->terminal = !d->inv->options.json && output_extent(STDOUT_FILENO).columns > 0;
	fputs(d->terminal ? SECOND_SCREEN : "", stdout);
	d->look.wait.interrupt_fd = d->signals.fd;
	if (d->terminal)
		d->view.layout.line_end =
		    "\n" WIPE_LINE; /* behind a line as wide as the terminal, its end would be wiped */
	for (first = true;; first = false) {
		status = show_frame(d, first, err);
		failed = has_failed(status);
		if (failed && (first || (status != ST_NO_QUORUM && status != ST_DENIED)))
			break;
		if (failed && !d->terminal)
			log_warn(&d->inv->log, "%s", err->text);
		if (output_flush(err) != ST_OK) {
			status = ST_SYSTEM;
			break;
		}
		if (!wait_for_frame(d))
			break;
	}
	fputs(d->terminal ? FIRST_SCREEN : "", stdout);
	(void)fflush(stdout);
	if (d->ended_by == 0)
		return status;
	err->text[0] = '\0';
	if (d->ended_by == SIGINT)
		return ST_OK;
	d->inv->died_of = d->ended_by;
	return ST_INTERRUPTED;
}

/* -- The commands ----------------------------------------------------------- */

/* Refuse options that contradict each other, and those that lack a KEY or do not accept a PATTERN. */
static enum status
check_status(const struct invocation *inv, struct err *err)
{
	const struct options *const o = &inv->options;
	const bool slots = options_origin(o, "slots") == ORIGIN_LINE, names = o->max_age_given || o->waiters;
	const bool all = o->all || o->failed;
	const char *const option = o->max_age_given ? "--max-age" : o->waiters ? "--waiters" : slots ? "--slots" : NULL;
	int i;

	if (slots && (o->max_age_given || all))
		return err_set(err, ST_USAGE,
		    "%s and --slots cannot be used together; name a slot, as in '{KEY}:slot-1'",
		    o->max_age_given ? "--max-age"
			: o->all     ? "--all"
				     : "--failed");
	if (!names && o->prometheus && o->json)
		return err_set(err, ST_USAGE, "--prometheus and --json cannot be used together");
	if (!names && o->prometheus && o->watch)
		return err_set(err, ST_USAGE,
		    "--prometheus and --watch cannot be used together; repeat the command by cron or a timer");
	if (option == NULL)
		return ST_OK;
	if (names && (o->prometheus || o->watch || o->columns != NULL || all || (o->waiters && o->max_age_given)))
		return err_set(err, ST_USAGE,
		    "%s cannot be used together with --all, --failed, --prometheus, --watch, --output or the other of "
		    "--waiters and --max-age",
		    option);
	if (inv->operands == 0)
		return err_set(err, ST_USAGE, o->max_age_given ? "%s needs a KEY or a PATTERN" : "%s needs a KEY",
		    option);
	for (i = 0; i < inv->operands && !o->max_age_given; i++) {
		if (setup_is_pattern(inv->operand[i]))
			return err_set(err, ST_USAGE, "%s needs a KEY, not a PATTERN", option);
	}
	return ST_OK;
}

/* Look at what the command line names.  The caller has set what to look for, and how it is shown. */
static enum status
look(struct display *d, struct invocation *inv, const char *columns, struct err *err)
{
	const struct options *const o = &inv->options;
	const bool keeps_history = inv->service->keeps_history;
	enum status status;
	int i;

	d->inv = inv;
	d->look.wait = (struct wait){ CLOCK_NEVER, -1 };
	d->one_key = inv->operands == 1 && (d->look.what == LOOK_WAITERS || !setup_is_pattern(inv->operand[0]));
	d->view.json = o->json;
	d->view.coloured = output_coloured();
	d->view.headings = !o->no_headings;
	for (i = 0; i < inv->operands; i++)
		d->view.found |= setup_is_pattern(inv->operand[i]);
	if (!keeps_history && (d->show != show_state || o->failed) && d->look.what != LOOK_WAITERS)
		return err_set(err, ST_USAGE,
		    "%s keeps no history of its locks, which dlock history, --max-age and --failed need",
		    inv->service->name);
	if (!keeps_history && d->look.what == LOOK_LAST) {
		log_warn(&inv->log, "%s keeps no history of its locks: only those that are held are shown",
		    inv->service->name);
		d->look.what = LOOK_STATE;
		columns = VIEW_LOCKS;
	}
	if (o->prometheus && keeps_history && d->look.what == LOOK_STATE)
		d->look.what |= LOOK_HISTORY;
	if (d->show != show_state && d->one_key)
		columns += strlen(VIEW_KEY);
	status = view_begin(&d->view, columns, o->columns, err);
	if (status == ST_OK)
		status = setup_service(inv, &d->backend, err);
	if (status != ST_OK)
		return status;
	status = o->watch ? watch(d, err) : show_all(d, err);
	d->backend->service->close(d->backend);
	return output_end_page(status, err);
}

enum status
cmd_status(struct invocation *inv, struct err *err)
{
	const bool all = inv->options.all || inv->options.failed;
	struct display d = { .look.what = all ? LOOK_LAST : LOOK_STATE, .show = show_state };
	const enum status status = check_status(inv, err);

	if (status != ST_OK)
		return status;
	if (inv->options.waiters)
		d = (struct display){ .look.what = LOOK_WAITERS, .show = show_rows };
	else if (inv->options.max_age_given)
		d = (struct display){ .look.what = LOOK_LAST, .show = show_age };
	return look(&d, inv, d.show != show_state ? VIEW_WAITERS : all ? VIEW_ALL : VIEW_LOCKS, err);
}

enum status
cmd_history(struct invocation *inv, struct err *err)
{
	struct display d = { .look.what = LOOK_HISTORY, .show = show_rows };

	/* A configuration file may have these for status. */
	inv->options.watch = inv->options.prometheus = false;
	inv->options.columns = NULL;
	return look(&d, inv, VIEW_FORMERS, err);
}
