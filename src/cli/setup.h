/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_CLI_SETUP_H
#define DLOCK_CLI_SETUP_H
#include "cli/command.h"
#include "lock/service.h"

/*
 * Conversion of options and operands to arguments of the service; shared by all commands.
 */

/* Open the service that keeps the locks. */
enum status setup_service(const struct invocation *, struct backend **, struct err *);

/* The variable of the environment that has the password; NULL: none has. */
const char *setup_password_variable(void);

/*
 * If there is a password or a client key: no core dump, and no access for other processes of the user.  This ends at
 * exec, so not for the command.
 */
void setup_protect(const struct options *);

/* The full key: prefix and KEY.  ST_USAGE if KEY is empty or too long. */
enum status setup_key(const struct invocation *, const char *key, char full[KEY_MAX + 1], struct err *);

/* May it be a PATTERN, where one is accepted? */
bool setup_is_pattern(const char *operand);

/* The name of one of the slots of the full key; slot 0 stands for all of them.  ST_USAGE: it can have none. */
enum status setup_slot_key(const struct invocation *, const char *full_key, int slot, char name[KEY_MAX + 1],
    struct err *);

/*
 * A lease for the TOKEN from the command line, from DLOCK_TOKEN or (for "-") from standard input.  ST_USAGE if it is
 * missing or malformed.
 */
enum status setup_token(const struct invocation *, const char *full_key, struct lease *, struct err *);

/* The --node-timeout that applies. */
int64_t setup_node_timeout_ms(const struct options *);

/* The --restart-guard that applies, in milliseconds; 0: no guard. */
int64_t setup_guard_ms(const struct options *);

/*
 * The arguments of an acquisition: owner, label, lease, wait, and the holds that the caller has already, from --token
 * or from the environment of an outer run.  `owner` is memory that they point into.  ST_USAGE for a malformed --token.
 */
enum status setup_acquire(const struct invocation *, const char *full_key, char owner[OWNER_MAX + 1],
    struct acquire_args *, struct err *);

/*
 * Refuse what would wait for the end of this process itself: one more slot, if it has all of them, or to be alone, if
 * it holds the lock shared.  The servers say whether it still does.  ST_OK: it may be acquired.  Otherwise ST_USAGE, or
 * a failure of renew() of the service.
 */
enum status setup_nesting(const struct invocation *, struct backend *, const struct acquire_args *, struct err *);

/* user@host:pid, and for acquire that of the process that called it, or that of --keep: dlock itself ends at once. */
void setup_owner(const struct invocation *, char owner[OWNER_MAX + 1]);

/* Let --wait begin now. */
void setup_wait(const struct invocation *, struct acquire_args *);

/* Put KEY before a message of run, which names it in each of them: a mail of cron may come from several jobs. */
void setup_name_key(const struct invocation *, struct err *);

/* Log a warning, with KEY before it likewise.  Nothing under --quiet. */
void setup_warn(const struct invocation *, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Add a key to the message of ST_DENIED, in which a server names none. */
void setup_blame_denied(const char *key, enum status, struct err *);

/* Add KEY to the message of ST_HELD, ST_NO or ST_DENIED. */
void setup_blame_key(const struct invocation *, enum status, struct err *);

/*
 * The variables that describe locks to commands: those that are held by each `dlock run` around this process, and those
 * for the command of one more.
 *
 * DLOCK_KEY, DLOCK_SLOT (of a slot, else that of an outer lock), DLOCK_TOKEN, DLOCK_FENCE and DLOCK_TTL_MS describe the
 * innermost lock, DLOCK_HOLDS all of them: KEY=TOKEN=FENCE, separated by spaces.  KEY includes the prefix; all
 * characters but letters, digits and -._:/ are written as %XX.  This is a hint only: the servers decide whether a token
 * still holds its lock.
 */
enum {
	LOCK_VARIABLES = 6, /* of a slot */
};

/*
 * Find the holds of a key: `operand` is the key as given by the user, NULL if it was not, `key` the same with its
 * prefix.  Returns their number: first the one of DLOCK_HOLDS, then the innermost one, which may belong to another
 * prefix or an older lock.
 */
int setup_holds(const char *operand, const char *key, struct hold[HOLDS_MAX]);

/* The number of variables that describe this lock. */
size_t setup_variables(const struct lease *);

/*
 * The environment of this process with the variables of a lock, which are the first of it; `name` is its key without
 * the prefix.  It is one block of memory, to be freed by the caller.  NULL: out of memory.
 */
char **setup_environment(const char *name, const struct lease *);

#endif
