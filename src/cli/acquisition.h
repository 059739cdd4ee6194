/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_CLI_ACQUISITION_H
#define DLOCK_CLI_ACQUISITION_H
#include "base/json.h"
#include "cli/setup.h"
#include "run/signals.h"
#include "run/supervisor.h"

/*
 * Acquiring the lock of KEY, as run and acquire do.
 */
struct acquisition {
	struct holder holder;  /* the holder of the lock, if it was refused; token "": unknown */
	int64_t waited_us;     /* for the lock, with the nodes */
	char key[KEY_MAX + 1]; /* the full key */
	char slot_key[KEY_MAX + 1];
	char owner[OWNER_MAX + 1];
	struct acquire_args args;
	struct backend *backend;
	struct signals signals;
	struct lease lease; /* of the lock; it points into this struct */
};

/*
 * Prepare it from the command line, and watch for signals.  Call acquisition_close() whatever is returned.
 */
enum status acquisition_open(struct acquisition *, struct invocation *, struct err *);

/*
 * Acquire the lock.  Meanwhile a terminal on standard error shows a status line, unless --verbose is given; elsewhere
 * there are lines when the wait begins, each minute, and when the lock is acquired.  --quiet omits both.
 * ST_INTERRUPTED: died_of of the invocation is set.  See also acquire() of the backend; the message names KEY.
 */
enum status acquisition_acquire(struct acquisition *, struct invocation *, struct err *);

/*
 * Supervise what the lock is held for, with the plan completed from the command line.  See supervise(); the lock is
 * released in any case.
 */
enum status acquisition_supervise(struct acquisition *, const struct invocation *, struct supervision *,
    struct supervised *, struct err *);

/* The name of the lock, without the prefix: KEY, or once it is acquired that of the slot. */
const char *acquisition_name(const struct acquisition *, const struct invocation *);

/* The same as a member "key", and "slot" and "slots" if there are any. */
void acquisition_json(const struct acquisition *, const struct invocation *, struct json *);

/* Close the backend. */
void acquisition_close(struct acquisition *);

#endif
