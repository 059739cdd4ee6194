/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_SIM_RESP_H
#define DLOCK_SIM_RESP_H
#include "store.h"

/*
 * Parse one request in place: each argument is terminated by a NUL.  Returns the bytes used; 0: incomplete; -1: not a
 * request.
 */
long resp_read(char *bytes, size_t length, struct arg *, int *argc);

/* Write a reply.  Returns its length.  The buffer must be large enough. */
size_t resp_write(const struct value *, char *bytes, size_t size);

#endif
