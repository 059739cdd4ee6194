/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/metrics.h"
#include "cli/output.h"
#include "cli/report.h"
#include "cli/table.h"
#include "cli/view.h"
#include "fuzz.h"
#include "lock/merge.h"
#include "strict.h"

/*
 * The output of status, and the file of --report.  Keys, owners, labels and tokens may have any bytes.  Each line of
 * JSON is valid and has the same data.  The metrics are valid for Prometheus and have the same data.  The table has
 * one line for each lock, which is not too wide and has no terminal control characters.
 */
enum {
	LOCKS_MAX = 3
};

struct lock {
	char *key;
	struct lock_status view;
	char name[NODES_MAX][96];
};

/* -- From bytes to locks ---------------------------------------------------- */

static void
take_text(struct input *in, char *to, size_t size)
{
	char *text = input_string(in, size - 1);

	(void)snprintf(to, size, "%s", text);
	free(text);
}

static void
take_holder(struct input *in, struct holder *h)
{
	const unsigned int bits = input_byte(in);
	char type[32];

	memset(h, 0, sizeof(*h));
	take_text(in, h->token, sizeof(h->token));
	take_text(in, h->owner, sizeof(h->owner));
	take_text(in, h->label, sizeof(h->label));
	take_text(in, type, sizeof(type));
	(void)text_show((bits & 1) != 0 ? type : "string", h->type, sizeof(h->type));
	h->other_type = strcmp(h->type, "string") != 0;
	h->handover = (bits & 2) != 0;
	h->left_ms = input_number(in) & (((int64_t)1 << 50) - 1);
	h->left_ms = (bits & 4) != 0 ? -1 : h->left_ms;
	h->held_ms = (bits & 8) != 0 ? -1 : input_number(in) & (((int64_t)1 << 50) - 1);
	h->other_client = h->held_ms < 0;
	h->fence = input_number(in);
	h->waiting = input_number(in);
	h->holds = input_number(in);
}

static void
take_lock(struct input *in, struct lock *l)
{
	static struct holder holders[NODES_MAX];
	struct lock_status *const v = &l->view;
	unsigned int what, nodes;
	int i;

	memset(l, 0, sizeof(*l));
	l->key = input_string(in, KEY_MAX);
	nodes = input_byte(in);
	v->nodes = 1 + (int)(nodes % 5);
	for (i = 0; i < v->nodes; i++) {
		what = input_byte(in);
		(void)snprintf(l->name[i], sizeof(l->name[i]), "h:%d", i);
		v->node[i].name = l->name[i];
		v->node[i].state = LOCK_UNKNOWN;
		reason_set(&v->node[i].reason, "because");
		if (what % 4 == 0)
			take_text(in, v->node[i].reason.text, sizeof(v->node[i].reason.text));
		if (what % 4 == 0)
			continue;
		holders[i] = what % 4 == 3 && i > 0 ? holders[i - 1] : (struct holder){ .token = "" };
		if (what % 4 == 2 || (what % 4 == 3 && i == 0))
			take_holder(in, &holders[i]);
		v->node[i].state = merge_state(what % 4 != 1, &holders[i]);
		v->node[i].left_ms = v->node[i].state == LOCK_FREE ? 0 : holders[i].left_ms;
		v->answered++;
	}
	(void)merge_status(v, holders);
}

/* -- The merge -------------------------------------------------------------- */

static void
check_census(const struct lock_status *v)
{
	const int majority = v->nodes / 2 + 1;
	int i, known = 0, longer = 0;

	for (i = 0; i < v->nodes; i++) {
		known += v->node[i].state != LOCK_UNKNOWN;
		longer += v->node[i].state != LOCK_UNKNOWN && v->node[i].state != LOCK_FREE &&
		    (v->node[i].left_ms < 0 || (v->holder.left_ms >= 0 && v->node[i].left_ms >= v->holder.left_ms));
	}
	must((v->state == LOCK_UNKNOWN) == (known < majority), "%d of %d nodes known", known, v->nodes);
	must(v->agreeing >= 0 && v->agreeing <= known, "%d agree of %d", v->agreeing, known);
	if (view_is_held(v) || v->state == LOCK_FREE)
		must(v->agreeing >= majority, "%s by %d of %d", output_state(v->state), v->agreeing, v->nodes);
	if (view_is_held(v))
		must(longer >= majority, "%" PRId64 " ms are left at %d of %d only", v->holder.left_ms, longer,
		    v->nodes);
}

/* -- JSON ------------------------------------------------------------------- */

/* The expected form of a string in JSON: unchanged, except that bytes that are not UTF-8 become \xHH. */
static char *
json_form(const char *text)
{
	const size_t length = strlen(text);
	char *form = malloc(4 * length + 1), *end = form, one[5];
	size_t i, n;

	must(form != NULL, "no memory");
	for (i = 0; i < length; i += n) {
		for (n = 4; n > 0; n--) {
			(void)snprintf(one, sizeof(one), "%.*s", (int)n, text + i);
			if (strlen(one) == n && is_utf8(one) && (n == 1 || ((unsigned char)one[0] & 0xc0) == 0xc0))
				break;
		}
		if (n > 0 && (n == 1 || (unsigned char)one[0] >= 0x80))
			memcpy(end, one, n);
		else
			(void)snprintf(end, 5, "\\x%02x", (unsigned int)(unsigned char)text[i]);
		end += n > 0 ? n : 4;
		n = n > 0 ? n : 1;
	}
	*end = '\0';
	return form;
}

static void
check_string(const struct json_read *doc, const char *path, const char *value)
{
	char *form = json_form(value);

	must(json_has_string(doc, path, form), "%s is '%s' and not '%s'", path, json_text_of(doc, path), form);
	free(form);
}

static void
check_string_or_null(const struct json_read *doc, const char *path, const char *value)
{
	if (value[0] == '\0')
		must(json_kind_of(doc, path) == JSON_NULL, "%s is '%s' and not null", path, json_text_of(doc, path));
	else
		check_string(doc, path, value);
}

/* user@host:pid is split again, at the last colon and at the last @ before it. */
static void
check_owner(const struct json_read *doc, const char *owner)
{
	char user[OWNER_MAX + 1], *host, *pid, number[24];

	if (owner[0] == '\0') {
		must(json_kind_of(doc, "owner") == JSON_NULL, "an owner of nothing");
		return;
	}
	(void)snprintf(user, sizeof(user), "%s", owner);
	pid = strrchr(user, ':');
	if (pid != NULL)
		*pid++ = '\0';
	host = strrchr(user, '@');
	if (host != NULL)
		*host++ = '\0';
	check_string(doc, "owner.user", user);
	check_string(doc, "owner.host", host != NULL ? host : "");
	must(json_kind_of(doc, "owner.pid") == JSON_NUMBER, "the pid");
	(void)snprintf(number, sizeof(number), "%s", pid != NULL ? pid : "0");
	if (pid != NULL && strlen(pid) < 18 && pid[0] >= '1' && strspn(pid, "0123456789") == strlen(pid))
		must(strcmp(json_text_of(doc, "owner.pid"), number) == 0, "pid %s", pid);
}

static void
check_nodes(const struct json_read *doc, const struct lock *l)
{
	char path[JSON_PATH];
	int i;

	for (i = 0; i < l->view.nodes; i++) {
		(void)snprintf(path, sizeof(path), "nodes.%d.node", i);
		check_string(doc, path, l->name[i]);
		(void)snprintf(path, sizeof(path), "nodes.%d.state", i);
		check_string(doc, path, output_state(l->view.node[i].state));
		(void)snprintf(path, sizeof(path), "nodes.%d.ttl_ms", i);
		must(json_has_number(doc, path, l->view.node[i].left_ms), "%s", path);
		(void)snprintf(path, sizeof(path), "nodes.%d.error", i);
		if (l->view.node[i].state == LOCK_UNKNOWN)
			check_string(doc, path, l->view.node[i].reason.text);
		else
			must(json_kind_of(doc, path) == JSON_NULL, "%s", path);
	}
	(void)snprintf(path, sizeof(path), "nodes.%d", i);
	must(json_kind_of(doc, path) == JSON_ABSENT, "one node too many");
}

static void
check_json(const struct lock *l)
{
	static struct json_read doc;
	const struct holder *h = &l->view.holder;
	const bool held = view_is_held(&l->view);
	const char *line, *end;
	char hint[5];

	capture_begin();
	view_print_json(l->key, &l->view);
	line = capture_end();
	end = json_read_line(line, &doc);
	must(end != NULL && *end == '\0' && is_harmless(doc.count > 0 ? "" : "?"), "no JSON in a line: %s", line);
	check_string(&doc, "key", l->key);
	check_string(&doc, "state", output_state(l->view.state));
	must(json_has_number(&doc, "ttl_ms", held ? h->left_ms : 0), "ttl_ms: %s", line);
	check_owner(&doc, h->owner);
	check_string_or_null(&doc, "label", h->label);
	if (held && !h->other_client)
		must(json_has_number(&doc, "held_ms", h->held_ms), "held_ms: %s", line);
	if (h->fence > 0)
		must(json_has_number(&doc, "fence", h->fence), "fence: %s", line);
	must(json_has_number(&doc, "waiting", h->waiting), "waiting: %s", line);
	(void)snprintf(hint, sizeof(hint), "%.4s", h->token);
	check_string_or_null(&doc, "token_hint", hint);
	must(strlen(h->token) <= 8 || strstr(line, h->token) == NULL || strstr(l->key, h->token) != NULL ||
		strstr(h->owner, h->token) != NULL || strstr(h->label, h->token) != NULL ||
		json_kind_of(&doc, "client") == JSON_STRING,
	    "the whole token: %s", line);
	check_nodes(&doc, l);
	json_read_free(&doc);
}

/* -- The table -------------------------------------------------------------- */

static void
check_line(const char *line, size_t length, size_t width)
{
	char copy[8 * 1024];

	must(length < sizeof(copy), "a line of %zu bytes", length);
	memcpy(copy, line, length);
	copy[length] = '\0';
	must(is_harmless(copy), "a terminal would obey: %s", copy);
	must(width == 0 || text_columns(copy) <= width, "%zu columns are wider than %zu: %s", text_columns(copy), width,
	    copy);
}

static void
check_table(const struct lock *lock, int locks, const char *names, size_t width)
{
	static struct table t;
	const char *at;
	struct err err;
	int i, lines = 0;

	memset(&t, 0, sizeof(t));
	t.layout.headings = true;
	t.layout.width = width;
	t.layout.out = stdout;
	t.layout.line_end = "\n";
	if (table_choose(&t, names, &err) != ST_OK) {
		must(is_sentence(err.text), "%s", err.text);
		return;
	}
	capture_begin();
	for (i = 0; i < locks; i++)
		must(table_add(&t, lock[i].key, &lock[i].view, &err) == ST_OK, "%s", err.text);
	layout_end(&t.layout);
	for (at = capture_end(); *at != '\0'; at += strcspn(at, "\n") + 1) {
		must(strchr(at, '\n') != NULL, "a line without an end");
		check_line(at, strcspn(at, "\n"), width);
		lines++;
	}
	must(lines == locks + 1, "%d lines for %d locks", lines, locks);
}

/* -- Metrics ---------------------------------------------------------------- */

struct totals {
	const struct lock *lock;
	int locks;
	int held, remaining, up;
};

static void
count_sample(void *context, const char *metric, const char *label, const char *value, const char *number)
{
	struct totals *totals = context;
	const bool of_node = strcmp(metric, "dlock_node_up") == 0;
	bool known = of_node;
	char *form;
	int i;

	must(strcmp(label, of_node ? "node" : "key") == 0, "%s has %s", metric, label);
	for (i = 0; i < totals->locks && !known; i++) {
		form = shown_form(totals->lock[i].key);
		known = strcmp(form, value) == 0;
		if (known && strcmp(metric, "dlock_held") == 0)
			must(strcmp(number, view_is_held(&totals->lock[i].view) ? "1" : "0") == 0 || totals->locks > 1,
			    "%s", value);
		free(form);
	}
	must(known, "%s of '%s', which is no key", metric, value);
	totals->held += strcmp(metric, "dlock_held") == 0;
	totals->remaining += strcmp(metric, "dlock_remaining_seconds") == 0;
	totals->up += of_node;
}

static int
count_keys(const struct lock *lock, int locks)
{
	int i, j, keys = 0;

	for (i = 0; i < locks; i++) {
		for (j = 0; j < i && strcmp(lock[i].key, lock[j].key) != 0; j++)
			;
		keys += j == i;
	}
	return keys;
}

static void
check_metrics(const struct lock *lock, int locks)
{
	static struct probed probed[2];
	struct totals totals = { .lock = lock, .locks = locks };
	struct metrics m = { .sample = NULL };
	const char *text;
	struct err err;
	int i;

	probed[0].name = "h:1";
	probed[1].name = "/a \"b\\c";
	for (i = 0; i < locks; i++)
		must(metrics_add(&m, lock[i].key, &lock[i].view, &err) == ST_OK, "%s", err.text);
	capture_begin();
	metrics_print(&m, probed, 2);
	text = capture_end();
	must(prometheus_read(text, count_sample, &totals), "not in Prometheus's format: %s", text);
	must(totals.held == count_keys(lock, locks) && totals.remaining == totals.held && totals.up == 2,
	    "%d, %d of %d locks", totals.held, totals.remaining, locks);
}

/* -- The report ------------------------------------------------------------- */

/* An exit status, or a signal. */
static void
check_child(const struct json_read *doc, const struct report *r)
{
	if (!r->child.is)
		must(json_kind_of(doc, "child") == JSON_NULL, "a child that was not started");
	else if (r->child.status < 0)
		must(json_has_number(doc, "child.signal", -r->child.status), "the signal");
	else
		must(json_has_number(doc, "child.exit", r->child.status), "the exit status");
}

static void
check_report(struct input *in, const char *key, const char *outcome)
{
	static struct json_read doc;
	const unsigned int started = input_byte(in);
	const struct report r = { outcome,
		{ (started & 1) != 0, (started & 2) != 0 ? -(int)(input_byte(in) & 0x7f) : (int)input_byte(in) }, key,
		input_number(in), NULL, input_number(in), input_number(in) };
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	const char *end;

	must(out != NULL, "no memory");
	report_print(out, &r);
	must(fclose(out) == 0, "no memory");
	end = json_read_line(text, &doc);
	must(end != NULL && *end == '\0', "no JSON in a line: %s", text);
	check_string(&doc, "key", key);
	check_string(&doc, "outcome", outcome);
	check_child(&doc, &r);
	must(json_has_number(&doc, "waited_ms", r.waited_ms) && json_has_number(&doc, "held_ms", r.held_ms), "%s",
	    text);
	must(r.fence > 0 ? json_has_number(&doc, "fence", r.fence) : json_kind_of(&doc, "fence") == JSON_NULL, "%s",
	    text);
	json_read_free(&doc);
	free(text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	static struct lock lock[LOCKS_MAX];
	struct input in = input_of(bytes, length);
	const unsigned int shape = input_byte(&in);
	const int locks = 1 + (int)(shape % LOCKS_MAX);
	const size_t width = (shape & 0x80) != 0 ? 20 + (shape & 0x7f) : 0;
	char *names = (shape & 0x40) != 0 ? input_string(&in, 200) : NULL;
	int i;

	for (i = 0; i < locks; i++) {
		take_lock(&in, &lock[i]);
		check_census(&lock[i].view);
		check_json(&lock[i]);
	}
	check_table(lock, locks, names, width);
	check_metrics(lock, locks);
	check_report(&in, lock[0].key, lock[0].view.holder.label);
	for (i = 0; i < locks; i++)
		free(lock[i].key);
	free(names);
	return 0;
}
