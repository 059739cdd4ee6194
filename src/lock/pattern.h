/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_LOCK_PATTERN_H
#define DLOCK_LOCK_PATTERN_H
#include <stdbool.h>
#include <stddef.h>

/*
 * Patterns as for KEYS of Redis: * matches any characters, ? one, [abc], [^abc] and [a-z] one of several; a backslash
 * makes the next character match itself.  A character is a byte.
 */
bool pattern_matches(const char *pattern, const char *text);

/*
 * Write what every text begins with that the pattern matches: the pattern up to its first special character, without
 * backslashes.  It is cut at `size` - 1 bytes.
 */
void pattern_prefix(const char *pattern, char *prefix, size_t size);

#endif
