/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_REDIS_ANSWER_H
#define DLOCK_REDIS_ANSWER_H
#include <stdbool.h>

#include "base/err.h"
#include "lock/attempt.h"
#include "lock/backend.h"
#include "lock/holder.h"
#include "redis/errors.h"
#include "redis/node.h"

/*
 * What a node's answer means for the lock.
 */

/*
 * How long a server must be up to count for a claim.  They tell it in whole seconds, cut: one more is on the safe side.
 * Negative: those that can't tell count all the same.
 */
int64_t answer_guard_s(const struct acquire_args *);

/* The answers to the scripts; each leaves the error where there is no proper answer. */
struct attempt_answer answer_acquire(const struct result *, const struct acquire_args *, struct node_error *);

/* What a renewal tells beside its number: the server's time of day, the lease's length, the fence; 0 where it doesn't. */
struct told {
	int64_t server_ms;
	int64_t ttl_ms;
	int64_t fence;
	const char *holds; /* of the reply: what renew.lua tells of them, or "" */
};

/* Of a script that answers with 2, 1, 0 or -1: the number, or -2 with the error set. */
int answer_number(const struct result *, struct told *, struct node_error *);

/* Of inspect.lua.  False with the error set where there is no proper answer; *held tells whether anybody holds it. */
bool answer_inspect(const struct result *, bool *held, struct holder *, struct node_error *);

/* Has the delivery a reply that is no error?  Otherwise the error says why not. */
bool answer_is_reply(const struct result *, struct node_error *);

/* "held by OWNER (LABEL), 24.3s left" in the holder's own terms. */
enum status answer_held(const struct holder *, struct err *);

#endif
