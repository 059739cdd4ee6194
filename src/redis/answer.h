/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_REDIS_ANSWER_H
#define DLOCK_REDIS_ANSWER_H
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "lock/attempt.h"
#include "lock/record.h"
#include "lock/service.h"
#include "redis/server.h"

/* The meaning of a request's result for the lock: a reply, or an error, which is translated for the user. */

/* Why a node has no vote: translation of server errors to messages. */
struct node_error {
	struct failure why; /* NO_FAILURE: it has a vote.  DENIED: permanently, by login or ACL */
	bool of_keys;	    /* it refuses us these keys, not what we do with them */
	bool guarded;	    /* it has started too recently, see --restart-guard */
	int64_t left_ms;    /* if guarded: the longest time until it grants locks again */
	bool moved;	    /* it replied MOVED: another server of its Cluster has the slot */
	bool gives_way;	    /* it knows a newer client that replaces the holder, as `why` says; it may have a vote */
	int duplicate;	    /* number, from 1, of the node that is the same server, as reported by this one; 0: none */
};

void answer_fail(struct node_error *, bool denied, const char *sentence);

/* The server sent a reply that no Redis would send. */
void answer_fail_unexpected(struct node_error *);

/*
 * The minimum uptime, in seconds, of a server whose vote counts; 0: no guard.  Servers report whole seconds, rounded
 * down, so one second is added to be safe.  Negative: the absolute value applies, but servers that don't report their
 * uptime count too.
 */
int64_t answer_guard_s(const struct acquire_args *);

/* Parse the reply to acquire.lua.  *error is set if there is no valid reply. */
struct attempt_answer answer_acquire(const struct result *, const struct acquire_args *, struct node_error *);

/* Parse what acquire.lua, inspect.lua and slots.lua return for a lock that is held.  False: it is malformed. */
bool answer_holder(const struct reply *, struct holder *);

/*
 * From the list that answer_holder() reads: the number of waiters before the caller; and the number of all waiters if
 * the caller may not wait because of --max-waiters, otherwise 0.
 */
int64_t answer_before(const struct reply *);
int64_t answer_crowd(const struct reply *);

/* The fields that a renewal returns besides its number.  0 if it is not in the reply. */
struct lock_fields {
	int64_t server_ms;
	int64_t ttl_ms;
	int64_t fence;
	int64_t left_ms;      /* of the lease of another holder */
	const char *holds;    /* the holds as renew.lua lists them, or ""; points into the reply */
	const char *asked_by; /* the owner who asked the holder to end, or ""; points into the reply */
};

/* Parse the reply of a script that returns 2, 1, 0 or -1.  Returns that number, or -2 with *error set. */
int answer_number(const struct result *, struct lock_fields *, struct node_error *);

/* Parse the reply to inspect.lua.  False: it is malformed. */
bool answer_inspect(const struct reply *, struct holder *, struct broken *);

/*
 * Say what another client probably is, by the form of its token: "redis-py", "Redisson, thread 57", "a list" ...; "" if
 * it is a string of an unknown form.  Different clients may use the same form.
 */
void answer_guess_client(struct holder *);

/* Does the result have a reply, and is it not an error?  If not, *error says why. */
bool answer_is_reply(const struct result *, struct node_error *);

#endif
