/* SPDX-License-Identifier: MIT */
#include "lock/pattern.h"

#include <string.h>

/* Match one byte against what begins at *pattern, and advance *pattern behind it. */
static bool
matches_one(const char **pattern, unsigned char byte)
{
	const char *p = *pattern + 1;
	bool negated, found = false;
	unsigned char low, high, swap;

	if (**pattern != '[') {
		if (**pattern == '\\' && *p != '\0')
			found = (unsigned char)*p++ == byte;
		else
			found = **pattern == '?' || (unsigned char)**pattern == byte;
		*pattern = p;
		return found;
	}
	negated = *p == '^';
	p += negated;
	while (*p != '\0' && *p != ']') {
		if (*p == '\\' && p[1] != '\0')
			p++;
		low = high = (unsigned char)*p++;
		if (*p == '-' && p[1] != '\0' && p[-2] != '\\') {
			high = (unsigned char)p[1];
			p += 2;
		}
		if (low > high) {
			swap = low;
			low = high;
			high = swap;
		}
		found = found || (byte >= low && byte <= high);
	}
	*pattern = *p == ']' ? p + 1 : p;
	return found != negated;
}

/* After a mismatch it is enough to go back to the last star. */
bool
pattern_matches(const char *pattern, const char *text)
{
	const char *star = NULL, *resume = NULL, *next;

	while (*text != '\0') {
		if (*pattern == '*') {
			star = ++pattern;
			resume = text;
			continue;
		}
		next = pattern;
		if (*pattern != '\0' && matches_one(&next, (unsigned char)*text)) {
			pattern = next;
			text++;
			continue;
		}
		if (star == NULL)
			return false;
		pattern = star;
		text = ++resume;
	}
	return pattern[strspn(pattern, "*")] == '\0';
}

void
pattern_prefix(const char *pattern, char *prefix, size_t size)
{
	size_t n = 0;

	while (*pattern != '\0' && strchr("*?[", *pattern) == NULL && n + 1 < size) {
		if (*pattern == '\\' && pattern[1] != '\0')
			pattern++;
		prefix[n++] = *pattern++;
	}
	prefix[n] = '\0';
}
