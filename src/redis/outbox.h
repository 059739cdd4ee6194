/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_REDIS_OUTBOX_H
#define DLOCK_REDIS_OUTBOX_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "redis/link.h"

/*
 * The bytes of one connection that are on their way out.
 */
struct outbox {
	char *bytes; /* not written yet */
	size_t length, room;
	uint64_t given, written; /* all bytes of the connection's stream */
};

/* False if there is no memory; nothing is added then. */
bool outbox_add(struct outbox *, const char *bytes, size_t length);

/* Write what can be written at once. */
enum link_result outbox_write(struct outbox *, const struct link *);

/* Begin a new stream. */
void outbox_clear(struct outbox *);

#endif
