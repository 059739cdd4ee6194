/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_LOCK_HOLDER_H
#define DLOCK_LOCK_HOLDER_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "lock/token.h"

/*
 * The holder of a lock, as one node reports it.  The texts come from the client that holds the lock: escape them for
 * output.
 */
enum {
	OWNER_MAX = 320, /* user@host:pid, and OWNER_OF_ACQUIRE */
	LABEL_MAX = 256
};

/* Follows the pid of an owner that took the lock by `acquire`: the process that called it, which may have ended. */
#define OWNER_OF_ACQUIRE "/acquire"

/* The same for `acquire --keep`: a keeper holds the lock until that process ends. */
#define OWNER_KEPT "/keep"

/* The last lock of this name that was broken. */
struct broken {
	int64_t ago_ms;
	char token[TOKEN_SIZE];	   /* "": none is known */
	char owner[OWNER_MAX + 1]; /* who broke it */
};

struct holder {
	char token[TOKEN_SIZE];	   /* complete for dlock, truncated for other clients; never print all of it */
	bool other_client;	   /* not dlock, or a dlock that stored no metadata */
	bool other_type;	   /* the key is not a string */
	char type[12];		   /* type of the key: "string", "hash" ...; already escaped */
	const char *client;	   /* the name of the other client; NULL: unknown; static */
	bool handover;		   /* released, and being handed over to the next waiter, or kept */
	bool kept;		   /* its command has ended, and the lock is kept by an option */
	int64_t ended_ms;	   /* how long ago it ended */
	char kept_by[16];	   /* the option, without dashes; "": unknown */
	char owner[OWNER_MAX + 1]; /* "" if unknown; other clients store no owner, label, held_ms, fence, holds */
	char label[LABEL_MAX + 1];
	int64_t left_ms; /* rest of the lease; -1: it never ends */
	int64_t ttl_ms;	 /* length of the lease; 0: unknown */
	int64_t held_ms; /* -1: unknown */
	int64_t fence;	 /* 0: unknown */
	int64_t holds;	 /* number of holds: more than one if the lock was entered again; 0: unknown */
	int64_t waiting; /* number of waiters, as far as known */
	struct broken broken;
};

struct text;

/* The length of an owner without OWNER_OF_ACQUIRE and OWNER_KEPT. */
size_t holder_owner_length(const char *owner);
bool holder_from_acquire(const struct holder *);
bool holder_is_kept(const struct holder *);

/*
 * Append "held by OWNER (LABEL), 24.3s of its lease left; held since 12:05:10, for 3m", or "kept until 12:05:10 (--min-hold);
 * LABEL on HOST ended 2s ago".  `held_by` replaces "held by ".
 */
void holder_describe_hold(const struct holder *, const char *held_by, struct text *);

/* The error of a lock that is held, in the same words.  Returns ST_HELD. */
enum status holder_error(const struct holder *, struct err *);

/*
 * Append "OWNER" to one text and " (LABEL)" to another one, or to the same, escaped.  An unknown owner is replaced by
 * `unknown`; an unknown label is left out.
 */
void holder_describe(const struct holder *, const char *unknown, struct text *owner, struct text *label);

/*
 * The name of the other client that holds a lock, judged by the format of its token: "redis-py", "node-redlock",
 * "redsync", "Redisson".  NULL if the holder is dlock or the format is unknown.  It is a guess: different clients may
 * use the same format.  The string is static.
 */
const char *holder_other_client(const struct holder *);

#endif
