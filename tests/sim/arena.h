/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_SIM_ARENA_H
#define DLOCK_SIM_ARENA_H
#include <stddef.h>

/* Memory of one schedule, given back as a whole.  Ends the program where there is none. */
void *arena_alloc(size_t size);			    /* zeroed */
char *arena_bytes(size_t size);			    /* not zeroed */
char *arena_copy(const char *bytes, size_t length); /* with a NUL behind it */
void arena_reset(void);

#endif
