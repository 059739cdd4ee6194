/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_LOCK_RECORD_H
#define DLOCK_LOCK_RECORD_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "lock/history.h"
#include "lock/holder.h"
#include "lock/quorum.h"

/* What a node says about a lock. */
struct node_view {
	const char *name; /* owned by the backend */
	enum lock_state state;
	int64_t left_ms;
	int64_t up_s;	      /* one more than its uptime; 0: unknown, see struct look_args */
	struct reason reason; /* why it is not known, for LOCK_UNKNOWN */
};

/*
 * A lock as it is seen: the operation look() of a service fills in as much as is asked for, and all output about locks
 * prints it.  It is zeroed, apart from the key, before it is filled in; free what it contains with record_free().
 */
struct record {
	const char *key;    /* set by whoever looks */
	enum status status; /* ST_OK: it is known what was asked for; otherwise why not, as in `err` */
	struct err err;

	/* The state, as a majority of the nodes reports it. */
	enum lock_state state;
	struct holder holder[NODES_MAX]; /* one, if it has a holder; of a contended lock all whom nodes report */
	int holders;
	int nodes;
	int agreeing;	      /* how many nodes agree on `state` */
	int answered;	      /* how many nodes replied, errors included */
	bool hidden;	      /* it is unknown because this user may not read its keys */
	struct broken broken; /* the last one that any node knows of, whatever the state is now */
	struct node_view node[NODES_MAX];

	/* The history, and who waits. */
	struct former *former; /* the newest first */
	size_t formers, former_room;
	struct waiter *waiter; /* in the order of the queue */
	size_t waiters, waiter_room;
	struct event success;	    /* the end of the last command that succeeded (exit status 0) */
	struct event run;	    /* the end of the last command */
	struct command_end run_end; /* with the exit status of its dlock run */
};

/* The word for a state. */
const char *record_state(enum lock_state);

/* Does the lock have a holder? */
bool record_is_held(const struct record *);

/* Its holder; an empty one if there is none. */
const struct holder *record_holder(const struct record *);

/*
 * Merge what N nodes say of the holder; the caller has filled in `nodes`, and the state and the remaining time of each.  The
 * merge adds what a majority agrees on: the state, the holder, and the time that is certainly left, which is what a
 * majority still grants.  The fence is set only if a majority knows it.
 *
 * Returns false, with the state unknown, if fewer than a majority of the nodes reported a state.
 */
bool record_merge(struct record *, const struct holder said[NODES_MAX]);

/* Note a break that a node knows of; the last one counts. */
void record_note_break(struct record *, const struct broken *);

void record_free(struct record *);

#endif
