/* SPDX-License-Identifier: MIT */
#include "cli/metrics.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/view.h"

enum {
	LOCK_METRICS = 4, /* of the lock itself; the others are from its history */
	METRICS = 9,
	ABSENT = -2 /* the lock has no sample */
};

static const struct metric {
	const char *name, *help;
	bool milliseconds; /* printed as seconds; negative: without end */
} metrics[METRICS] = {
	{ "dlock_held", "Whether the lock is held.", false },
	{ "dlock_remaining_seconds", "Guaranteed remaining time of the lease.", true },
	{ "dlock_waiters", "Number of known waiters.", false },
	{ "dlock_age_seconds", "How long the lock has been held, if the holder is dlock.", true },
	{ "dlock_last_success_timestamp_seconds", "When a command last ended with exit status 0.", true },
	{ "dlock_last_run_timestamp_seconds", "When a command last ended.", true },
	{ "dlock_last_run_exit_status", "The exit status of its dlock run.", false },
	{ "dlock_last_held_seconds", "How long the last holder that ended held the lock.", true },
	{ "dlock_last_waited_seconds", "How long that holder waited for it.", true },
};

struct sample {
	char *key;
	int64_t value[METRICS];
};

enum status
metrics_add(struct metrics *m, const char *key, const struct lock_status *view, struct err *err)
{
	const size_t capacity = m->capacity == 0 ? 64 : m->capacity * 2;
	const bool held = view_is_held(view);
	struct sample *grown;

	if (m->samples == m->capacity) {
		grown = realloc(m->sample, capacity * sizeof(*grown));
		if (grown == NULL)
			return err_set(err, ST_SYSTEM, "out of memory");
		m->sample = grown;
		m->capacity = capacity;
	}
	m->sample[m->samples] = (struct sample){ .key = strdup(key),
		.value = { held, held ? view->holder.left_ms : 0, held ? view->holder.waiting : 0,
		    held && !view->holder.other_client ? view->holder.held_ms : ABSENT, ABSENT, ABSENT, ABSENT, ABSENT,
		    ABSENT } };
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

size_t
metrics_keys(struct metrics *m)
{
	drop_doubles(m);
	return m->samples;
}

const char *
metrics_key(const struct metrics *m, size_t index)
{
	return m->sample[index].key;
}

void
metrics_add_history(struct metrics *m, size_t index, const struct history *h)
{
	int64_t *const value = m->sample[index].value + LOCK_METRICS;
	const struct history_entry *last = NULL;
	size_t i;

	if (h->success_ms > 0)
		value[0] = h->success_ms;
	if (h->run_ms > 0 && h->run.is) {
		value[1] = h->run_ms;
		value[2] = h->run.status < 0 ? 128 - h->run.status : h->run.status;
	}
	for (i = 0; i < h->entries && last == NULL; i++) {
		if (strcmp(h->entry[i].outcome, "held") != 0 && h->entry[i].held_ms >= 0)
			last = &h->entry[i];
	}
	if (last != NULL) {
		value[3] = last->held_ms;
		value[4] = last->waited_ms;
	}
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
print_metric(const struct metrics *m, const struct metric *metric)
{
	size_t i;

	begin(metric->name, metric->help);
	for (i = 0; i < m->samples; i++) {
		const int64_t value = m->sample[i].value[metric - metrics];

		if (value == ABSENT)
			continue;
		put_series(metric->name, "key", m->sample[i].key);
		if (value < 0)
			puts("+Inf");
		else if (metric->milliseconds)
			printf("%" PRId64 ".%03" PRId64 "\n", value / 1000, value % 1000);
		else
			printf("%" PRId64 "\n", value);
	}
}

void
metrics_print(struct metrics *m, const struct probed *probed, int nodes)
{
	size_t k;
	int i;

	drop_doubles(m);
	for (i = 0; i < METRICS; i++)
		print_metric(m, &metrics[i]);
	begin("dlock_node_up", "Whether the node answers.");
	for (i = 0; i < nodes; i++) {
		put_series("dlock_node_up", "node", probed[i].name);
		puts(probed[i].up ? "1" : "0");
	}
	for (k = 0; k < m->samples; k++)
		free(m->sample[k].key);
	free(m->sample);
	memset(m, 0, sizeof(*m));
}
