/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_LOCK_RECORD_H
#define DLOCK_LOCK_RECORD_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/text.h"
#include "lock/quorum.h"
#include "lock/token.h"

/*
 * The holder of a lock, as one node reports it, or as most nodes do.  The texts come from the client that holds the
 * lock: escape them for output.
 */
enum {
	OWNER_MAX = 320, /* user@host:pid, and OWNER_OF_ACQUIRE */
	LABEL_MAX = 256,
	CLIENT_SIZE = 64,
	FINGERPRINT_SIZE = 48
};

/* Follows the pid of an owner that took the lock by `acquire`: the process that called it, which may have ended. */
#define OWNER_OF_ACQUIRE "/acquire"

/* The same for `acquire --keep`: a keeper holds the lock until that process ends. */
#define OWNER_OF_KEEPER "/keep"

enum lock_state {
	LOCK_FREE,
	LOCK_HELD,
	LOCK_SHARED,	   /* held by readers */
	LOCK_HANDOVER,	   /* released, and being handed over to the next waiter */
	LOCK_KEPT,	   /* the command has ended, and the lock is kept by an option */
	LOCK_OTHER_CLIENT, /* held by a client that is not dlock, or a dlock that stored no metadata */
	LOCK_CONTENDED,	   /* no token has a majority */
	LOCK_UNKNOWN	   /* not reported */
};

struct holder {
	enum lock_state state;	/* LOCK_FREE: nobody holds it */
	char token[TOKEN_SIZE]; /* complete for dlock, truncated for other clients; never print all of it */
	bool other_type;	/* the key is not a string */
	char type[12];		/* type of the key: "string", "hash" ...; already escaped */
	char client
	    [CLIENT_SIZE]; /* of another client what it probably is, by the names or tokens it makes; "": unknown */
	int64_t ended_ms;  /* LOCK_KEPT: the time since the end of its command */
	char kept_by[16];  /* and the option, without dashes; "": unknown */
	char owner[OWNER_MAX + 1]; /* "" if unknown; other clients store no owner, label, held_ms, fence, holds */
	char label[LABEL_MAX + 1];
	int64_t left_ms; /* rest of the lease; -1: it never ends */
	int64_t ttl_ms;	 /* length of the lease; 0: unknown */
	int64_t held_ms; /* -1: unknown */
	int64_t fence;	 /* 0: unknown */
	int64_t holds; /* number of holds: of the readers, or more than one if the lock was entered again; 0: unknown */
	bool writer_waits; /* known to a reader that stands behind it */
	int64_t waiting;   /* number of waiters, as far as known */

	/*
	 * Identifies the exact value of the key, if that was asked for; "-": it is too large for a lock; "": unknown.
	 */
	char fingerprint[FINGERPRINT_SIZE];
	int nodes; /* that report this holder */
};

/* A break of a lock. */
struct broken {
	int64_t ago_ms;
	char token[TOKEN_SIZE];	   /* "": none is known */
	char owner[OWNER_MAX + 1]; /* the owner who broke it */
};

/*
 * An earlier holder.  Times are milliseconds since 1970, by the clocks of the nodes.
 *
 * Outcomes: "ran" (the command of dlock run ended), "lost", "max-run", "asked" (it was ended since somebody asked for
 * that), "exec-failed" (it could not be started), "released" (by its token), "broken", "expired" (nobody released it)
 * and "held" (not ended yet).
 */
enum {
	OUTCOME_MAX = 16,
	HISTORY_DEFAULT = 20
};

/* The end of a command: its exit status, or minus the signal that ended it. */
struct command_end {
	bool is; /* there was a command */
	int status;
};

/* When something happened; 0: never, or unknown. */
struct event {
	int64_t at_ms;
	int64_t age_ms; /* the time since then, by the clock of the node that recorded it */
};

struct former {
	char token[TOKEN_SIZE];
	char outcome[OUTCOME_MAX];
	struct command_end command;
	int64_t start_ms;
	int64_t end_ms;	      /* -1: unknown, or not ended */
	int64_t ended_ago_ms; /* by the clock of the node that recorded it; -1: unknown, or not ended */
	int64_t held_ms;      /* so far, if it has not ended; -1: unknown */
	int64_t waited_ms;
	int64_t fence;
	char owner[OWNER_MAX + 1];
	char label[LABEL_MAX + 1];
	char by[OWNER_MAX + 1]; /* the owner who broke it, or asked for its end; "": nobody */
	int nodes;		/* number of nodes that know it */
	int votes;		/* of the nodes for this outcome, private */
};

struct waiter {
	char id[TOKEN_SIZE];
	int64_t since_ms; /* by the clock of the waiter */
	char owner[OWNER_MAX + 1];
	char label[LABEL_MAX + 1];
	int node;     /* the first node that knows it, */
	size_t place; /* and its place in the queue there */
};

/* The report of a node about a lock. */
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
	int agreeing;	      /* number of nodes that agree on `state` */
	int answered;	      /* number of nodes that replied, errors included */
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

/* The length of an owner without OWNER_OF_ACQUIRE and OWNER_OF_KEEPER. */
size_t holder_owner_length(const char *owner);
bool holder_from_acquire(const struct holder *);
bool holder_has_keeper(const struct holder *);

/* Was it released, so that the lock is only kept, or being handed over? */
bool holder_has_ended(const struct holder *);

/* The client that holds the lock: "dlock", or what another one probably is; "": nobody, or unknown. */
const char *holder_client(const struct holder *);

/* The parts of the sentence about a holder, for those who may have no room for all of it. */
enum {
	HOLDER_LEAD,
	HOLDER_OWNER,
	HOLDER_LABEL,
	HOLDER_SINCE,
	HOLDER_LEFT,
	HOLDER_PARTS
};

/*
 * Append "held by OWNER (LABEL), 24.3s of its lease left; held since 12:05:10, for 3m", each part to its text, or as
 * one of them, HOLDER_LABEL, "kept until 12:05:10 (--min-hold); LABEL on HOST ended 2s ago".  `lead` replaces "held by
 * ".
 */
void holder_describe(const struct holder *, const char *lead, struct text *const part[HOLDER_PARTS]);

/* The words before the first holder of so many slots, if each is held; 0: "held by ", as of an exclusive lock. */
enum {
	HOLDER_LEAD_SIZE = 80
};
const char *holder_lead(int slots, char lead[HOLDER_LEAD_SIZE]);

/* Append all of it to one text. */
void holder_say(const struct holder *, const char *lead, struct text *);

/* The error of a lock that is held, or of so many slots, in the same words.  Returns ST_HELD. */
enum status holder_error(const struct holder *, int slots, struct err *);

/* Put before it that so many wait already, and no more may (--max-waiters).  Returns ST_HELD. */
enum status holder_crowded(int64_t waiters, int most, struct err *);

/* The word for a state. */
const char *record_state(enum lock_state);

/* The holder of the lock; an empty one, LOCK_FREE, if there is none. */
const struct holder *record_holder(const struct record *);

/*
 * Merge what N nodes say of the holder; the caller has filled in `nodes`, and the state and the remaining time of each.
 * The merge adds what a majority agrees on: the state, the holder, and the time that is certainly left, which is what a
 * majority still grants.  The fence is set only if a majority knows it.
 *
 * Returns false, with the state unknown, if fewer than a majority of the nodes reported a state.
 */
bool record_merge(struct record *, const struct holder said[NODES_MAX]);

/* Note a break that a node knows of; the last one counts. */
void record_note_break(struct record *, const struct broken *);

/* The newest earlier holder that has ended; NULL: none is known. */
const struct former *record_last(const struct record *);

/* Did it end as it should: its command with exit status 0, or, without a command, by a release? */
bool former_succeeded(const struct former *);

void record_free(struct record *);

#endif
