/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_CLI_ENVIRONMENT_H
#define DLOCK_CLI_ENVIRONMENT_H
#include <stddef.h>

/*
 * The environment of a command: that of this process, with some variables set.  This process's own stays as it is: a thread
 * that looks up a name may be reading it.
 */
struct variable {
	const char *name, *value;
};

/*
 * For execve(2).  One piece of memory, to be freed by the caller; other variables' strings stay where they are.  NULL: out of
 * memory.
 */
char **environment_with(const struct variable *, size_t count);

#endif
