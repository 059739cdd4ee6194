/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_REDIS_UNDO_H
#define DLOCK_REDIS_UNDO_H
#include <stdbool.h>
#include <stdint.h>

#include "lock/attempt.h"
#include "redis/debts.h"
#include "redis/fleet.h"
#include "redis/names.h"

/* An attempt that has failed, by this token. */
struct undo {
	struct fleet *fleet;
	struct debts *debts;
	const struct names *names;
	const struct attempt *attempt;
	const char *token;
	int64_t until_us; /* it may take so long, and a round at the most */
};

/*
 * Tell every node that may have granted the attempt to undo it, and see it done where the node answers at all.  A node
 * whose connection broke is told again on a new one.  With `hear`, those that take hardly longer than took_us, which the
 * others took to decide, are heard first: most likely they refuse as well, and then there is nothing to undo.  `deliver`
 * gets all answers, tells the attempt and the debts of them, and has *context.  What can't be undone in time stays among
 * the debts.
 */
void undo_attempt(const struct undo *, int64_t took_us, bool hear, fleet_deliver *deliver, void *context);

#endif
