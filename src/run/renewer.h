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
 * The thread that renews a lease.
 *
 * Ownership: the service with its connections, and the keeper, belong to the thread from renewer_start() to
 * renewer_stop(), and to the caller before and after.  They share only a renewer_state, which the thread writes and the
 * caller reads under a mutex; the alarm of the caller, which both set under that mutex; and two eventfds.  The timers
 * of the tether are set by the caller before renewer_start() and by the thread from then on; the caller may disarm
 * them.  The thread never touches the command: the caller ends it by its own clock, however long a round takes.
 */
struct renewer; /* opaque */

struct renewer_state {
	int64_t valid_until_us;
	bool lost;	/* a majority says that this token does not hold the lock */
	struct err err; /* why the last round failed; "" if it succeeded */
};

/* Allocate; the thread is not started yet.  NULL with errno set on a system error. */
struct renewer *renewer_new(struct service *, const struct lease *, const struct tether *);
void renewer_free(struct renewer *);

/* When the first renewal is due. */
int64_t renewer_due_us(const struct renewer *);

/* Start the thread.  Returns 0 or an errno; after an errno nothing has changed, and it can be called again. */
int renewer_start(struct renewer *);

/* End the thread, if it runs; a round in progress is interrupted. */
void renewer_stop(struct renewer *);

/*
 * Set the alarm of the caller: it fires at the instant at_us, or lead_us before the end of validity if that is earlier
 * (CLOCK_NEVER: at at_us only).  A renewal that extends validity moves the alarm as well, so that the caller is not
 * woken needlessly.
 */
void renewer_set_alarm(struct renewer *, int alarm, int64_t at_us, int64_t lead_us);

/* Becomes readable when a renewal has failed; reading the state clears it. */
int renewer_fd(const struct renewer *);
void renewer_read(struct renewer *, struct renewer_state *);

#endif
