/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_ZK_BACKEND_H
#define DLOCK_ZK_BACKEND_H
#include "lock/finding.h"
#include "lock/service.h"
#include "zk/entry.h"
#include "zk/session.h"

/* Locks on ZooKeeper: one ensemble, of which the first URL names servers. */
extern const struct service zk_service;

/* Shared by the files of the ZooKeeper backend, each of which implements one operation of lock/service.h. */
struct zk_backend {
	struct backend base; /* first: a struct backend * is converted to this */
	struct zk_url url;
	struct tls_context *tls; /* NULL: not used */
	struct log log;
	int64_t node_timeout_us;
	struct session session, look; /* the second one only looks */
	char server_name[ZK_SERVERS_MAX][ZK_SERVER_SIZE];
	struct entry entry; /* of the lock that the session holds or waits for */
	struct entry mutex; /* of the slots, while one is waited for */
	bool asked;	    /* a renewal has said that somebody asks the holder to end */
};

/*
 * Make the session and the entry those of a token.  False, with ST_USAGE in *err: it is no token.  A session that is
 * the one of the token already keeps its connection.
 */
bool zk_adopt(struct zk_backend *, const struct lease *, struct err *);

/* The lease of our hold on the lock of the session. */
void zk_fill_lease(struct zk_backend *, const struct acquire_args *, struct lease *);

/* -- Errors ----------------------------------------------------------------- */

/* The error of an operation that failed, as a status and a sentence. */
enum status zk_error(const struct zk_backend *, enum zk_code, struct err *);

/* -- Steps of operations ---------------------------------------------------- */

/*
 * Read the reply to getData of a contender's node, or NULL for one that we may not read: the holder; *made_ms, when the
 * node was made by the clock of the leader; if it is not NULL, the number of the slot.  False: the reply is malformed.
 */
bool zk_read_holder(const char *name, struct wire_in *body, struct holder *, int64_t *made_ms, int64_t *slot);

/* So many entries hold the lock together, if they are readers. */
void zk_hold_together(struct holder *, const char *name, int64_t holders);

/*
 * A session that only looks: z->look, which is made if there is none, and serves the next look, too.  Call
 * zk_look_end() in any case, with the outcome: a failure ends the session, and its reason is noted for zk_error().
 */
enum zk_code zk_look_begin(struct zk_backend *, const struct wait *);
void zk_look_end(struct zk_backend *, enum zk_code);

/* May everybody delete the nodes of this lock, or make a node below the chroot before we do? */
bool zk_is_unguarded(struct session *, const char *lock, const struct wait *);

/* The owner of a lock that is not ours any more.  OWNED_NO_MORE: ours is only kept. */
enum ownership zk_look_owner(struct zk_backend *, const char *key);

/* A request to the client of a node to end. */
struct zk_request {
	const char *by;
	bool to_waiter; /* only if that client replaces others, too, and waits */
	bool again;	/* only if it was asked before; ZK_NO_NODE otherwise */
};

/* Note it in the data of the node, if that is dlock's.  ZK_NO_NODE: it is gone, or the lock is only kept. */
enum zk_code zk_ask_node(struct session *, const char *path, const struct zk_request *, const struct wait *);

/* -- The operations --------------------------------------------------------- */

enum status zk_slot_key(const char *key, size_t prefix, int slot, char name[KEY_MAX + 1], struct err *);
enum status zk_acquire(struct backend *, const struct acquire_args *, struct lease *, struct err *);
enum status zk_renew(struct backend *, struct lease *, const struct wait *, struct renewed *, struct err *);
int zk_alert_fd(struct backend *);
bool zk_alerted(struct backend *);
enum status zk_release(struct backend *, const struct lease *, int64_t keep_ms, enum ownership *, struct err *);
/* Of the history only who waits: ZooKeeper keeps none. */
enum status zk_look(struct backend *, const struct look_args *, struct record *, struct err *);
enum status zk_list(struct backend *, const char *pattern, const struct look_args *, struct names *, struct err *);
enum status zk_break(struct backend *, const struct break_args *, enum ownership *, struct err *);
enum status zk_ask(struct backend *, const struct break_args *, enum ownership *, struct err *);
int zk_probe(struct backend *, struct probed *);
enum status zk_doctor(struct backend *, struct findings *, struct err *);

/* -- Doctor ----------------------------------------------------------------- */

/* Doctor's view of a server of an ensemble. */
struct zk_facts {
	struct probed probed;
	char version[24];		   /* "": unknown */
	char role[16];			   /* "leader", "follower", "standalone", "looking"; "": unknown */
	int64_t ttl_least_ms, ttl_most_ms; /* the lengths of leases that it grants */
	int64_t members;		   /* the number of servers that vote; negative: unknown */
	bool unguarded;			   /* there is a password, and everybody may make nodes in the chroot */
	bool stranger;			   /* it does not know a session that the first server that is up has made */
};

/* Add all findings about the servers: the checks, without what sends requests. */
void zk_doctor_judge(const struct zk_facts *, struct findings *);

#endif
