/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_LOCK_SERVICE_H
#define DLOCK_LOCK_SERVICE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/err.h"
#include "lock/finding.h"
#include "lock/quorum.h"
#include "lock/record.h"
#include "lock/token.h"

/*
 * The interface between the concepts of a lock (lease, token, fence, holder, waiters) and the backend that stores it.
 *
 * Commands and supervision use only this header and know no service by name.  An operation blocks until its outcome is
 * certain or its time is over.  It ends early with ST_INTERRUPTED when a descriptor becomes readable (struct wait).
 *
 * A backend and everything it owns may be used by one thread at a time.
 */
struct backend;

enum {
	KEY_MAX = 1024, /* maximum length of a key in bytes, prefix included */
	SLOTS_MAX = 64
};

struct tls_options;
struct password;

/* The settings with which a backend is opened. */
struct service_config {
	int nodes;
	const char *url[NODES_MAX];
	struct password *password;	    /* for URLs without one; it outlives the backend */
	const char *sentinel_user;	    /* NULL: none */
	struct password *sentinel_password; /* NULL: none */
	const struct tls_options *tls;	    /* for URLs with TLS */
	int64_t node_timeout_ms;
	int replicas; /* this many replicas must also have a lock, within replicas_timeout_ms; 0: none */
	int64_t replicas_timeout_ms;
	struct log log;
};

/* The parameters of an acquire operation. */
struct acquire_args {
	const char *key;
	int64_t ttl_ms;
	int64_t min_hold_ms; /* the release may ask to keep the lock held for so long; 0: it will not */
	bool may_be_shorter; /* a shorter lease than ttl_ms will do, since it is renewed */
	struct wait wait;    /* for the lock; until_us 0: try once */
	const char *owner;
	const char *label;

	/*
	 * Holds that the caller claims to have on this lock.  The first valid one is used to enter the lock again.  If
	 * none is valid, the lock is acquired as usual, or, with must_hold, the operation is refused.  A fence is used
	 * only if a node confirms it.
	 */
	struct hold hold[HOLDS_MAX];
	int holds;
	bool must_hold;

	int64_t restart_guard_ms; /* a node with a shorter uptime grants nothing; 0: no guard */
	bool guard_if_known;	  /* a node with an unknown uptime grants locks nevertheless */

	/*
	 * 0: an exclusive lock.  Otherwise one of so many slots of the key, whose first prefix_length bytes are the
	 * prefix.  The name of the slot that was acquired is written to slot_key, which the lease then points to.
	 */
	int slots;
	size_t prefix_length;
	char *slot_key; /* KEY_MAX + 1 bytes */

	/* With other readers: a lock that is shared is entered, unless a writer waits before us.  Not with slots. */
	bool shared;

	/*
	 * Ask the holder to end, as ask() does, if the lock is refused.  Of several clients that do so the newest wins;
	 * the others get ST_HELD.  One that tries once counts only if it acquires the lock.
	 */
	bool replace;

	int history; /* number of holders that the history of the lock keeps, this one included; 0: it is not added */

	int max_waiters; /* if so many wait already, this one is refused at once, ST_HELD; 0: any number */

	/*
	 * Called during the wait with the current holder, or NULL if unknown, and how many wait before us, as far as
	 * known.  Returns the instant at which it must be called again; it may be called earlier.  It may look at
	 * locks.  NULL: no callback.
	 */
	int64_t (*waiting)(void *context, const struct holder *, int64_t before);
	void *context;

	struct holder *refused_by; /* set if the lock is refused and its holder is known; NULL: not wanted */
};

/* A lock that we hold, as known to us. */
struct lease {
	const char *key;
	const char *owner; /* as given to acquire; NULL if the token came from outside */
	const char *label;
	int slot;		/* its number, from 1; 0: it is no slot */
	char token[TOKEN_SIZE]; /* of our hold: the token of the lock, or a further hold on it */
	int64_t ttl_ms;
	int64_t sent_us;	/* when the requests that acquired it were sent */
	int64_t valid_until_us; /* the holder may use the lock until this instant */
	int64_t fence;		/* 0: unknown (the token came from outside) */
	const char *kept_by;	/* for release() with keep_ms: the option that asks for it; NULL: "min-hold" */
	const char *by;		/* for release(): the owner who breaks the lock, or who asked for its end; NULL: none */
	int nodes;
	int granted; /* number of nodes that had granted the lock when the outcome became certain */

	/*
	 * For release(), which records it in the history: an outcome of record.h, a blank, and the exit status of the
	 * command, or minus the signal that ended it, or "-" without a command.  NULL: "released -".
	 */
	const char *outcome;
	bool again; /* for release(): an earlier one of this hold failed, but may have been executed */
};

/* The owner of the lock now. */
enum ownership {
	OWNED,		 /* it was ours: renewed, or released as requested */
	OWNED_STILL,	 /* our hold has ended, other holds on the same lock have not */
	OWNED_NO_MORE,	 /* it was released or broken, but the lock isn't free yet */
	OWNED_BY_NOBODY, /* it has expired, or the key was removed */
	OWNED_BY_ANOTHER
};

enum {
	KEEP_NOTHING = -1
};

/* The result of a renewal. */
struct renewed {
	int64_t sent_us;	/* the renewed lease counts from this instant */
	int64_t valid_until_us; /* the holder may use the lock until this instant */
	enum ownership ownership;
	bool released; /* if it is not ours: it is known that its holder has released it, and that nobody broke it */
	char asked_by[OWNER_MAX + 1]; /* if it is ours: the one who asks the holder to end; "": nobody */
};

/* The facts to look for, as bits. */
enum {
	LOOK_STATE = 1,	    /* its state, its holders, who broke it last */
	LOOK_EXACT = 2,	    /* and exactly what each node holds, so that it can be broken: all nodes are waited for */
	LOOK_WAITERS = 4,   /* the waiters */
	LOOK_HISTORY = 8,   /* the earlier holders, if the service keeps a history */
	LOOK_LAST = 16,	    /* its state, and the newest of these that has ended: for very many locks, so alone */
	LOOK_COUNT_MAX = 24 /* locks at once */
};

/* The parameters of a look. */
struct look_args {
	unsigned int what;
	int count; /* of records */
	struct wait wait;
	const char *lost; /* the token of a lock that was lost: nodes that do not know it tell their uptime; or NULL */

	/*
	 * Called at most once, when all has been asked: there may be something to do while the nodes reply.  Or NULL.
	 */
	void (*meanwhile)(void *context);
	void *context;
};

/* The parameters of a break, and of asking the holder to end. */
struct break_args {
	const char *key;
	const struct holder *holder; /* of a record that was looked at for it */
	const char *by;		     /* the owner who does this, which is recorded */
};

/*
 * A service that can keep locks: all that the rest of dlock knows of it.  An operation may be NULL only where its
 * comment permits it.
 */
struct service {
	const char *name;
	const char *forms;					 /* of its URLs, for people */
	const char *default_url;				 /* of the first service: if no node is configured */
	const char *password_variable;				 /* beside DLOCK_PASSWORD; NULL: none */
	bool (*has_url)(const char *url);			 /* has this text its form? NULL: see services */
	enum status (*check_url)(const char *url, struct err *); /* ST_USAGE: not valid */
	bool (*token_valid)(const char *token);
	int token_length; /* of the token of a lock */

	/* Is it a token, or a hold, of a shared lock?  NULL: it has no shared locks. */
	bool (*token_shared)(const char *token);

	const char *why_single;	     /* the reason why it cannot be one of several nodes; NULL: it can */
	const char *why_no_replicas; /* the reason why --replicas is not for it; NULL: it is */
	bool fixed_ttl;		     /* a renewal cannot change the length of the lease */
	bool guards;		     /* it knows --restart-guard */
	bool keeps_history;

	/*
	 * The name of a slot of a key, whose first bytes are the prefix; slot 0: the name that has the waiters of all
	 * slots.  ST_USAGE: the key can have no slots.  NULL: it has no slots.
	 */
	enum status (*slot_key)(const char *key, size_t prefix, int slot, char name[KEY_MAX + 1], struct err *);

	/*
	 * Open it.  Connections are made when requests are sent.  ST_USAGE: a bad URL, or two URLs of the same server.
	 * ST_SYSTEM: out of memory.  Otherwise the status of tls_open(), if a URL needs TLS.  On failure *backend is
	 * NULL.
	 */
	enum status (*open)(const struct service_config *, struct backend **, struct err *);

	/*
	 * Acquire the lock; wait for it at most until wait.until_us.  ST_OK: the lease is filled in.  ST_HELD,
	 * ST_NO_QUORUM, ST_DENIED, ST_SYSTEM, ST_INTERRUPTED: the lock is not ours, and partial grants have been rolled
	 * back.  ST_NO: must_hold was set, and the hold to be entered again has ended.
	 */
	enum status (*acquire)(struct backend *, const struct acquire_args *, struct lease *, struct err *);

	/*
	 * Renew the lease for its full length, in one round within the limit.  ST_OK: OWNED, and the new length counts
	 * from sent_us.  ST_NO: a majority reports that the lock is not ours, and `ownership` says who owns it.  Any
	 * other status: the outcome is uncertain, and the lease is not worse off than before.  If ttl_ms of the lease
	 * is 0, the length with which the lock was acquired is used, and stored in ttl_ms.
	 */
	enum status (*renew)(struct backend *, struct lease *, const struct wait *, struct renewed *, struct err *);

	/*
	 * A descriptor that becomes readable when something has happened to the lock; -1: none.  It changes with each
	 * operation.  Call alerted() after each renewal, since what came with its replies makes nothing readable, and
	 * whenever the descriptor is readable.  True: renew soon.  NULL: the backend notices nothing.
	 */
	int (*alert_fd)(struct backend *);
	bool (*alerted)(struct backend *);

	/*
	 * NULL, or call it after a successful renewal.  It reads the replies that were still pending and restores the
	 * lock on the nodes that had lost it.  Returns when that is done, or at the limit.  Nothing depends on its
	 * success.  Its value is the instant at which the lease of another holder ends on a node, so that a renewal
	 * would restore it there; CLOCK_NEVER: none is known.
	 */
	int64_t (*heal)(struct backend *, const struct lease *, int64_t valid_until_us, const struct wait *);

	/*
	 * Release the lock on all nodes.  With keep_ms > 0 the lock stays held for that time and then expires.  With
	 * KEEP_NOTHING all holds on it end.  ST_OK: released now or earlier; ownership is OWNED or OWNED_STILL.
	 * ST_NO: the lock was not ours, and nothing has changed.
	 */
	enum status (*release)(struct backend *, const struct lease *, int64_t keep_ms, enum ownership *, struct err *);

	/*
	 * Look at locks: fill in what was asked for in each record, whose key is set, and its status: ST_OK; or
	 * ST_NO_QUORUM or ST_DENIED, with an error that has the reasons of the nodes.  State and history are known or
	 * not independently of each other; if both are asked for, the status is that of the state.  Returns ST_OK: all
	 * records are filled in.  ST_INTERRUPTED, ST_USAGE (two nodes are the same server), ST_SYSTEM: no record is.
	 * record_free() them in any case.  LOOK_LAST needs a service that keeps a history.
	 */
	enum status (*look)(struct backend *, const struct look_args *, struct record *, struct err *);

	/*
	 * Find the locks whose keys match a pattern, in which * ? [..] have a meaning and a \ takes it away; NULL: all
	 * locks of dlock.  Of what the look will ask for only LOOK_LAST counts: then these are locks of dlock only,
	 * also those that are free and have a history.  The names are sorted; the caller frees them in any case.  A
	 * matching key need not be a lock.  ST_NO_QUORUM, ST_DENIED: fewer than a majority of the nodes listed all
	 * their keys.
	 */
	enum status (
	    *list)(struct backend *, const char *pattern, const struct look_args *, struct names *, struct err *);

	/*
	 * Break the lock of one holder that a look for LOOK_EXACT recorded, on all nodes, and nothing else.  Waiters
	 * are served as after a release.  ST_OK: done.  ST_NO: that holder no longer holds the lock, and nothing has
	 * changed; *ownership says whether another one does.
	 */
	enum status (*break_holder)(struct backend *, const struct break_args *, enum ownership *, struct err *);

	/*
	 * Ask that holder, a dlock, to end: its next renewal learns of it.  It holds the lock until it has ended.
	 * ST_OK: it is asked, or has been before.  ST_NO: it no longer holds the lock.
	 */
	enum status (*ask)(struct backend *, const struct break_args *, enum ownership *, struct err *);

	/* Does each node reply?  The array has NODES_MAX entries.  Returns the number of nodes. */
	int (*probe)(struct backend *, struct probed *);

	/*
	 * Check whether the nodes are suitable for locks: collect what they show of themselves, try a lock, and add the
	 * findings.  ST_OK: no problem.  ST_NO: a finding is a warning or a failure.  ST_NO_QUORUM, ST_DENIED: no lock
	 * can be kept.
	 */
	enum status (*doctor)(struct backend *, struct findings *, struct err *);

	/* Close connections and free.  close(NULL) does nothing. */
	void (*close)(struct backend *);
};

/* The base of what open() returns; the service's own data follow it. */
struct backend {
	const struct service *service;
	bool tls; /* a server is reached by TLS */
};

/*
 * The services; NULL ends them.  The first one takes any URL that no other one has.  They stand in a file of their own,
 * so that a test can link its own.
 */
extern const struct service *const services[];

/* The service of a URL. */
const struct service *service_of(const char *url);

/* Is it a token of any service? */
bool service_has_token(const char *token);

/* The error of a lock that is not ours any more.  Returns ST_NO. */
enum status loss_error(enum ownership, struct err *);

#endif
