/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_REDIS_ANSWER_H
#define DLOCK_REDIS_ANSWER_H
#include <stdbool.h>

#include "base/err.h"
#include "lock/attempt.h"
#include "lock/holder.h"
#include "lock/service.h"
#include "redis/delivery.h"
#include "redis/fault.h"

/*
 * What a node's answer means for the lock.
 */

/*
 * How long a server must be up to count for a claim.  They tell it in whole seconds, cut: one more is on the safe side.
 * Negative: those that can't tell count all the same.
 */
int64_t answer_guard_s(const struct claim *);

/* The answers to the scripts; each leaves the fault where there is no proper answer. */
struct attempt_answer answer_acquire(const struct delivery *, const struct claim *, struct fault *);

/* What a renewal tells beside its number: the server's time of day, the lease's length, the fence; 0 where it doesn't. */
struct told {
	int64_t server_ms;
	int64_t ttl_ms;
	int64_t fence;
	const char *holds; /* of the reply: what renew.lua tells of them, or "" */
};

/* Of a script that answers with 2, 1, 0 or -1: the number, or -2 with the fault set. */
int answer_number(const struct delivery *, struct told *, struct fault *);

/* Of inspect.lua.  False with the fault set where there is no proper answer; *held tells whether anybody holds it. */
bool answer_inspect(const struct delivery *, bool *held, struct holder *, struct fault *);

/* Has the delivery a reply that is no error?  Otherwise the fault says why not. */
bool answer_is_reply(const struct delivery *, struct fault *);

/* "held by OWNER (LABEL), 24.3s left" in the holder's own terms. */
enum status answer_held(const struct holder *, struct err *);

#endif
