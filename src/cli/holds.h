/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_CLI_HOLDS_H
#define DLOCK_CLI_HOLDS_H
#include <stdbool.h>
#include <stdint.h>

#include "lock/token.h"

/*
 * The locks that the environment says are held, by the `dlock run`s that this process is in.
 *
 * DLOCK_KEY, DLOCK_TOKEN and DLOCK_FENCE tell of the innermost, DLOCK_HOLDS of all: KEY=TOKEN=FENCE, separated by
 * spaces, the KEY with its prefix and with all but letters, digits and -._:/ as %XX.  It is no more than a hint: whether a
 * token still holds is for the servers to say.
 */
enum {
	HOLDS_FOUND = 2
};

struct held {
	char token[HOLD_SIZE];
	int64_t fence; /* 0: not told */
};

/*
 * What is said to hold this key: `operand` is the key as the user named it, `key` the same with its prefix.  Returns how
 * many; first what DLOCK_HOLDS has, then the innermost, which may be about another prefix or an older lock.
 */
int holds_find(const char *operand, const char *key, struct held[HOLDS_FOUND]);

/* DLOCK_HOLDS for a command that runs under one more lock, to be freed by the caller.  NULL: out of memory. */
char *holds_with(const char *key, const struct held *);

#endif
