/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_CLI_SETUP_H
#define DLOCK_CLI_SETUP_H
#include "cli/command.h"
#include "cli/holds.h"
#include "redis/keys.h"

/*
 * From what the user wrote to what the service takes; shared by all commands.
 */

/* Open the service that keeps the locks. */
enum status setup_service(struct invocation *, struct service **, struct err *);

/* The name of the lock: prefix and KEY.  ST_USAGE if KEY has no or too many bytes. */
enum status setup_key(const struct invocation *, const char *key, char full[KEY_MAX + 1], struct err *);

/*
 * The lease that a TOKEN from the command line, DLOCK_TOKEN or (for "-") standard input speaks of.  ST_USAGE if it has not the
 * shape of a token.
 */
enum status setup_token(const struct invocation *, const char *full_key, struct lease *, struct err *);

/* The three together: a key, a token that is said to hold it, and the service to ask. */
enum status setup_holder(struct invocation *, char full[KEY_MAX + 1], struct lease *, struct service **, struct err *);

/* How long --restart-guard is for these options, in milliseconds; 0: no guard. */
int64_t setup_guard_ms(const struct options *);

/* A claim, and what it points into. */
struct setup_claim {
	struct claim claim;
	char owner[OWNER_MAX + 1];
	struct held held[HOLDS_FOUND]; /* what the caller says to hold already */
	char token[HOLD_SIZE];	       /* likewise, by --token */
};

/*
 * The claim to a lock: owner, label, lease, wait, and whether the caller has it already, by --token or as the environment
 * of an outer run tells.  ST_USAGE for a --token of another shape.
 */
enum status setup_claim(const struct invocation *, const char *full_key, struct setup_claim *, struct err *);

/* Say which KEY the sentence is about, where it matters: held, not the holder's, not allowed. */
void setup_blame_key(const struct invocation *, enum status, struct err *);

#endif
