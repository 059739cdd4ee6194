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

/* -- Fields ----------------------------------------------------------------- */

enum field_name {
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
	TOKEN,
	LAST, /* from here on only of VIEW_ALL */
	LAST_OUTCOME,
	TOOK,
	SUCCESS,
	OF_LOCKS, /* the others are those of the other tables; of the same name, these have the later one */
	START = OF_LOCKS,
	END,
	WAITED,
	OUTCOME,
	PLACE,
	SINCE,
	WAITING_SO_FAR,
	KEY_OF_ROWS
};

/* Each is a column of the table, and a member of the object in JSON; NULL: it is not there. */
static const struct field {
	struct layout_column column;
	const char *member;
	enum {
		PLAIN, /* a text, or a number */
		LENGTH,
		TIME /* on this host; the number is milliseconds since 1970 */
	} kind;
} fields[VIEW_FIELDS] = {
	[KEY] = { { "KEY", LAYOUT_TEXT, 0 }, "key", PLAIN },
	[STATE] = { { "STATE", LAYOUT_WHOLE, 0 }, "state", PLAIN },
	[TTL] = { { "TTL", LAYOUT_WHOLE, 0 }, "ttl_ms", LENGTH },
	[OWNER] = { { "OWNER", LAYOUT_OWNER, 0 }, "owner", PLAIN },
	[LABEL] = { { "LABEL", LAYOUT_TEXT, 0 }, "label", PLAIN },
	[HELD] = { { "HELD", LAYOUT_WHOLE, 0 }, "held_ms", LENGTH },
	[FENCE] = { { "FENCE", LAYOUT_WHOLE, 1 }, "fence", PLAIN },
	[WAITING] = { { "WAITING", LAYOUT_WHOLE, 3 }, "waiting", PLAIN },
	[NODES] = { { "NODES", LAYOUT_WHOLE, 4 }, NULL, PLAIN }, /* rank 2: of a single node it says nothing */
	[USER] = { { "USER", LAYOUT_TEXT, 0 }, NULL, PLAIN },
	[HOST] = { { "HOST", LAYOUT_TEXT, 0 }, NULL, PLAIN },
	[PID] = { { "PID", LAYOUT_WHOLE, 0 }, NULL, PLAIN },
	[CLIENT] = { { "CLIENT", LAYOUT_TEXT, 0 }, "client", PLAIN },
	[TOKEN] = { { "TOKEN", LAYOUT_WHOLE, 0 }, "token_hint", PLAIN },
	[LAST] = { { "LAST", LAYOUT_WHOLE, 0 }, NULL, LENGTH },
	[LAST_OUTCOME] = { { "OUTCOME", LAYOUT_TEXT, 0 }, NULL, PLAIN },
	[TOOK] = { { "TOOK", LAYOUT_WHOLE, 0 }, NULL, LENGTH },
	[SUCCESS] = { { "SUCCESS", LAYOUT_WHOLE, 0 }, "last_success_age_ms", LENGTH },
	[START] = { { "START", LAYOUT_WHOLE, 0 }, "start_ms", TIME },
	[END] = { { "END", LAYOUT_WHOLE, 2 }, "end_ms", TIME },
	[WAITED] = { { "WAITED", LAYOUT_WHOLE, 3 }, "waited_ms", LENGTH },
	[OUTCOME] = { { "OUTCOME", LAYOUT_TEXT, 0 }, "outcome", PLAIN },
	[PLACE] = { { "PLACE", LAYOUT_WHOLE, 0 }, "place", PLAIN },
	[SINCE] = { { "SINCE", LAYOUT_WHOLE, 1 }, "since_ms", TIME },
	[WAITING_SO_FAR] = { { "WAITING", LAYOUT_WHOLE, 0 }, NULL, LENGTH },
	[KEY_OF_ROWS] = { { "KEY", LAYOUT_WHOLE, 0 }, "key", PLAIN },
};

static enum status
unknown_column(const char *name, size_t length, int columns, struct err *err)
{
	struct text text = text_in(err->text, sizeof(err->text));
	int i;

	text_addf(&text, "--output: unknown column '");
	text_add_shown(&text, name, length);
	for (i = 0; i < columns; i++)
		text_addf(&text, "%s %s", i > 0 ? "," : "'; the columns are", fields[i].column.name);
	return ST_USAGE;
}

enum status
view_begin(struct view *v, const char *names, const char *chosen, struct err *err)
{
	struct layout *const l = &v->layout;
	const char *at = chosen != NULL ? chosen : names;
	size_t length;
	int i, columns;

	l->columns = 0;
	l->width = output_extent(STDOUT_FILENO).columns;
	l->line_end = "\n";
	l->out = stdout;
	v->all = strcmp(names, VIEW_ALL) == 0;
	v->locks = v->all || strcmp(names, VIEW_LOCKS) == 0;
	columns = v->all ? OF_LOCKS : v->locks ? LAST : VIEW_FIELDS;
	v->chosen = chosen != NULL;
	for (; at != NULL; at = at[length] == ',' ? at + length + 1 : NULL) {
		length = strcspn(at, ",");
		i = columns - 1;
		while (i >= 0 &&
		    (strncasecmp(fields[i].column.name, at, length) != 0 || fields[i].column.name[length] != '\0'))
			i--;
		if (i < 0)
			return unknown_column(at, length, columns, err);
		if (l->columns == LAYOUT_COLUMNS_MAX)
			return err_set(err, ST_USAGE, "--output: more than %d columns", LAYOUT_COLUMNS_MAX);
		l->column[l->columns] = fields[i].column;
		if (i == KEY_OF_ROWS && v->found)
			l->column[l->columns].kind = LAYOUT_TEXT;
		if (v->chosen)
			l->column[l->columns].rank = 0;
		v->shown[l->columns++] = i;
	}
	return ST_OK;
}

/* Where fields are written to: into an object, or into the cells of a row. */
struct out {
	struct json *json; /* NULL: a row of the table */
	struct view *view;
};

static void
put_text(const struct out *o, enum field_name name, const char *value)
{
	const char *const member = fields[name].member;

	if (o->json == NULL)
		text_add_shown(&o->view->cell[name], value, strlen(value));
	else if (member != NULL)
		json_string_or_null(o->json, member, value);
}

static void
put_number(const struct out *o, enum field_name name, int64_t n, bool known)
{
	const struct field *const f = &fields[name];
	const time_t seconds = (time_t)(n / 1000);
	char shown[32];
	struct tm tm;

	if (o->json != NULL && f->member != NULL)
		json_number_or_null(o->json, f->member, n, known);
	if (o->json != NULL || !known)
		return;
	if (f->kind == PLAIN)
		text_addf(&o->view->cell[name], "%" PRId64, n);
	else if (f->kind == LENGTH) {
		duration_show(n < 0 ? DURATION_FOREVER : n, shown, sizeof(shown));
		text_addf(&o->view->cell[name], "%s", shown);
	} else if (localtime_r(&seconds, &tm) != NULL)
		text_add(&o->view->cell[name], shown, strftime(shown, sizeof(shown), "%Y-%m-%d %H:%M:%S", &tm));
}

/* An owner; `instead` is what the table has of one that is unknown. */
static void
put_owner(const struct out *o, const char *owner, const char *instead)
{
	if (o->json != NULL)
		view_json_owner(o->json, fields[OWNER].member, owner);
	else if (owner[0] == '\0' && instead[0] != '\0')
		text_addf(&o->view->cell[OWNER], "(%s)", instead);
	else
		text_add_shown(&o->view->cell[OWNER], owner, holder_owner_length(owner));
}

/* Begin a row, and print it. */
static struct out
begin(struct view *v, const char *key)
{
	struct out o = { v->json ? &v->object : NULL, v };
	int i;

	if (v->json)
		v->object = json_begin_line(stdout);
	for (i = 0; i < VIEW_FIELDS && !v->json; i++)
		v->cell[i] = text_in(v->text[i], LAYOUT_CELL_MAX);
	put_text(&o, v->locks ? KEY : KEY_OF_ROWS, key);
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
end(struct view *v, struct err *err)
{
	const char *const colour = !v->coloured			     ? ""
	    : v->state == LOCK_HELD || v->state == LOCK_SHARED	     ? COLOUR_GOOD
	    : v->state == LOCK_FREE				     ? COLOUR_DIM
	    : v->state == LOCK_CONTENDED || v->state == LOCK_UNKNOWN ? COLOUR_BAD
								     : COLOUR_WARN;
	enum status status = ST_OK;
	int i;

	if (v->json) {
		json_end_line(&v->object);
		return ST_OK;
	}
	if (v->layout.cells == 0)
		status = add_headings(v, err);
	for (i = 0; i < v->layout.columns && status == ST_OK; i++)
		status = layout_add(&v->layout, v->text[v->shown[i]], v->shown[i] == STATE ? colour : "", err);
	return status;
}

/* -- Outcomes --------------------------------------------------------------- */

/* In a table the outcome is "exit 3", "SIGKILL", "lost", "broken by root@host:17", "asked to end by ..." */
static void
put_outcome(const struct out *o, enum field_name name, const struct former *f)
{
	const bool asked = strcmp(f->outcome, "asked") == 0;
	char signal[SIGNAL_NAME_SIZE];

	if (o->json != NULL || strcmp(f->outcome, "ran") != 0)
		put_text(o, name, f->outcome);
	else if (f->command.status < 0)
		put_text(o, name, signals_name(-f->command.status, signal));
	else
		text_addf(&o->view->cell[name], "exit %d", f->command.status);
	if (o->json != NULL) {
		view_json_child(o->json, &f->command);
		json_string_or_null(o->json, "broken_by", asked ? "" : f->by);
		json_string_or_null(o->json, "asked_by", asked ? f->by : "");
	} else if (f->by[0] != '\0') {
		text_addf(&o->view->cell[name], asked ? " to end by " : " by ");
		put_text(o, name, f->by);
	}
}

static void
put_former(const struct out *o, const struct former *f)
{
	put_number(o, START, f->start_ms, f->start_ms > 0);
	put_number(o, END, f->end_ms, f->end_ms > 0);
	put_number(o, HELD, f->held_ms, f->held_ms >= 0);
	put_number(o, WAITED, f->waited_ms, true);
	put_owner(o, f->owner, "");
	put_text(o, LABEL, f->label);
	put_number(o, FENCE, f->fence, true);
	put_outcome(o, OUTCOME, f);
}

/* The last outcome of a lock, and the time of its last success. */
static void
put_last(const struct out *o, const struct record *r)
{
	const struct former *const f = record_last(r);

	if (f != NULL && o->json == NULL) {
		put_number(o, LAST, f->ended_ago_ms, f->ended_ago_ms >= 0);
		put_outcome(o, LAST_OUTCOME, f);
		put_number(o, TOOK, f->held_ms, f->held_ms >= 0);
	} else if (f != NULL) {
		json_open(o->json, "last", '{');
		put_former(o, f);
		json_number_or_null(o->json, "ended_ago_ms", f->ended_ago_ms, f->ended_ago_ms >= 0);
		json_close(o->json, '}');
	} else if (o->json != NULL)
		json_null(o->json, "last");
	if (o->json != NULL)
		json_number_or_null(o->json, "last_success_ms", r->success.at_ms, r->success.at_ms > 0);
	put_number(o, SUCCESS, r->success.age_ms, r->success.at_ms > 0);
}

/* -- Locks ------------------------------------------------------------------ */

static bool
is_dlock(const struct holder *h)
{
	return h->state != LOCK_FREE && h->state != LOCK_OTHER_CLIENT;
}

/* The number of holders of the lock, as far as known. */
static int64_t
holders(const struct holder *h)
{
	return h->state == LOCK_SHARED && h->holds > 1 ? h->holds : h->state != LOCK_FREE;
}

/* The holder.  The owner of a foreign lock is unknown: its column has the likely client instead. */
static void
put_who(const struct out *o, const struct holder *h)
{
	const char *const client = holder_client(h);

	put_owner(o, h->owner, h->state == LOCK_OTHER_CLIENT ? client : "");
	if (o->json != NULL)
		put_text(o, CLIENT, client);
	else
		text_addf(&o->view->cell[CLIENT], "%s", client); /* escaped already */
	put_text(o, LABEL, h->label);
	put_number(o, HELD, h->held_ms, is_dlock(h));
}

static void
put_holder(const struct out *o, const struct holder *h)
{
	put_number(o, TTL, h->left_ms, o->json != NULL || h->state != LOCK_FREE);
	put_who(o, h);
	if (o->json != NULL) {
		json_number_or_null(o->json, "ended_ms", h->ended_ms, h->state == LOCK_KEPT);
		json_string_or_null(o->json, "kept_by", h->state == LOCK_KEPT ? h->kept_by : NULL);
	}
	put_number(o, FENCE, h->fence, h->fence > 0);
}

/* Split an owner, "user@host:pid", in place; missing parts are "". */
static void
split_owner(char *owner, const char **host, const char **pid)
{
	char *colon = strrchr(owner, ':'), *at;

	*pid = *host = "";
	if (colon != NULL) {
		*colon = '\0';
		*pid = colon + 1;
		colon[1 + strcspn(colon + 1, "/")] = '\0';
	}
	at = strrchr(owner, '@');
	if (at != NULL) {
		*at = '\0';
		*host = at + 1;
	}
}

/* The fields of a lock that only the table has, or words in its own way. */
static void
put_more(const struct out *o, const struct record *r, const struct holder *h)
{
	struct text *const cell = o->view->cell;
	const char *host, *pid, *gap = h->label[0] != '\0' ? " " : "";
	char owner[OWNER_MAX + 1];

	memcpy(owner, h->owner, sizeof(owner));
	split_owner(owner, &host, &pid);
	put_text(o, USER, owner);
	put_text(o, HOST, host);
	put_text(o, PID, pid);
	text_addf(&cell[NODES], "%d/%d", r->agreeing, r->nodes);
	if (holders(h) > 1)
		text_addf(&cell[OWNER], " +%" PRId64, holders(h) - 1);
	else if (is_dlock(h) && h->holds > 1)
		text_addf(&cell[HELD], " (%" PRId64 " holds)", h->holds);
	if (!o->view->chosen && holder_from_acquire(h))
		text_addf(&cell[LABEL], "%s(acquire)", gap);
	if (!o->view->chosen && holder_has_keeper(h)) {
		text_addf(&cell[LABEL], "%s(keeper of PID ", gap);
		put_text(o, LABEL, pid);
		text_addf(&cell[LABEL], ")");
	}
}

enum status
view_lock(struct view *v, const char *key, const struct record *r, struct err *err)
{
	const struct holder *const h = record_holder(r);
	const struct out o = begin(v, key);
	char hint[TOKEN_HINT_SIZE];
	int i;

	v->state = r->state;
	for (i = 0; i < v->layout.columns && !v->chosen; i++) {
		if (r->nodes == 1 && v->shown[i] == NODES)
			v->layout.column[i].rank = 2;
	}
	put_text(&o, STATE, record_state(r->state));
	put_holder(&o, h);
	put_number(&o, WAITING, h->waiting, v->json || h->waiting > 0);
	if (v->json) {
		json_number(o.json, "holds", is_dlock(h) ? h->holds : 0);
		json_number(o.json, "holders", holders(h));
	} else
		put_more(&o, r, h);
	(void)snprintf(hint, sizeof(hint), "%.4s", h->token);
	put_text(&o, TOKEN, hint);
	if (v->all)
		put_last(&o, r);
	if (!v->json)
		return end(v, err);
	json_open(o.json, "nodes", '[');
	for (i = 0; i < r->nodes; i++) {
		json_open(o.json, NULL, '{');
		json_string(o.json, "node", r->node[i].name);
		json_string(o.json, "state", record_state(r->node[i].state));
		json_number(o.json, "ttl_ms", r->node[i].left_ms);
		json_string_or_null(o.json, "error", r->node[i].state == LOCK_UNKNOWN ? r->node[i].reason.text : NULL);
		json_close(o.json, '}');
	}
	json_close(o.json, ']');
	return end(v, err);
}

/* -- Earlier holders, and waiters ------------------------------------------- */

enum status
view_formers(struct view *v, const char *key, const struct record *r, struct err *err)
{
	enum status status = ST_OK;
	struct out o;
	size_t i;

	for (i = 0; i < r->formers && status == ST_OK; i++) {
		o = begin(v, key);
		put_former(&o, &r->former[i]);
		status = end(v, err);
	}
	return status;
}

enum status
view_waiters(struct view *v, const char *key, const struct record *r, struct err *err)
{
	const int64_t now_ms = clock_wall_us() / 1000;
	enum status status = ST_OK;
	const struct waiter *w;
	struct out o;
	size_t i;

	for (i = 0; i < r->waiters && status == ST_OK; i++) {
		w = &r->waiter[i];
		o = begin(v, key);
		put_number(&o, PLACE, (int64_t)i + 1, true);
		put_number(&o, SINCE, w->since_ms, w->since_ms > 0);
		put_number(&o, WAITING_SO_FAR, now_ms > w->since_ms ? now_ms - w->since_ms : 0, w->since_ms > 0);
		put_owner(&o, w->owner, "");
		put_text(&o, LABEL, w->label);
		status = end(v, err);
	}
	return status;
}

void
view_end(struct view *v)
{
	struct err ignored;

	if (v->locks && v->layout.cells == 0)
		(void)add_headings(v, &ignored);
	layout_end(&v->layout);
}

/* -- Metrics ---------------------------------------------------------------- */

#define ABSENT (-2) /* the lock has no sample */

enum {
	IS_HELD,
	IS_SHARED,
	HOLDERS,
	REMAINING,
	WAITERS,
	AGE,
	LAST_SUCCESS,
	LAST_RUN,
	LAST_STATUS,
	LAST_HELD,
	LAST_WAITED,
	LAST_END,
	LAST_FAILED,
	METRICS
};

static const struct metric {
	const char *name, *help;
	enum {
		NUMBER,
		MILLISECONDS, /* printed as seconds; negative: without end */
		MOMENT	      /* the same, since 1970 */
	} kind;
} metrics[METRICS] = {
	[IS_HELD] = { "dlock_held", "Whether the lock is held.", NUMBER },
	[IS_SHARED] = { "dlock_shared", "Whether readers share the lock.", NUMBER },
	[HOLDERS] = { "dlock_holders", "How many hold the lock: more than one if it is shared.", NUMBER },
	[REMAINING] = { "dlock_remaining_seconds", "Guaranteed remaining time of the lease.", MILLISECONDS },
	[WAITERS] = { "dlock_waiters", "Number of known waiters.", NUMBER },
	[AGE] = { "dlock_age_seconds", "How long the lock has been held, if the holder is dlock.", MILLISECONDS },
	[LAST_SUCCESS] = { "dlock_last_success_timestamp_seconds", "When a command last ended with exit status 0.",
	    MOMENT },
	[LAST_RUN] = { "dlock_last_run_timestamp_seconds", "When a command last ended.", MOMENT },
	[LAST_STATUS] = { "dlock_last_run_exit_status", "The exit status of its dlock run.", NUMBER },
	[LAST_HELD] = { "dlock_last_held_seconds", "How long the last holder that ended held the lock.", MILLISECONDS },
	[LAST_WAITED] = { "dlock_last_waited_seconds", "How long that holder waited for it.", MILLISECONDS },
	[LAST_END] = { "dlock_last_end_timestamp_seconds", "When a holder last ended, in whatever way.", MOMENT },
	[LAST_FAILED] = { "dlock_last_failed", "Whether it did not end as it should (see --failed).", NUMBER },
};

/*
 * The sample of a lock is its key, and behind it its values.  There may be very many locks, so each value is packed: 0
 * if it is absent, else one more than twice its distance (to 0, for a moment to the one before), the lowest bit being
 * the sign; in groups of seven bits, the last of them with the eighth.
 */
enum {
	VALUE_SIZE = 10,
	LAST_GROUP = 0x80
};

static char *
put_value(char *to, int64_t value, int64_t from)
{
	const int64_t distance = value - from;
	uint64_t left = value == ABSENT ? 0 : 2 * (uint64_t)(distance < 0 ? -distance : distance) + (distance < 0) + 1;

	for (; left >= LAST_GROUP; left >>= 7)
		*to++ = (char)(left & 0x7f);
	*to++ = (char)(left | LAST_GROUP);
	return to;
}

static const char *
take_value(const char *at, int64_t *value, int64_t from)
{
	uint64_t sum = 0;
	int shift;

	for (shift = 0; ((unsigned char)*at & LAST_GROUP) == 0; shift += 7)
		sum |= (uint64_t)*at++ << shift;
	sum |= (uint64_t)(*at++ & 0x7f) << shift;
	*value = sum == 0 ? ABSENT : (--sum & 1) != 0 ? from - (int64_t)(sum / 2) : from + (int64_t)(sum / 2);
	return at;
}

/* Where values count from that follow this one. */
static int64_t
moment(int metric, int64_t value, int64_t before)
{
	return metrics[metric].kind == MOMENT && value != ABSENT ? value : before;
}

enum status
view_add_sample(struct view *v, const char *key, const struct record *r, struct err *err)
{
	char sample[KEY_MAX + 1 + METRICS * VALUE_SIZE], *at = stpcpy(sample, key) + 1;
	const struct holder *const h = record_holder(r);
	const struct former *const last = record_last(r), *f = last;
	int64_t value[METRICS], before = 0;
	int i;

	for (i = 0; i < METRICS; i++)
		value[i] = ABSENT;
	value[IS_HELD] = h->state != LOCK_FREE;
	value[IS_SHARED] = h->state == LOCK_SHARED;
	value[HOLDERS] = holders(h);
	value[REMAINING] = h->left_ms;
	value[WAITERS] = h->waiting;
	if (is_dlock(h))
		value[AGE] = h->held_ms;
	if (r->success.at_ms > 0)
		value[LAST_SUCCESS] = r->success.at_ms;
	if (r->run.at_ms > 0 && r->run_end.is) {
		value[LAST_RUN] = r->run.at_ms;
		value[LAST_STATUS] = r->run_end.status < 0 ? 128 - r->run_end.status : r->run_end.status;
	}
	while (f != NULL && f < r->former + r->formers && f->held_ms < 0)
		f++;
	if (f != NULL && f < r->former + r->formers) {
		value[LAST_HELD] = f->held_ms;
		value[LAST_WAITED] = f->waited_ms;
	}
	if (last != NULL)
		value[LAST_FAILED] = !former_succeeded(last);
	if (last != NULL && last->end_ms > 0)
		value[LAST_END] = last->end_ms;
	for (i = 0; i < METRICS; i++) {
		at = put_value(at, value[i], metrics[i].kind == MOMENT ? before : 0);
		before = moment(i, value[i], before);
	}
	return names_add_more(&v->samples, sample, (size_t)(at - sample)) ? ST_OK
									  : err_set(err, ST_SYSTEM, OUT_OF_MEMORY);
}

static void
begin_metric(const char *name, const char *help)
{
	printf("# HELP %s %s\n# TYPE %s gauge\n", name, help, name);
}

/* NAME{LABEL="VALUE"}.  The value is escaped as in messages, which keeps values distinct, and then for the format. */
static void
put_series(const char *name, const char *label, const char *value)
{
	char shown[4 * KEY_MAX + 1];
	const char *at = text_show(value, shown, sizeof(shown));
	size_t length;

	printf("%s{%s=\"", name, label);
	for (; *at != '\0'; at += length) {
		length = strcspn(at + 1, "\"\\") + 1;
		if (*at == '"' || *at == '\\')
			putchar('\\');
		(void)fwrite(at, 1, length, stdout);
	}
	fputs("\"} ", stdout);
}

void
view_metrics(struct view *v, const struct probed *probed, int nodes)
{
	const struct metric *m;
	const char *key, *at;
	int64_t value = 0, before;
	size_t k;
	int i;

	names_sort(&v->samples); /* doubles would be rejected */
	for (m = metrics; m < metrics + METRICS; m++) {
		begin_metric(m->name, m->help);
		for (k = 0; k < v->samples.count; k++) {
			key = v->samples.at[k];
			at = key + strlen(key) + 1;
			for (i = 0, before = 0; i <= m - metrics; i++) {
				at = take_value(at, &value, metrics[i].kind == MOMENT ? before : 0);
				before = moment(i, value, before);
			}
			if (value == ABSENT)
				continue;
			put_series(m->name, "key", key);
			if (value < 0)
				puts("+Inf");
			else if (m->kind != NUMBER)
				printf("%" PRId64 ".%03" PRId64 "\n", value / 1000, value % 1000);
			else
				printf("%" PRId64 "\n", value);
		}
	}
	begin_metric("dlock_node_up", "Whether the node answers.");
	for (i = 0; i < nodes; i++) {
		put_series("dlock_node_up", "node", probed[i].name);
		puts(probed[i].up ? "1" : "0");
	}
	names_free(&v->samples);
}

/* -- Parts of the JSON of several commands ---------------------------------- */

void
view_json_owner(struct json *j, const char *name, const char *owner)
{
	char copy[OWNER_MAX + 1];
	const char *host, *pid;

	if (owner[0] == '\0') {
		json_null(j, name);
		return;
	}
	(void)snprintf(copy, sizeof(copy), "%s", owner);
	split_owner(copy, &host, &pid);
	json_open(j, name, '{');
	json_string(j, "user", copy);
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

	if (h->token[0] == '\0') {
		json_null(j, "holder");
		return;
	}
	json_open(j, "holder", '{');
	json_string(j, "state", record_state(h->state));
	put_holder(&o, h);
	json_close(j, '}');
}
