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

struct redis_service {
	struct service base; /* first: a struct service * is converted to this */
	struct fleet fleet;
	struct debts debts;
};

enum status redis_acquire(struct service *, const struct claim *, int interrupt_fd, struct lease *, struct err *);
enum status redis_renew(struct service *, const struct lease *, int64_t until_us, int interrupt_fd, int64_t *sent_us,
    enum ownership *, struct err *);
enum status redis_release(struct service *, const struct lease *, int64_t keep_ms, enum ownership *, struct err *);
enum status redis_inspect(struct service *, const char *key, struct lock_view *, struct err *);

enum status redis_list(struct service *, const char *pattern, void (*tell)(void *context, const char *key),
    void *context, struct err *);

/* -- A round about one token: renew, release -------------------------------- */

/* The answers to a script that returns 1 (ours), 0 (another's) or -1 (nobody's), from every node. */
struct round {
	struct redis_service *service;
	const struct request *request;
	unsigned int tag;
	struct ballot ballot; /* yes: ours; no: not ours, whoever has it now */
	enum ownership owner[NODES_MAX];
	struct fault fault[NODES_MAX];
	bool resent[NODES_MAX]; /* once, after a connection that had worked turned out to be broken */
};

/* Send the request to all nodes. */
void round_start(struct round *, struct redis_service *, const struct request *);

/* Wait for one more thing to happen; see fleet_turn(). */
enum fleet_event round_turn(struct round *, int64_t until_us, int interrupt_fd);

/* Whose the lock is, by most of the nodes that answered "not ours". */
enum ownership round_ownership(const struct round *);

/* The time for answers is over: remember who was silent. */
void round_close(struct round *);

#endif
