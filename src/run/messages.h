/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_RUN_MESSAGES_H
#define DLOCK_RUN_MESSAGES_H
#include "base/err.h"
#include "run/keepalive.h"
#include "run/kill_policy.h"
#include "run/supervisor.h"

/*
 * The messages about a lock that is held for a command or a process.
 */
enum {
	MESSAGES_REASON_SIZE = sizeof(struct err) + 64
};

/* The lock is lost, or about to be, and this order is carried out.  *reason: without what is done about it. */
void messages_lost(const struct supervision *, const struct keepalive_state *, enum kill_policy_order,
    char reason[MESSAGES_REASON_SIZE]);

/* The command is ended by --max-run. */
void messages_max_run(const struct supervision *);

/* The last renewal failed, or it succeeded after others that failed. */
void messages_outage(const struct supervision *, const struct keepalive_state *);

/* The command was stopped, and dlock is going to stop. */
void messages_stopped(const struct supervision *, int64_t valid_until_us);

#endif
