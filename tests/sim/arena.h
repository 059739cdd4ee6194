/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_SIM_ARENA_H
#define DLOCK_SIM_ARENA_H
#include <stddef.h>

/* The memory of one schedule, freed as a whole.  Exits if there is no memory. */
void *arena_alloc(size_t size);			    /* zeroed */
char *arena_bytes(size_t size);			    /* not zeroed */
char *arena_copy(const char *bytes, size_t length); /* followed by a NUL */
void arena_reset(void);

#endif
