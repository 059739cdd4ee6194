/* SPDX-License-Identifier: MIT */
#include "base/duration.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static const struct unit {
	const char *name;
	int64_t ms;
} units[] = {
	{ "d", DAY_MS },
	{ "h", 3600000 },
	{ "m", 60000 },
	{ "s", 1000 },
	{ "ms", 1 },
};

#define UNITS (sizeof(units) / sizeof(units[0]))
#define SECONDS 3		  /* the unit of a bare number */
#define TOO_MUCH (INT64_MAX / 10) /* of any unit */

/*
 * Add a number and its unit, "1.5h", to the sum.  Returns what follows; NULL: not valid.  The decimals are multiplied
 * digit by digit from the right, so that none is lost, and rounded up.  *unit is the first unit that is allowed, and
 * becomes the one behind that of this number.
 */
static const char *
add_part(const char *at, size_t *unit, int64_t *sum_ms)
{
	const char *const start = at, *decimals;
	int64_t whole = 0, fraction = 0, unit_ms;
	bool rest = false;
	size_t length = 0;

	for (; isdigit((unsigned char)*at); at++)
		whole = whole < TOO_MUCH ? whole * 10 + (*at - '0') : whole;
	decimals = at;
	if (*at == '.') {
		while (isdigit((unsigned char)*++at))
			;
		decimals++;
	}
	if (at == start || at[-1] == '.')
		return NULL;
	while (at[length] >= 'a' && at[length] <= 'z')
		length++;
	if (at[0] == '\0' && *unit == 0)
		*unit = SECONDS;
	else {
		while (*unit < UNITS &&
		    (strlen(units[*unit].name) != length || strncmp(at, units[*unit].name, length) != 0))
			++*unit;
	}
	if (*unit == UNITS)
		return NULL;
	unit_ms = units[(*unit)++].ms;
	for (; at > decimals; fraction /= 10) {
		fraction += (*--at - '0') * unit_ms;
		rest = rest || fraction % 10 != 0;
	}
	if (*sum_ms != DURATION_FOREVER && whole <= DURATION_MOST_MS / unit_ms)
		*sum_ms += whole * unit_ms + fraction + rest;
	else
		*sum_ms = DURATION_FOREVER;
	if (*sum_ms > DURATION_MOST_MS)
		*sum_ms = DURATION_FOREVER;
	return decimals + strspn(decimals, "0123456789") + length;
}

bool
duration_parse(const char *text, int64_t *ms)
{
	const char *at = text;
	size_t unit = 0;
	int64_t sum = 0;

	do
		at = add_part(at, &unit, &sum);
	while (at != NULL && *at != '\0');
	if (at != NULL)
		*ms = sum;
	return at != NULL;
}

void
duration_show(int64_t ms, char *text, size_t size)
{
	size_t i = 0;

	while (i < SECONDS && ms < units[i].ms)
		i++;
	if (ms == DURATION_FOREVER)
		(void)snprintf(text, size, "forever");
	else if (i < SECONDS) /* this unit and the next one */
		(void)snprintf(text, size, "%" PRId64 "%s%02" PRId64 "%s", ms / units[i].ms, units[i].name,
		    ms % units[i].ms / units[i + 1].ms, units[i + 1].name);
	else if (ms < 1000)
		(void)snprintf(text, size, "%" PRId64 "ms", ms < 0 ? 0 : ms);
	else
		(void)snprintf(text, size, "%" PRId64 ".%" PRId64 "s", ms / 1000, ms % 1000 / 100);
}

const char *
duration_show_time(int64_t wall_us, char shown[TIME_SIZE])
{
	const time_t at = (time_t)(wall_us / 1000000), now = time(NULL);
	struct tm tm, today;

	if (localtime_r(&at, &tm) == NULL || localtime_r(&now, &today) == NULL ||
	    strftime(shown, TIME_SIZE,
		tm.tm_yday == today.tm_yday && tm.tm_year == today.tm_year ? "%H:%M:%S" : "%Y-%m-%d %H:%M:%S",
		&tm) == 0)
		memcpy(shown, "?", 2);
	return shown;
}
