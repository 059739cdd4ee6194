/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_REDIS_OPERATIONS_H
#define DLOCK_REDIS_OPERATIONS_H
#include "lock/service.h"
#include "redis/answer.h"
#include "redis/nodes.h"
#include "redis/rollback.h"
#include "redis/round.h"

/*
 * What the files of the Redis service share: one operation of lock/service.h each.
 */

/* A node that said in a renewal that nobody holds the lock. */
struct loss {
	enum loss_state {
		LOSS_NONE,
		LOSS_FOUND, /* by the present round */
		LOSS_DUE,   /* by an earlier one: it is healed once the present one is confirmed */
		LOSS_HEALING,
		LOSS_OVER /* healed, or left to the next renewal */
	} state;
	int64_t until_ms;   /* by its clock; no heal counts from then on */
	int64_t connection; /* on which it said so, see struct result */
};

/* The last renewal, which healing goes on with. */
struct renewal {
	struct keys names;
	struct command request;
	struct round round;
	struct loss loss[NODES_MAX];
};

struct redis_service {
	struct service base; /* first: a struct service * is converted to this */
	struct nodes nodes;
	struct tls_context *tls; /* NULL: no node wants it */
	struct rollbacks rollbacks;
	struct {
		char token[TOKEN_SIZE]; /* of the lock that was taken last, */
		char baton[TOKEN_SIZE]; /* and by which; "" if it was free */
	} taken;
	struct renewal *renewal; /* NULL before the first one: a short run needs none */
};

/* -- The operations --------------------------------------------------------- */

/* Enter a lock again by one of the claim's holds; see service_ops.acquire.  ST_NO: none of them holds it. */
enum status redis_reenter(struct redis_service *, const struct claim *, int interrupt_fd, struct lease *, struct err *);

enum status redis_acquire(struct service *, const struct claim *, int interrupt_fd, struct lease *, struct err *);

/* How to renew.  A server that has been up for less than guard_s, see answer_guard_s(), takes no part; 0: all do. */
struct renew_args {
	struct limit limit;
	int64_t guard_s;
};
enum status redis_renew_guarded(struct redis_service *, struct lease *, const struct renew_args *, struct renewed *,
    struct err *);
enum status redis_renew(struct service *, struct lease *, const struct limit *, struct renewed *, struct err *);
void redis_heal(struct service *, const struct lease *, int64_t valid_until_us, const struct limit *);
enum status redis_release(struct service *, const struct lease *, int64_t keep_ms, enum ownership *, struct err *);
enum status redis_survey(struct service *, const struct survey *, struct err *);
enum status redis_list(struct service *, const struct list *, struct err *);
enum status redis_pin(struct service *, const char *key, struct pinned *, struct err *);
enum status redis_force(struct service *, const char *key, const struct pinned_side *, enum ownership *, struct err *);
int redis_examine(struct service *, bool all, struct node_facts *);

#endif
