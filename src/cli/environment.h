/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_CLI_ENVIRONMENT_H
#define DLOCK_CLI_ENVIRONMENT_H
#include "lock/backend.h"

/*
 * The environment of this process with the variables of a lock: DLOCK_KEY and so on.  `operand` is KEY as given by the
 * user, `key` the same with its prefix.  It is one block of memory, to be freed by the caller.  NULL: out of memory.
 */
char **environment_of_lock(const char *operand, const char *key, const struct lease *);

#endif
