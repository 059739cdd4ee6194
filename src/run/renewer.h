/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_RUN_RENEWER_H
#define DLOCK_RUN_RENEWER_H
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "lock/keeper.h"
#include "lock/service.h"
#include "run/tether.h"

/*
 * The thread that keeps a lease alive.
 *
 * Who owns what: the service with its connections, and the keeper, are the thread's from renewer_start() to
 * renewer_stop(), and the caller's before and after.  The two share a renewer_state, copied under a mutex, which the
 * thread writes and the caller reads, the caller's alarm, which either sets under that mutex, two eventfds, and nothing
 * else.  The timers of the tether are set by the caller before renewer_start() and by the thread from then on; the caller
 * may switch them off.  The thread never touches the command: the caller ends it by its own clock, however long a round
 * takes.
 */
struct renewer; /* opaque */

struct renewer_state {
	int64_t valid_until_us;
	bool lost;	/* a majority says that the lock is not ours */
	struct err err; /* why the last round failed; "" if it didn't */
};

/* Prepare.  No thread is started yet.  NULL with errno set if the system refuses. */
struct renewer *renewer_new(struct service *, const struct lease *, const struct tether *);
void renewer_free(struct renewer *);

/* When the first renewal is due. */
int64_t renewer_due_us(const struct renewer *);

/* Start the thread.  0, or an errno: then nothing has changed and it can be tried again. */
int renewer_start(struct renewer *);

/* End the thread, if it runs, interrupting a round that is under way. */
void renewer_stop(struct renewer *);

/*
 * Set the caller's alarm: to fire at an instant at the latest, and so long before the end of validity (CLOCK_NEVER: not for
 * that).  A renewal that moves validity on moves the alarm with it, so that the caller isn't woken for what has passed.
 */
void renewer_set_alarm(struct renewer *, int alarm, int64_t at_us, int64_t lead_us);

/* Becomes readable when the state says something worse than before; reading the state clears it. */
int renewer_fd(const struct renewer *);
void renewer_read(struct renewer *, struct renewer_state *);

#endif
