/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_REDIS_KEYS_H
#define DLOCK_REDIS_KEYS_H
#include <stdbool.h>
#include <stddef.h>

#include "lock/backend.h"

/*
 * The Redis keys of one lock.
 *
 * KEY itself is named exactly as the user named it.  Its siblings share its slot in a Redis Cluster, and no two KEYs share
 * a sibling: {KEY}:dlock where KEY has no hash tag of its own, KEY:dlock where it has one; and where neither will do (no
 * tag, but a brace that would end ours; or KEY is nothing but a tag, {X}, and would get the sibling of X) {N}:KEY:dlock-n
 * with the smallest number N of the same slot.
 */
struct keys {
	const char *key;
	char facts[KEY_MAX + 32];
	char holds[KEY_MAX + 32];
	char wake[KEY_MAX + 32];    /* the list on which waiters are blocked */
	char waiting[KEY_MAX + 32]; /* who waits, until when */
};

/* KEY must have at most KEY_MAX bytes and outlive the names. */
void keys_of(const char *key, struct keys *);

/* The KEY whose facts have this name; false if it is no such name. */
bool keys_key(const char *facts, char key[KEY_MAX + 1]);

/* Is it what waiters, handoff tokens or holds of some lock are kept under: neither a lock nor its facts? */
bool keys_is_aside(const char *name);

/* The slot of a key in a Redis Cluster, as CLUSTER KEYSLOT tells it. */
int keys_slot(const char *key, size_t length);

#endif
