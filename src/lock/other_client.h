/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_LOCK_OTHER_CLIENT_H
#define DLOCK_LOCK_OTHER_CLIENT_H
#include "lock/holder.h"

/*
 * Which client of another make holds a lock, by what its locks look like: "redis-py", "node-redlock", "redsync", "Redisson".
 * NULL where nothing tells.  It is a guess: others may write the same kind of token.
 */
const char *other_client_of(const struct holder *);

#endif
