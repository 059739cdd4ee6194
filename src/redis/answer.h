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

/* What the replies of a node mean for the lock. */

/*
 * The minimum uptime, in seconds, of a server whose vote counts; 0: no guard.  Servers report whole seconds, rounded
 * down, so one second is added to be safe.  Negative: the absolute value applies, but servers that don't report their
 * uptime count too.
 */
int64_t answer_guard_s(const struct acquire_args *);

/* Parse the reply to acquire.lua.  *error is set if there is no valid reply. */
struct attempt_answer answer_acquire(const struct result *, const struct acquire_args *, struct node_error *);

/* What a renewal returns besides its number.  0 if it is not in the reply. */
struct lock_fields {
	int64_t server_ms;
	int64_t ttl_ms;
	int64_t fence;
	const char *holds; /* the holds as renew.lua lists them, or ""; points into the reply */
};

/* Parse the reply of a script that returns 2, 1, 0 or -1.  Returns that number, or -2 with *error set. */
int answer_number(const struct result *, struct lock_fields *, struct node_error *);

/*
 * Parse the reply to inspect.lua.  False, with *error set, if there is no valid reply.  *held: somebody holds the lock.
 */
bool answer_inspect(const struct result *, bool *held, struct holder *, struct node_error *);

/* Does the result have a reply, and is it not an error?  If not, *error says why. */
bool answer_is_reply(const struct result *, struct node_error *);

/* Set the error "held by OWNER (LABEL), 24.3s of its lease left".  Returns ST_HELD. */
enum status answer_held(const struct holder *, struct err *);

#endif
