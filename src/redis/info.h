/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_REDIS_INFO_H
#define DLOCK_REDIS_INFO_H
#include <stddef.h>
#include <stdint.h>

#include "lock/node_facts.h"

/*
 * What a server says of itself in its own words: the text of INFO, and the values of CONFIG GET.
 */

/* All is unknown at first. */
void info_forget(struct node_facts *);

/* Take what matters from the text of INFO.  What isn't there stays unknown. */
void info_read(const char *text, struct node_facts *);

/* The parameters to ask for by CONFIG GET, one after the other; NULL behind the last one. */
const char *info_parameter(size_t index);

/* The value of that parameter. */
void info_set(size_t index, const char *value, struct node_facts *);

#endif
