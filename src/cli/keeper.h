/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_CLI_KEEPER_H
#define DLOCK_CLI_KEEPER_H
#include "cli/acquisition.h"

/*
 * acquire --keep: a process in the background, the keeper, that holds the lock for as long as another process lives.
 */

/* Print a lock that was acquired.  A failure means that nobody got its token. */
typedef enum status keeper_print(const struct invocation *, const struct acquisition *, struct err *);

/* Print who holds a lock that was not acquired, if that is wanted. */
typedef void keeper_refuse(const struct invocation *, const struct acquisition *, enum status);

/*
 * Acquire the lock in a new process, which prints it and stays as the keeper.  Returns twice: in this process when the
 * lock has been printed, or with the exit status of a failure that has been reported (see exit_status of the
 * invocation); and in the keeper when all is over.
 */
int keeper_acquire(struct invocation *, keeper_print *, keeper_refuse *, struct err *);

/*
 * Before a release: ask the keeper of this token, if there is one on this host that belongs to the same user, to pause.
 * Returns a connection to it; -1: there is none.
 */
int keeper_announce(const char *token);

/* After the release: end the keeper and wait for its end, or let it go on; and close the connection. */
void keeper_tell(int connection, bool released);

#endif
