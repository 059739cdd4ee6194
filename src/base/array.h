/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_BASE_ARRAY_H
#define DLOCK_BASE_ARRAY_H
#include <stddef.h>

/*
 * Make room for `needed` items of this size in an allocated array; NULL and a capacity of 0 stand for an empty one.
 * Returns the array, which may have moved.  NULL: out of memory; then it is as before.
 */
void *array_room(void *items, size_t needed, size_t *capacity, size_t size);

#endif
