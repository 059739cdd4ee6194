/* SPDX-License-Identifier: MIT */
#include "settings.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "fuzz.h"
#include "lock/lease.h"
#include "redis/url.h"

#define YEARS_100_MS (INT64_C(36525) * 86400000)

static const void *
at(const struct options *o, const struct option_spec *spec)
{
	return (const char *)o + spec->offset;
}

static bool
is_given(const struct options *o, const struct option_spec *spec)
{
	return spec->given_offset != 0 && *(const bool *)((const char *)o + spec->given_offset);
}

/* The value as text; NULL if there is nothing to set. */
static char *
write_value(const struct options *o, const struct option_spec *spec)
{
	const char *const *const text = at(o, spec);
	const int64_t *const ms = at(o, spec);
	const int *const number = at(o, spec);
	char digits[32] = "";

	switch (spec->kind) {
	case OPTION_FLAG:
		return *(const bool *)at(o, spec) ? strdup("") : NULL;
	case OPTION_TEXT:
		return *text != NULL ? strdup(*text) : NULL;
	case OPTION_DURATION:
	case OPTION_WAIT:
	case OPTION_GUARD:
		if (spec->given_offset != 0 && !is_given(o, spec))
			return NULL;
		if (*ms == DURATION_FOREVER)
			return strdup("forever");
		if (*ms == GUARD_AUTO)
			return strdup("auto");
		(void)snprintf(digits, sizeof(digits), "%" PRId64 "ms", *ms);
		return strdup(digits);
	case OPTION_EXIT_CODE:
	case OPTION_COUNT:
	case OPTION_SIGNAL:
		(void)snprintf(digits, sizeof(digits), "%d", *number);
		return strdup(digits);
	case OPTION_PID:
		if (*number == 0)
			return NULL;
		(void)snprintf(digits, sizeof(digits), "%d", *number);
		return strdup(digits);
	case OPTION_ON_LOST:
		return strdup(o->only_warn ? "warn" : "kill");
	case OPTION_SHELL:
	case OPTION_NODE:
	case OPTION_NO_WAIT:
	case OPTION_ALL:
		break;
	}
	return NULL;
}

int
settings_of(const struct options *o, struct setting settings[SETTINGS_MAX])
{
	int count = 0, n;
	size_t i;

	for (n = 0; n < o->nodes; n++)
		settings[count++] = (struct setting){ option_find("node"), strdup(o->node[n]) };
	for (i = 0; i < option_count; i++) {
		settings[count].spec = &option_specs[i];
		settings[count].value = write_value(o, &option_specs[i]);
		count += settings[count].value != NULL;
	}
	for (n = 0; n < count; n++) {
		if (settings[n].spec->argument != NULL)
			continue;
		free(settings[n].value);
		settings[n].value = NULL;
	}
	return count;
}

void
settings_free(struct setting settings[SETTINGS_MAX], int count)
{
	int i;

	for (i = 0; i < count; i++)
		free(settings[i].value);
}

void
settings_check(const struct options *o)
{
	struct url url;
	struct err err;
	size_t i;
	int n;

	must(o->nodes >= 0 && o->nodes <= NODES_MAX, "%d nodes", o->nodes);
	for (n = 0; n < o->nodes; n++) {
		must(url_parse(o->node[n], &url, &err) == ST_OK, "node %s", o->node[n]);
		url_free(&url);
	}
	for (i = 0; i < option_count; i++) {
		const struct option_spec *const spec = &option_specs[i];
		const int64_t *const ms = at(o, spec);

		if (spec->kind == OPTION_WAIT)
			must(*ms == DURATION_FOREVER || (*ms >= 0 && *ms <= YEARS_100_MS), "--%s", spec->name);
		else if (spec->kind == OPTION_GUARD)
			must(*ms == GUARD_AUTO || (*ms >= 0 && *ms <= YEARS_100_MS), "--%s", spec->name);
		else if (spec->kind == OPTION_DURATION && (spec->given_offset == 0 || is_given(o, spec)))
			must(*ms >= spec->least && *ms <= YEARS_100_MS, "--%s: %" PRId64, spec->name, *ms);
	}
	must(o->ttl_ms >= TTL_MIN_MS && o->conflict_exit >= 0 && o->conflict_exit <= 255 && o->replicas >= 0 &&
		o->replicas <= 255 && o->first_signal > 0 && o->first_signal < 65 && o->prefix != NULL,
	    "a value out of range");
}

static bool
is_same(const struct options *a, const struct options *b, const struct option_spec *spec)
{
	const char *const *const x = at(a, spec), *const *const y = at(b, spec);

	switch (spec->kind) {
	case OPTION_FLAG:
	case OPTION_ON_LOST:
	case OPTION_ALL:
		return *(const bool *)at(a, spec) == *(const bool *)at(b, spec);
	case OPTION_TEXT:
		return *x == NULL || *y == NULL ? *x == *y : strcmp(*x, *y) == 0;
	case OPTION_DURATION:
	case OPTION_WAIT:
	case OPTION_GUARD:
	case OPTION_NO_WAIT:
		return *(const int64_t *)at(a, spec) == *(const int64_t *)at(b, spec) &&
		    is_given(a, spec) == is_given(b, spec);
	case OPTION_EXIT_CODE:
	case OPTION_COUNT:
	case OPTION_SIGNAL:
	case OPTION_PID:
		return *(const int *)at(a, spec) == *(const int *)at(b, spec);
	case OPTION_SHELL:
	case OPTION_NODE:
		break;
	}
	return true;
}

const char *
settings_difference(const struct options *a, const struct options *b)
{
	size_t i;
	int n;

	for (n = 0; n < a->nodes || n < b->nodes; n++) {
		if (n >= a->nodes || n >= b->nodes || strcmp(a->node[n], b->node[n]) != 0)
			return "node";
	}
	for (i = 0; i < option_count; i++) {
		if (!is_same(a, b, &option_specs[i]))
			return option_specs[i].name;
	}
	return NULL;
}
