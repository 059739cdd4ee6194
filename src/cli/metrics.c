/* SPDX-License-Identifier: MIT */
#include "cli/metrics.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"
#include "lock/service.h"

#define ABSENT (-2) /* the lock has no sample */

enum {
	HELD,
	REMAINING,
	WAITERS,
	AGE,
	LAST_SUCCESS,
	LAST_RUN,
	LAST_STATUS,
	LAST_HELD,
	LAST_WAITED,
	METRICS
};

static const struct metric {
	const char *name, *help;
	bool milliseconds; /* printed as seconds; negative: without end */
} metrics[METRICS] = {
	[HELD] = { "dlock_held", "Whether the lock is held.", false },
	[REMAINING] = { "dlock_remaining_seconds", "Guaranteed remaining time of the lease.", true },
	[WAITERS] = { "dlock_waiters", "Number of known waiters.", false },
	[AGE] = { "dlock_age_seconds", "How long the lock has been held, if the holder is dlock.", true },
	[LAST_SUCCESS] = { "dlock_last_success_timestamp_seconds", "When a command last ended with exit status 0.",
	    true },
	[LAST_RUN] = { "dlock_last_run_timestamp_seconds", "When a command last ended.", true },
	[LAST_STATUS] = { "dlock_last_run_exit_status", "The exit status of its dlock run.", false },
	[LAST_HELD] = { "dlock_last_held_seconds", "How long the last holder that ended held the lock.", true },
	[LAST_WAITED] = { "dlock_last_waited_seconds", "How long that holder waited for it.", true },
};

struct sample {
	char *key;
	int64_t value[METRICS];
};

/* Set the values that are known from the history. */
static void
take_history(const struct record *r, int64_t value[METRICS])
{
	const struct former *f;
	size_t i;

	if (r->success.at_ms > 0)
		value[LAST_SUCCESS] = r->success.at_ms;
	if (r->run.at_ms > 0 && r->run_end.is) {
		value[LAST_RUN] = r->run.at_ms;
		value[LAST_STATUS] = r->run_end.status < 0 ? 128 - r->run_end.status : r->run_end.status;
	}
	for (i = 0; i < r->formers; i++) {
		f = &r->former[i];
		if (strcmp(f->outcome, "held") == 0 || f->held_ms < 0)
			continue;
		value[LAST_HELD] = f->held_ms;
		value[LAST_WAITED] = f->waited_ms;
		break;
	}
}

enum status
metrics_add(struct metrics *m, const char *key, const struct record *r, struct err *err)
{
	struct sample *const grown = array_room(m->sample, m->samples + 1, &m->capacity, sizeof(*grown));
	const struct holder *const h = record_holder(r);
	int64_t *value;
	int i;

	if (grown == NULL)
		return err_set(err, ST_SYSTEM, OUT_OF_MEMORY);
	m->sample = grown;
	m->sample[m->samples].key = strdup(key);
	if (m->sample[m->samples].key == NULL)
		return err_set(err, ST_SYSTEM, OUT_OF_MEMORY);
	value = m->sample[m->samples++].value;
	for (i = 0; i < METRICS; i++)
		value[i] = ABSENT;
	value[HELD] = h->state != LOCK_FREE;
	value[REMAINING] = h->left_ms;
	value[WAITERS] = h->waiting;
	if (h->state != LOCK_FREE && h->state != LOCK_OTHER_CLIENT)
		value[AGE] = h->held_ms;
	take_history(r, value);
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
	size_t i, count = 0;

	if (m->samples > 0)
		qsort(m->sample, m->samples, sizeof(*m->sample), compare);
	for (i = 0; i < m->samples; i++) {
		if (count > 0 && strcmp(m->sample[i].key, m->sample[count - 1].key) == 0)
			free(m->sample[i].key);
		else
			m->sample[count++] = m->sample[i];
	}
	m->samples = count;
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
