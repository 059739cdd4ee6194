/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_REDIS_NAMES_H
#define DLOCK_REDIS_NAMES_H
#include <stddef.h>

/*
 * The Redis keys of one lock.
 *
 * KEY itself is named exactly as the user named it.  Its siblings share its slot in a Redis Cluster: KEY:dlock where
 * KEY has a hash tag of its own, {KEY}:dlock where it has none, and for the few keys that can't stand between braces
 * (no tag of their own, but a brace that would end ours) {N}:KEY:dlock with the smallest number N of the same slot.
 */
enum {
	KEY_MAX = 1024 /* prefix and KEY */
};

struct names {
	const char *key;
	char facts[KEY_MAX + 32];
	char holds[KEY_MAX + 32];
};

/* KEY must have at most KEY_MAX bytes and outlive the names. */
void names_of(const char *key, struct names *);

/* The slot of a key in a Redis Cluster, as CLUSTER KEYSLOT tells it. */
int names_slot(const char *key, size_t length);

#endif
