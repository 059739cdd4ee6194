/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_BASE_ARRAY_H
#define DLOCK_BASE_ARRAY_H
#include <stdbool.h>
#include <stddef.h>

/*
 * Make room for `needed` items of this size in an allocated array; NULL and a capacity of 0 stand for an empty one.
 * Returns the array, which may have moved.  NULL: out of memory; then it is as before.
 */
void *array_room(void *items, size_t needed, size_t *capacity, size_t size);

/* A list of strings, which it owns.  A zeroed struct is an empty one. */
struct names {
	char **at;
	size_t count, room;
	struct names_block *block; /* private: their bytes */
};

/* Add a copy.  False: out of memory. */
bool names_add(struct names *, const char *name);

/* Add a copy of so many bytes: the name, its NUL, and what is behind that.  False: out of memory. */
bool names_add_more(struct names *, const char *name, size_t size);

/* Sort by bytes, and drop doubles.  Of equal names any one stays, with what is behind it. */
void names_sort(struct names *);

/*
 * Free the memory of doubles that were dropped, and what names_add_more() has put behind the names.  False: out of
 * memory, and all is as before.
 */
bool names_shrink(struct names *);

void names_free(struct names *);

#endif
