/* SPDX-License-Identifier: MIT */
#include "base/duration.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static const struct unit {
	const char *name;
	int64_t ms;
} units[] = {
	{ "d", 86400000 },
	{ "h", 3600000 },
	{ "m", 60000 },
	{ "s", 1000 },
	{ "ms", 1 },
};

#define UNITS (sizeof(units) / sizeof(units[0]))
#define SECONDS 3		  /* the unit of a bare number */
#define TOO_MUCH (INT64_MAX / 10) /* of any unit */

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* The unit of these letters, which must be `first` or a later one of the table; UNITS if there is none. */
static size_t
find_unit(const char *letters, size_t length, size_t first)
{
	while (
	    first < UNITS && (strlen(units[first].name) != length || strncmp(letters, units[first].name, length) != 0))
		first++;
	return first;
}

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

	for (; is_digit(*at); at++)
		whole = whole < TOO_MUCH ? whole * 10 + (*at - '0') : whole;
	decimals = at;
	if (*at == '.') {
		while (is_digit(*++at))
			;
		decimals++;
	}
	if (at == start || at[-1] == '.')
		return NULL;
	while (at[length] >= 'a' && at[length] <= 'z')
		length++;
	*unit = at[0] == '\0' && *unit == 0 ? SECONDS : find_unit(at, length, *unit);
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
	int64_t seconds = ms / 1000;

	if (ms == DURATION_FOREVER)
		(void)snprintf(text, size, "forever");
	else if (ms < 1000)
		(void)snprintf(text, size, "%" PRId64 "ms", ms < 0 ? 0 : ms);
	else if (seconds < 60)
		(void)snprintf(text, size, "%" PRId64 ".%" PRId64 "s", seconds, ms % 1000 / 100);
	else if (seconds < 3600)
		(void)snprintf(text, size, "%" PRId64 "m%02" PRId64 "s", seconds / 60, seconds % 60);
	else if (seconds < 86400)
		(void)snprintf(text, size, "%" PRId64 "h%02" PRId64 "m", seconds / 3600, seconds / 60 % 60);
	else
		(void)snprintf(text, size, "%" PRId64 "d%02" PRId64 "h", seconds / 86400, seconds / 3600 % 24);
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
