/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_REDIS_OPERATIONS_H
#define DLOCK_REDIS_OPERATIONS_H
/*
 * What the files of the Redis service share: one operation of lock/service.h each.
 */
#include "lock/service.h"
#include "redis/answer.h"
#include "redis/debts.h"
#include "redis/fleet.h"

/* -- A round about one token: renew, release -------------------------------- */

/* The answers to a script that says 1 (ours), 2 (ours still), 0 (another's) or -1 (nobody's), from every node. */
struct round {
	const struct request *request;
	const struct request *again; /* what is sent instead, where the same was sent before; NULL: the same */
	unsigned int tag;
	struct ballot ballot; /* yes: ours; no: not ours, whoever has it now */
	enum ownership owner[NODES_MAX];
	int64_t server_ms[NODES_MAX]; /* the server's time of day, where the script tells it */
	int64_t ttl_ms[NODES_MAX];    /* the lease's length, likewise */
	int64_t fence[NODES_MAX];     /* likewise */
	int64_t heard_us[NODES_MAX];  /* when it was told */
	bool resent[NODES_MAX];	      /* once, after a connection broke on which it was sent */
	char holds[4096];	      /* what the nodes told of a lock that was entered again, one behind the other */
	struct fault fault[NODES_MAX];
};

/* The last renewal, which healing goes on with. */
struct renewal {
	struct names names;
	struct request request;
	struct round round;
	unsigned int heal_tag; /* 0: none sent */
	bool healing[NODES_MAX];
};

struct redis_service {
	struct service base; /* first: a struct service * is converted to this */
	struct fleet fleet;
	struct tls_context *tls; /* NULL: no node wants it */
	struct debts debts;
	bool distinct;		 /* no two nodes are the same server, as far as they have told */
	struct renewal *renewal; /* NULL before the first one: a short run needs none */
};

/* Send the request, which must outlive the round, to all nodes. */
void round_start(struct round *, struct redis_service *, const struct request *);

/* An answer has come.  True if it was one to this round. */
bool round_deliver(struct round *, struct redis_service *, int node, const struct delivery *);

/* Wait for one more thing to happen; see fleet_turn(). */
enum fleet_event round_turn(struct round *, struct redis_service *, int64_t until_us, int interrupt_fd);

/* Has every node answered that wasn't silent in the round before? */
bool round_heard(const struct round *);

/* Has the lock ended with this hold, on a majority of the nodes? */
enum ownership round_released(const struct round *);

/* Whose the lock is, by most of the nodes that answered "not ours". */
enum ownership round_ownership(const struct round *);

/* The time for answers is over: remember who was silent. */
void round_close(struct round *, struct redis_service *);

/* -- The operations --------------------------------------------------------- */

/* Enter a lock again by one of the claim's holds; see service_ops.acquire.  ST_NO: none of them holds it. */
enum status redis_reenter(struct redis_service *, const struct claim *, int interrupt_fd, struct lease *, struct err *);

enum status redis_acquire(struct service *, const struct claim *, int interrupt_fd, struct lease *, struct err *);
enum status redis_renew(struct service *, struct lease *, int64_t until_us, int interrupt_fd, int64_t *sent_us,
    enum ownership *, struct err *);
void redis_heal(struct service *, const struct lease *, int64_t valid_until_us, int64_t until_us, int interrupt_fd);
enum status redis_release(struct service *, const struct lease *, int64_t keep_ms, enum ownership *, struct err *);
enum status redis_survey(struct service *, const char *const *keys, int count, int interrupt_fd, survey_tell *,
    void *context, struct err *);
enum status redis_list(struct service *, const char *pattern, int interrupt_fd,
    bool (*tell)(void *context, const char *key), void *context, struct err *);
enum status redis_pin(struct service *, const char *key, struct pinned *, struct err *);
enum status redis_force(struct service *, const char *key, const struct pinned_side *, enum ownership *, struct err *);
int redis_examine(struct service *, bool all, struct node_facts *);

#endif
