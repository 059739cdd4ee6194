/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_RUN_KEEPALIVE_H
#define DLOCK_RUN_KEEPALIVE_H
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "lock/lease.h"
#include "lock/service.h"
#include "run/death_pipe.h"
#include "run/policy.h"

/*
 * The thread that renews a lease.
 *
 * Ownership: the backend with its connections, and the renewal schedule, belong to the thread from keepalive_start() to
 * keepalive_stop(), and to the caller before and after.  They share only a keepalive_state, which the thread writes and
 * the caller reads under a mutex; the alarm of the caller, which both set under that mutex; and two eventfds.  The
 * timers of the death pipe are set by the caller before keepalive_start() and by the thread from then on; the caller
 * may disarm them.  The thread never touches the command: the caller ends it by its own clock, however long a round
 * takes.
 */
struct keepalive_state {
	int64_t valid_until_us;
	bool lost;		      /* a majority says that this token does not hold the lock */
	bool released;		      /* it was released by its holder, see struct renewed */
	char asked_by[OWNER_MAX + 1]; /* the owner who asked the holder to end; "": nobody has */
	struct err err;		      /* why the last round failed; "" if it succeeded */
	int64_t failed_since_us;      /* when the first of the failed rounds began; 0: the last round succeeded */
	int64_t outage_us;	      /* duration of the last failures until a round succeeded */
};

/* Private, but for what is said to be for the caller. */
struct keepalive {
	struct backend *backend;
	struct lease lease;
	const struct death_pipe *death_pipe;
	struct lease_schedule schedule; /* for the caller before keepalive_start(): when the first renewal is due */
	int64_t margin_us;
	pthread_t thread;
	bool running;
	/* Opened with the thread, which most short commands never need: */
	int alarm;   /* the thread's clock; -1: none yet */
	int stop_fd; /* to the thread */
	int news_fd; /* for the caller: readable if a renewal failed, or succeeded after a failure, or if somebody asks */
	pthread_mutex_t mutex;
	/* under the mutex: */
	struct keepalive_state state;
	int callers_alarm; /* -1: none yet */
	int64_t alarm_at_us;
	struct policy policy; /* a copy of the caller's */
};

/*
 * Begin; the thread is not started yet.  margin_us before the end of validity the caller begins to end the command:
 * from then on no renewal is begun, so that a dlock that was stopped until then does not go on.
 */
void keepalive_open(struct keepalive *, struct backend *, const struct lease *, int64_t margin_us,
    const struct death_pipe *);
void keepalive_close(struct keepalive *);

/*
 * While the thread does not run: a descriptor that becomes readable when something has happened to the lock; then start
 * the thread, which looks.  -1: there is none.
 */
int keepalive_alert_fd(const struct keepalive *);

/* Start the thread.  Returns 0 or an errno; after an errno nothing has changed, and it can be called again. */
int keepalive_start(struct keepalive *);

/* End the thread, if it runs; a round in progress is interrupted.  It can be started again. */
void keepalive_stop(struct keepalive *);

/*
 * Set the alarm of the caller: it fires at the instant at_us, or when the policy has something to do if that is
 * earlier.  A renewal that extends validity moves the alarm as well, so that the caller is not woken needlessly.
 */
void keepalive_set_alarm(struct keepalive *, int alarm, int64_t at_us, const struct policy *);

/* Also clears news_fd. */
void keepalive_read(struct keepalive *, struct keepalive_state *);

#endif
