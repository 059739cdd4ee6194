/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_CLI_ENVIRONMENT_H
#define DLOCK_CLI_ENVIRONMENT_H
#include "lock/service.h"

/* The variables that describe a lock to its command. */
struct lock_variables {
	struct variable {
		const char *name, *value;
	} variable[5];
	char fence[24], ttl_ms[24];
	char *holds; /* to be freed */
};

/* `operand` is KEY as given by the user, `key` the same with its prefix.  False: out of memory. */
bool environment_variables(struct lock_variables *, const char *operand, const char *key, const struct lease *);

/*
 * The environment of this process with these variables.  It is one block of memory, to be freed by the caller.  NULL:
 * out of memory.
 */
char **environment_of_lock(const char *operand, const char *key, const struct lease *);

#endif
