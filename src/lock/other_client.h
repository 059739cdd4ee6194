/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_LOCK_OTHER_CLIENT_H
#define DLOCK_LOCK_OTHER_CLIENT_H
#include "lock/holder.h"

/*
 * The name of the other client that holds a lock, judged by the format of its token: "redis-py", "node-redlock",
 * "redsync", "Redisson".  NULL if the holder is dlock or the format is unknown.  It is a guess: different clients may
 * use the same format.  The string is static.
 */
const char *other_client_of(const struct holder *);

#endif
