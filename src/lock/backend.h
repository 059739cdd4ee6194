/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_LOCK_BACKEND_H
#define DLOCK_LOCK_BACKEND_H
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/log.h"
#include "base/reason.h"
#include "lock/holder.h"
#include "lock/node_facts.h"
#include "lock/quorum.h"
#include "lock/token.h"

/*
 * The boundary between what a lock means (lease, token, fence, holder, waiters) and the service that keeps it.
 *
 * Commands and supervision know this header and nothing of Redis; another service (ZooKeeper, say) implements the
 * same operations.  An operation blocks until its outcome is certain or its time is over; a descriptor that
 * becomes readable (`interrupt_fd`, -1 for none) ends it early with ST_INTERRUPTED.
 *
 * A service and all it owns belong to one thread at a time.
 */
struct backend;

enum {
	KEY_MAX = 1024,	 /* bytes of a key, with its prefix */
	STATUS_MAX = 32, /* locks that are looked at together */
	FINGERPRINT_SIZE = 48,
	HOLD_ARGS = 2
};

/* What somebody who wants a lock says. */
struct acquire_args {
	const char *key;
	int64_t ttl_ms;
	int64_t wait_until_us; /* 0: try once; CLOCK_NEVER: without end */
	const char *owner;
	const char *label;

	/* Holds on the lock that the caller says to have, to enter it again by the first that is one.  If none is, this is a
	 * claim as any other, or, with must_hold, refused. */
	struct hold_arg {
		const char *token;
		int64_t fence; /* 0: not known; it counts only where a node confirms it */
	} hold[HOLD_ARGS];
	int holds;
	bool must_hold;

	int64_t restart_guard_ms; /* a node up for less grants nothing; 0: no guard */
	bool guard_if_told;	  /* a node that can't tell for how long it has been up grants all the same */

	/* Told now and then while the claim waits: for whom, as far as known (else NULL).  NULL: tell nobody. */
	void (*waiting)(void *context, const struct holder *);
	void *context;
};

/* A lock that is held, as its holder knows it. */
struct lease {
	const char *key;
	const char *owner; /* of the claim; NULL for a token that came from outside */
	const char *label;
	char token[HOLD_SIZE]; /* of our hold: the lock's token, or a further hold on it */
	int64_t ttl_ms;
	int64_t sent_us;	/* when the requests that won it were sent */
	int64_t valid_until_us; /* the holder may act until then */
	int64_t fence;		/* 0: unknown (a token that came from outside) */
	int nodes;
	int granted; /* so many of them had said yes when it was certain */
};

/* Whose is the lock now? */
enum ownership {
	OWNED,		 /* ours: renewed, or given back as asked */
	OWNED_STILL,	 /* our hold has ended, others of the same lock have not */
	OWNED_NO_MORE,	 /* it was given back, or broken, though the lock isn't free yet */
	OWNED_BY_NOBODY, /* it has expired, or somebody removed it */
	OWNED_BY_ANOTHER
};

enum lock_state {
	LOCK_FREE,
	LOCK_HELD,
	LOCK_HANDOVER,
	LOCK_OTHER_CLIENT, /* held by a client that is not dlock */
	LOCK_CONTENDED,	   /* no token has a majority */
	LOCK_UNKNOWN	   /* the node didn't tell */
};

/* What status shows of one lock. */
struct lock_status {
	enum lock_state state;
	struct holder holder; /* meaningful unless free, contended or unknown */
	int nodes;
	int agreeing; /* nodes that say what `state` says */
	int answered; /* nodes that answered anything, errors included */
	struct {
		const char *name; /* belongs to the service */
		enum lock_state state;
		int64_t left_ms;
		struct reason reason; /* for LOCK_UNKNOWN */
	} node[NODES_MAX];
};

enum {
	KEEP_NOTHING = -1
};

/* What breaking a lock is about: whoever holds it on some of the nodes, exactly. */
struct break_side {
	struct holder holder;
	char fingerprint
	    [FINGERPRINT_SIZE]; /* tells what the key holds from anything else; "" if it is too large for a lock */
	int nodes;
};

/* A lock that was pinned down; the sides are those of a majority, or all where nobody has one. */
struct break_plan {
	struct lock_status view;
	struct break_side side[NODES_MAX];
	int sides;
};

/* How long a call may take.  What has been decided when it ends counts. */
struct limit {
	int64_t until_us; /* CLOCK_NEVER: as long as the service lets it */
	int interrupt_fd; /* it ends early when this becomes readable; -1: never */
};

/* What a renewal has come to. */
struct renewed {
	int64_t sent_us; /* from when the new length counts */
	enum ownership ownership;
};

typedef void status_tell(void *context, const char *key, const struct lock_status *, enum status, const struct err *);

/* Locks that are looked at together. */
struct status_args {
	const char *const *keys;
	int count; /* INSPECT_MAX at the most */
	int interrupt_fd;
	status_tell *tell;
	void *context;
};

/* Locks that are looked for. */
struct list_args {
	const char *pattern; /* as Redis's KEYS takes it; NULL: every lock that dlock keeps */
	int interrupt_fd;
	bool (*tell)(void *context, const char *key); /* may use the service; false: it wants to hear no more */
	void *context;
};

struct backend_ops {
	/*
	 * Take the lock, waiting as long as the claim says.  ST_OK fills the lease.  ST_HELD, ST_NO_QUORUM, ST_DENIED,
	 * ST_SYSTEM, ST_INTERRUPTED: it is not ours, and what was granted by a part of the nodes has been given back.
	 * ST_NO: the hold that was to be entered again has ended.
	 */
	enum status (
	    *acquire)(struct backend *, const struct acquire_args *, int interrupt_fd, struct lease *, struct err *);

	/*
	 * Give the lease its full length again, in one round within the limit.  ST_OK: OWNED, and
	 * sent_us says from when the new length counts.  ST_NO: a majority says that it is not ours, and `ownership`
	 * whose it is.  Anything else: not certain, nothing about the lease has changed for the worse.  A lease whose ttl_ms is
	 * 0 gets the length that the lock was taken with, and is told it.
	 */
	enum status (*renew)(struct backend *, struct lease *, const struct limit *, struct renewed *, struct err *);

	/*
	 * After a renewal that succeeded: hear the nodes that hadn't answered by then, and give the lock back to those that
	 * had lost it.  Returns when that is done, or at the limit; nothing depends on its success.
	 */
	void (*heal)(struct backend *, const struct lease *, int64_t valid_until_us, const struct limit *);

	/*
	 * Give the lock back on all nodes; with keep_ms > 0 it stays taken for so much longer and then expires; with
	 * KEEP_NOTHING all holds end.  ST_OK: done, also if it had been done before, OWNED or OWNED_STILL.  ST_NO: it wasn't
	 * ours; nothing has changed.
	 */
	enum status (*release)(struct backend *, const struct lease *, int64_t keep_ms, enum ownership *, struct err *);

	/*
	 * Look at so many locks at once, at most INSPECT_MAX, and tell each in the order of the keys with a status of its own:
	 * ST_OK, the view is complete; ST_NO_QUORUM, ST_DENIED, with a sentence in which its nodes say why.  ST_OK: all were
	 * told.  ST_INTERRUPTED, ST_USAGE (two nodes are the same server), ST_SYSTEM: none was.
	 */
	enum status (*status)(struct backend *, const struct status_args *, struct err *);

	/*
	 * Find the locks whose keys match a pattern as Redis's KEYS takes it, NULL for every lock that dlock keeps.  Each is
	 * told once, in order, when all are found; `tell` may use the service, and returns false to hear no more.  A key that
	 * matches may hold no lock.  ST_NO_QUORUM, ST_DENIED: not all nodes of a majority told.
	 */
	enum status (*list)(struct backend *, const struct list_args *, struct err *);

	/*
	 * Look at a lock and pin down exactly what its nodes hold, so that force() breaks that and nothing else.  Status and
	 * view as those that survey tells.
	 */
	enum status (*pin)(struct backend *, const char *key, struct break_plan *, struct err *);

	/*
	 * Take a lock from one of the sides that were pinned down, on all nodes, whoever that is.  The waiters are served as by a
	 * release.  ST_OK: done.  ST_NO: that side doesn't hold it any more, and nothing has changed; *ownership says whether
	 * another does.
	 */
	enum status (
	    *force)(struct backend *, const char *key, const struct break_side *, enum ownership *, struct err *);

	/*
	 * Ask each node how it is: whether and how fast it answers, and, if all is asked, all of struct node_facts.  What is
	 * wrong with a node stands with it.  The facts have room for NODES_MAX; returns how many nodes there are.
	 */
	int (*probe)(struct backend *, bool all, struct node_facts *);

	/* Close connections and free.  close(NULL) does nothing. */
	void (*close)(struct backend *);
};

struct backend {
	const struct backend_ops *ops;
};

#endif
