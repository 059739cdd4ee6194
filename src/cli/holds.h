/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_CLI_HOLDS_H
#define DLOCK_CLI_HOLDS_H
#include "lock/token.h"

/*
 * The locks that are held, according to the environment, by each `dlock run` around this process.
 *
 * DLOCK_KEY, DLOCK_TOKEN and DLOCK_FENCE describe the innermost lock, DLOCK_HOLDS all of them: KEY=TOKEN=FENCE,
 * separated by spaces.  KEY includes the prefix; all characters but letters, digits and -._:/ are written as %XX.  This
 * is a hint only: the servers decide whether a token still holds its lock.
 */
/*
 * Find the holds of a key: `operand` is the key as given by the user, NULL if it was not, `key` the same with its
 * prefix.  Returns their number: first the one of DLOCK_HOLDS, then the innermost one, which may belong to another
 * prefix or an older lock.
 */
int holds_find(const char *operand, const char *key, struct hold[HOLDS_MAX]);

/* DLOCK_HOLDS with one more lock, for its command; to be freed by the caller.  NULL: out of memory. */
char *holds_with(const char *key, const struct hold *);

#endif
