/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_SIM_RESP_H
#define DLOCK_SIM_RESP_H
#include "store.h"

/*
 * Read one request, in place: each argument gets a NUL behind it.  Returns the bytes that it took; 0: it isn't
 * complete; -1: it is none.
 */
long resp_read(char *bytes, size_t length, struct arg *, int *argc);

/* Write a reply; returns its length.  It must fit. */
size_t resp_write(const struct value *, char *bytes, size_t size);

#endif
