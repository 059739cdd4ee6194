/* SPDX-License-Identifier: MIT */
#include "cli/metrics.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/view.h"

struct sample {
	char *key;
	bool held;
	bool age_known;
	int64_t left_ms, held_ms, waiting;
};

enum status
metrics_add(struct metrics *m, const char *key, const struct lock_status *view, struct err *err)
{
	const size_t room = m->room == 0 ? 64 : m->room * 2;
	const bool held = view_is_held(view);
	struct sample *grown;

	if (m->samples == m->room) {
		grown = realloc(m->sample, room * sizeof(*grown));
		if (grown == NULL)
			return err_set(err, ST_SYSTEM, "out of memory");
		m->sample = grown;
		m->room = room;
	}
	m->sample[m->samples] = (struct sample){ .key = strdup(key),
		.held = held,
		.age_known = held && !view->holder.other_client,
		.left_ms = held ? view->holder.left_ms : 0,
		.held_ms = view->holder.held_ms,
		.waiting = held ? view->holder.waiting : 0 };
	if (m->sample[m->samples].key == NULL)
		return err_set(err, ST_SYSTEM, "out of memory");
	m->samples++;
	return ST_OK;
}

static int
compare(const void *a, const void *b)
{
	return strcmp(((const struct sample *)a)->key, ((const struct sample *)b)->key);
}

/* Remove duplicates: Prometheus would reject the whole file. */
static void
drop_doubles(struct metrics *m)
{
	size_t i, kept = 0;

	if (m->samples > 0)
		qsort(m->sample, m->samples, sizeof(*m->sample), compare);
	for (i = 0; i < m->samples; i++) {
		if (kept > 0 && strcmp(m->sample[i].key, m->sample[kept - 1].key) == 0)
			free(m->sample[i].key);
		else
			m->sample[kept++] = m->sample[i];
	}
	m->samples = kept;
}

static void
begin(const char *name, const char *help)
{
	printf("# HELP %s %s\n# TYPE %s gauge\n", name, help, name);
}

/* NAME{LABEL="VALUE"}.  The value is escaped as in messages, which keeps values distinct, and then for the format. */
static void
put_series(const char *name, const char *label, const char *value)
{
	char shown[4 * KEY_MAX + 1];
	const char *at;

	printf("%s{%s=\"", name, label);
	for (at = text_show(value, shown, sizeof(shown)); *at != '\0'; at++) {
		if (*at == '"' || *at == '\\')
			putchar('\\');
		putchar(*at);
	}
	fputs("\"} ", stdout);
}

static void
put_seconds(int64_t ms)
{
	printf("%" PRId64 ".%03" PRId64 "\n", ms / 1000, ms % 1000);
}

static void
print_remaining(const struct metrics *m)
{
	size_t i;

	begin("dlock_remaining_seconds", "Guaranteed remaining time of the lease.");
	for (i = 0; i < m->samples; i++) {
		put_series("dlock_remaining_seconds", "key", m->sample[i].key);
		if (m->sample[i].left_ms < 0)
			puts("+Inf");
		else
			put_seconds(m->sample[i].left_ms);
	}
}

static void
print_age(const struct metrics *m)
{
	size_t i;

	begin("dlock_age_seconds", "How long the lock has been held, if the holder is dlock.");
	for (i = 0; i < m->samples; i++) {
		if (!m->sample[i].age_known)
			continue;
		put_series("dlock_age_seconds", "key", m->sample[i].key);
		put_seconds(m->sample[i].held_ms);
	}
}

void
metrics_print(struct metrics *m, const struct node_facts *facts, int nodes)
{
	size_t i;
	int n;

	drop_doubles(m);
	begin("dlock_held", "Whether the lock is held.");
	for (i = 0; i < m->samples; i++) {
		put_series("dlock_held", "key", m->sample[i].key);
		puts(m->sample[i].held ? "1" : "0");
	}
	print_remaining(m);
	begin("dlock_waiters", "Number of known waiters.");
	for (i = 0; i < m->samples; i++) {
		put_series("dlock_waiters", "key", m->sample[i].key);
		printf("%" PRId64 "\n", m->sample[i].waiting);
	}
	print_age(m);
	begin("dlock_node_up", "Whether the node answers.");
	for (n = 0; n < nodes; n++) {
		put_series("dlock_node_up", "node", facts[n].name);
		puts(facts[n].up ? "1" : "0");
	}
}

void
metrics_free(struct metrics *m)
{
	size_t i;

	for (i = 0; i < m->samples; i++)
		free(m->sample[i].key);
	free(m->sample);
}
