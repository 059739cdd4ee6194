/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_LOCK_HOLDER_H
#define DLOCK_LOCK_HOLDER_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/text.h"
#include "lock/token.h"

/*
 * The holder of a lock, as one node reports it, or as most nodes do.  The texts come from the client that holds the lock:
 * escape them for output.
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
	int64_t ended_ms;  /* LOCK_KEPT: how long ago its command ended */
	char kept_by[16];  /* and the option, without dashes; "": unknown */
	char owner[OWNER_MAX + 1]; /* "" if unknown; other clients store no owner, label, held_ms, fence, holds */
	char label[LABEL_MAX + 1];
	int64_t left_ms; /* rest of the lease; -1: it never ends */
	int64_t ttl_ms;	 /* length of the lease; 0: unknown */
	int64_t held_ms; /* -1: unknown */
	int64_t fence;	 /* 0: unknown */
	int64_t holds;	 /* number of holds: more than one if the lock was entered again; 0: unknown */
	int64_t waiting; /* number of waiters, as far as known */

	/* Identifies the exact value of the key, if that was asked for; "-": it is too large for a lock; "": unknown. */
	char fingerprint[FINGERPRINT_SIZE];
	int nodes; /* that report this holder */
};

/* A break of a lock. */
struct broken {
	int64_t ago_ms;
	char token[TOKEN_SIZE];	   /* "": none is known */
	char owner[OWNER_MAX + 1]; /* who broke it */
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
 * Append "held by OWNER (LABEL), 24.3s of its lease left; held since 12:05:10, for 3m", each part to its text, or as one of
 * them, HOLDER_LABEL, "kept until 12:05:10 (--min-hold); LABEL on HOST ended 2s ago".  `lead` replaces "held by ".
 */
void holder_describe(const struct holder *, const char *lead, struct text *const part[HOLDER_PARTS]);

/* Append all of it to one text. */
void holder_say(const struct holder *, const char *lead, struct text *);

/* The error of a lock that is held, in the same words.  Returns ST_HELD. */
enum status holder_error(const struct holder *, struct err *);

#endif
