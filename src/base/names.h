/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_BASE_NAMES_H
#define DLOCK_BASE_NAMES_H
#include <stdbool.h>
#include <stddef.h>

/* A list of strings, which it owns.  A zeroed struct is an empty one. */
struct names {
	char **at;
	size_t count, room;
};

/* Add a copy.  False: out of memory. */
bool names_add(struct names *, const char *name);

/* Sort by bytes, and drop doubles. */
void names_sort(struct names *);

void names_free(struct names *);

#endif
