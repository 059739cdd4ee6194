/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_CLI_ENVIRONMENT_H
#define DLOCK_CLI_ENVIRONMENT_H
#include <stddef.h>

/*
 * The environment of a command: that of this process, with some variables set.  The environment of this process is not
 * modified, since a thread that resolves a name may be reading it.
 */
struct variable {
	const char *name, *value;
};

/*
 * Returns an environment for execve(2), to be freed by the caller by a single free(); strings of other variables are
 * shared with this process.  NULL: out of memory.
 */
char **environment_with(const struct variable *, size_t count);

#endif
