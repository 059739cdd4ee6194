/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_RUN_MESSAGES_H
#define DLOCK_RUN_MESSAGES_H
#include "base/err.h"
#include "run/child.h"
#include "run/keepalive.h"
#include "run/kill_policy.h"
#include "run/supervisor.h"

/*
 * The messages about a lock that is held for a command or a process.
 */
enum {
	MESSAGES_REASON_SIZE = sizeof(struct err) + 64
};

/*
 * The lock is lost, or about to be, and this order is carried out, except for a `forbidden` process, which may not be
 * signalled (0: none).  *reason: without what is done about it.
 */
void messages_lost(const struct supervision *, const struct keepalive_state *, enum kill_policy_order, pid_t forbidden,
    char reason[MESSAGES_REASON_SIZE]);

/* The command is ended by --max-run. */
void messages_max_run(const struct supervision *, pid_t forbidden);

struct forbidden {
	pid_t pid;	   /* a process that may not be signalled; 0: none */
	sigset_t not_sent; /* the signals that it did not get, of which a message was printed */
};

/* This process, if it is not 0, did not get a signal.  Said once, and remembered. */
void messages_forbidden(const struct supervision *, struct forbidden *, int signal, pid_t);

/* The command may have left a process behind, beside this one; see child_left_behind(). */
void messages_left_behind(const struct supervision *, const struct child *, pid_t except);

/* The last renewal failed, or it succeeded after others that failed. */
void messages_outage(const struct supervision *, const struct keepalive_state *);

/* The first try to release the lock failed; for somebody who waits for the end. */
void messages_unreleased(const struct supervision *, const char *why, int64_t valid_until_us);

/* The command was stopped, and dlock is going to stop. */
void messages_stopped(const struct supervision *, int64_t valid_until_us);

#endif
