/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_CLI_ENVIRONMENT_H
#define DLOCK_CLI_ENVIRONMENT_H
#include "lock/service.h"

/*
 * The variables that describe locks to commands: those that are held by each `dlock run` around this process, and those
 * for the command of one more.
 *
 * DLOCK_KEY, DLOCK_TOKEN, DLOCK_FENCE and DLOCK_TTL_MS describe the innermost lock, DLOCK_HOLDS all of them: KEY=TOKEN=FENCE,
 * separated by spaces.  KEY includes the prefix; all characters but letters, digits and -._:/ are written as %XX.  This
 * is a hint only: the servers decide whether a token still holds its lock.
 */
enum {
	LOCK_VARIABLES = 5
};

/*
 * Find the holds of a key: `operand` is the key as given by the user, NULL if it was not, `key` the same with its
 * prefix.  Returns their number: first the one of DLOCK_HOLDS, then the innermost one, which may belong to another
 * prefix or an older lock.
 */
int environment_holds(const char *operand, const char *key, struct hold[HOLDS_MAX]);

/*
 * The environment of this process with the variables of a lock, which are the first of it.  It is one block of memory, to be
 * freed by the caller.  NULL: out of memory.
 */
char **environment_of_lock(const char *operand, const char *key, const struct lease *);

#endif
