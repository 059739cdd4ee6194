/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_REDIS_KEYS_H
#define DLOCK_REDIS_KEYS_H
#include <stdbool.h>
#include <stddef.h>

#include "lock/service.h"

/*
 * The Redis keys of one lock.
 *
 * KEY itself has exactly the name that the user gave.  Its sibling keys are in the same slot of a Redis Cluster, and no
 * two KEYs share a sibling.  The metadata key is:
 *
 *  -  {KEY}:dlock if KEY has no hash tag of its own;
 *  -  KEY:dlock if KEY has a hash tag;
 *  -  {N}:KEY:dlock-n, with the smallest number N in the same slot, if neither works: KEY has no hash tag but contains
 *     a brace that would end ours, or KEY is nothing but a hash tag, {X}, and would get the sibling of X.
 */
struct keys {
	const char *key;
	char metadata[KEY_MAX + 32];
	char holds[KEY_MAX + 32];
	char wake[KEY_MAX + 32];    /* the list on which waiters block */
	char waiting[KEY_MAX + 32]; /* the waiters, and until when each of them waits */
};

/* Fill in the names.  KEY must have at most KEY_MAX bytes and must outlive them. */
void keys_of(const char *key, struct keys *);

/* The KEY of a metadata key; false if the name is not that of a metadata key. */
bool keys_key(const char *metadata, char key[KEY_MAX + 1]);

/* Is this a key of waiters, handoff tokens, holds or the history of some lock, that is, neither a lock nor its metadata? */
bool keys_is_auxiliary(const char *name);

/* The slot of a key in a Redis Cluster, as CLUSTER KEYSLOT reports it. */
int keys_slot(const char *key, size_t length);

#endif
