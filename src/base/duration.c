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

/* A decimal number: its integer part, and any number of digits after the point. */
struct number {
	int64_t whole;
	const char *decimals;
	const char *end;
};

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static const char *
read_fraction(const char *at, struct number *n)
{
	n->decimals = at;
	while (is_digit(*at))
		at++;
	n->end = at;
	return at > n->decimals ? at : NULL;
}

/* Returns the text after the number, NULL if there is none.  A number that is out of range becomes TOO_MUCH or more. */
static const char *
read_number(const char *at, struct number *n)
{
	n->whole = 0;
	n->decimals = n->end = at;
	if (!is_digit(*at))
		return *at == '.' ? read_fraction(at + 1, n) : NULL;
	for (; is_digit(*at); at++) {
		if (n->whole < TOO_MUCH)
			n->whole = n->whole * 10 + (*at - '0');
	}
	return *at == '.' ? read_fraction(at + 1, n) : at;
}

/* The unit at *at, which must be `first` or a later one of the table; UNITS if there is none. */
static size_t
read_unit(const char **at, size_t first)
{
	size_t i, length = 0;

	while ((*at)[length] >= 'a' && (*at)[length] <= 'z')
		length++;
	for (i = first; i < UNITS; i++) {
		if (strlen(units[i].name) == length && strncmp(*at, units[i].name, length) == 0) {
			*at += length;
			return i;
		}
	}
	return UNITS;
}

/* The decimals in milliseconds, rounded up: multiplied digit by digit from the right, so that none is lost. */
static int64_t
fraction_ms(const struct number *n, int64_t unit_ms)
{
	const char *at;
	int64_t ms = 0;
	bool rest = false;

	for (at = n->end; at > n->decimals;) {
		ms += (*--at - '0') * unit_ms;
		rest = rest || ms % 10 != 0;
		ms /= 10;
	}
	return ms + rest;
}

static int64_t
add(int64_t sum_ms, const struct number *n, int64_t unit_ms)
{
	if (sum_ms == DURATION_FOREVER || n->whole > DURATION_MOST_MS / unit_ms)
		return DURATION_FOREVER;
	sum_ms += n->whole * unit_ms + fraction_ms(n, unit_ms);
	return sum_ms <= DURATION_MOST_MS ? sum_ms : DURATION_FOREVER;
}

bool
duration_parse(const char *text, int64_t *ms)
{
	struct number n;
	size_t next_unit = 0, unit;
	int64_t sum = 0;
	const char *at = text;

	do {
		at = read_number(at, &n);
		if (at == NULL)
			return false;
		if (*at == '\0' && next_unit == 0)
			unit = SECONDS;
		else
			unit = read_unit(&at, next_unit);
		if (unit == UNITS)
			return false;
		sum = add(sum, &n, units[unit].ms);
		next_unit = unit + 1;
	} while (*at != '\0');
	*ms = sum;
	return true;
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
