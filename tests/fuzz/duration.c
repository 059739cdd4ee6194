/* SPDX-License-Identifier: MIT */
#include "base/duration.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

/*
 * Durations.  An accepted duration has the value that a second parser computes from the grammar, and no other form is
 * accepted.  A duration that was parsed and printed parses to the same value.
 */
#define MOST_MS (INT64_C(36525) * 86400000)

static const struct {
	const char *name;
	int64_t ms;
} units[] = {
	{ "d", 86400000 },
	{ "h", 3600000 },
	{ "m", 60000 },
	{ "s", 1000 },
	{ "ms", 1 },
};

enum {
	UNITS = sizeof(units) / sizeof(units[0]),
	SECONDS = 3,
	DIGITS_MAX = 18 /* the second parser can't check longer numbers */
};

static size_t
digits(const char *at)
{
	return strspn(at, "0123456789");
}

/* The value of a fraction of a unit, rounded up.  It is exact, since 18 digits times a day fit in 128 bits. */
static __int128
fraction(const char *decimals, size_t count, int64_t unit_ms)
{
	__int128 numerator = 0, denominator = 1;
	size_t i;

	for (i = 0; i < count; i++) {
		numerator = numerator * 10 + (decimals[i] - '0');
		denominator *= 10;
	}
	return (numerator * unit_ms + denominator - 1) / denominator;
}

/* The unit whose name is all the letters at `at`; UNITS if there is none, or none that may follow the last one. */
static size_t
find_unit(const char *at, size_t least)
{
	const size_t letters = strspn(at, "abcdefghijklmnopqrstuvwxyz");
	size_t i;

	for (i = least; i < UNITS; i++) {
		if (strlen(units[i].name) == letters && strncmp(at, units[i].name, letters) == 0)
			return i;
	}
	return UNITS;
}

/* Read one number with its unit.  Returns what follows, or NULL.  *judged becomes false if a number is too long. */
static const char *
read_part(const char *at, size_t *unit, __int128 *sum, bool first, bool *judged)
{
	const size_t whole = digits(at);
	const char *const decimals = at[whole] == '.' ? at + whole + 1 : at + whole;
	const size_t count = at[whole] == '.' ? digits(decimals) : 0;
	__int128 number = 0;
	size_t i;

	if (whole + count == 0 || (at[whole] == '.' && count == 0))
		return NULL;
	if (whole > DIGITS_MAX || count > DIGITS_MAX) {
		*judged = false;
		return NULL;
	}
	for (i = 0; i < whole; i++)
		number = number * 10 + (at[i] - '0');
	*unit = decimals[count] == '\0' && first ? SECONDS : find_unit(decimals + count, first ? 0 : *unit + 1);
	if (*unit == UNITS)
		return NULL;
	*sum += number * units[*unit].ms + fraction(decimals, count, units[*unit].ms);
	return decimals[count] == '\0' ? decimals + count : decimals + count + strlen(units[*unit].name);
}

/* Is it a duration, and how long?  Also false if it can't be checked; then *judged is false. */
static bool
read_again(const char *text, int64_t *ms, bool *judged)
{
	__int128 sum = 0;
	const char *at = text;
	size_t unit = 0;

	*judged = true;
	do {
		at = read_part(at, &unit, &sum, at == text, judged);
		if (at == NULL)
			return false;
	} while (*at != '\0');
	*ms = sum > MOST_MS ? DURATION_FOREVER : (int64_t)sum;
	return true;
}

/* A printed duration is truncated to two units, never rounded up, and can be parsed again unless it is "forever". */
static void
check_shown(int64_t ms)
{
	char text[32];
	int64_t back = -1;

	memset(text, 'z', sizeof(text));
	duration_show(ms, text, sizeof(text));
	must(memchr(text, '\0', sizeof(text)) != NULL && is_sentence(text), "shown as %s", text);
	if (ms == DURATION_FOREVER || ms < 0 || ms > MOST_MS)
		return;
	must(duration_parse(text, &back), "%" PRId64 " is shown as %s", ms, text);
	must(back <= ms &&
		ms - back < (ms < 60000		    ? 100
				    : ms < 3600000  ? 1000
				    : ms < 86400000 ? 60000
						    : 3600000),
	    "%" PRId64 " is shown as %s", ms, text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	struct input in = input_of(bytes, length);
	char *text = input_string(&in, SIZE_MAX);
	int64_t ms = -7, again = -1;
	bool judged, fit = duration_parse(text, &ms);
	char exact[32];

	if (read_again(text, &again, &judged))
		must(fit && ms == again, "'%s' is %" PRId64 " and not %" PRId64, text, again, ms);
	else
		must(!fit || !judged, "'%s' was accepted", text);
	must(fit ? (ms >= 0 && ms <= MOST_MS) || ms == DURATION_FOREVER : ms == -7, "'%s' came to %" PRId64, text, ms);
	if (fit && ms != DURATION_FOREVER) {
		(void)snprintf(exact, sizeof(exact), "%" PRId64 "ms", ms);
		must(duration_parse(exact, &again) && again == ms, "%s", exact);
	}
	check_shown(fit ? ms : input_number(&in));
	free(text);
	return 0;
}
