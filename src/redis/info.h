/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_REDIS_INFO_H
#define DLOCK_REDIS_INFO_H
#include <stddef.h>
#include <stdint.h>

#include "lock/node_facts.h"

/* Server metadata: parsing of INFO and of the values of CONFIG GET. */

/* Set all fields to unknown. */
void info_forget(struct node_facts *);

/* Parse the text of INFO.  Fields that are not in it remain unknown. */
void info_read(const char *text, struct node_facts *);

/* The names of the parameters to query with CONFIG GET, by index; NULL after the last one. */
const char *info_parameter(size_t index);

/* Store the value of the parameter with this index. */
void info_set(size_t index, const char *value, struct node_facts *);

#endif
