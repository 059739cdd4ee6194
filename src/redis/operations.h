/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_REDIS_OPERATIONS_H
#define DLOCK_REDIS_OPERATIONS_H
#include "redis/nodes.h"

/* Shared by the files of the Redis service, each of which implements one operation of lock/service.h. */

/* A node that replied to a renewal that nobody holds the lock. */
struct node_loss {
	enum loss_state {
		LOSS_NONE,
		LOSS_FOUND, /* in the current round */
		LOSS_DUE,   /* in an earlier round: healed once the current round has a majority */
		LOSS_HEALING,
		LOSS_OVER /* healed, or left to the next renewal */
	} state;
	int64_t until_ms;   /* by the node's clock; a heal is void from then on */
	int64_t connection; /* on which it replied so, see struct result */
};

/* The last renewal, which redis_heal() continues. */
struct renewal {
	struct keys names;
	struct command request;
	struct round round;
	char holds[ROUND_HOLDS]; /* of the round */
	struct node_loss loss[NODES_MAX];
};

struct redis_backend {
	struct backend base; /* first: a struct backend * is converted to this */
	struct nodes nodes;
	struct tls_context *tls; /* NULL: no node uses it */
	struct {
		char token[TOKEN_SIZE];	  /* of the lock that was acquired last */
		char handoff[TOKEN_SIZE]; /* the handoff token that it was acquired with; "" if it was free */
	} taken;
	struct renewal *renewal; /* NULL before the first one: a short run needs none */
	int64_t
	    guard_s; /* of a renewal that enters the lock: a server with less uptime has no vote, see answer_guard_s() */
};

/* -- The operations --------------------------------------------------------- */

/* Enter a lock again by one of the caller's holds; see service.acquire.  ST_NO: none of them holds it. */
enum status redis_reenter(struct redis_backend *, const struct acquire_args *, struct lease *, struct err *);

enum status redis_acquire(struct backend *, const struct acquire_args *, struct lease *, struct err *);

enum status redis_renew(struct backend *, struct lease *, const struct wait *, struct renewed *, struct err *);
int64_t redis_heal(struct backend *, const struct lease *, int64_t valid_until_us, const struct wait *);
enum status redis_release(struct backend *, const struct lease *, int64_t keep_ms, enum ownership *, struct err *);
enum status redis_look(struct backend *, const struct look_args *, struct record *, struct err *);
enum status redis_list(struct backend *, const char *pattern, const struct wait *, struct names *, struct err *);
enum status redis_break(struct backend *, const struct break_args *, enum ownership *, struct err *);
int redis_probe(struct backend *, struct probed *);
enum status redis_doctor(struct backend *, struct findings *, struct err *);

#endif
