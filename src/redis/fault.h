/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_REDIS_FAULT_H
#define DLOCK_REDIS_FAULT_H
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "lock/quorum.h"
#include "redis/fleet.h"

/*
 * Why a node has no vote: what errors of servers mean, in our words.
 */
struct fault {
	bool is;
	bool denied;	 /* it refused us, not only now: login, ACL */
	bool local;	 /* not its own: this host lacks something */
	bool guarded;	 /* it has started too recently, see --restart-guard; */
	int64_t left_ms; /* then: how long it grants nothing yet, at the most */
	bool moved;	 /* it says that another server of its Cluster has the slot */
	int twin;	 /* the number, from 1 on, of the node that is the same server, as this one says; 0: none */
	struct err err;	 /* without the node's name */
};

/* No node has one. */
void fault_clear(struct fault *, int nodes);

void fault_set(struct fault *, bool denied, const char *sentence);

/* A server that is up for so many seconds is trusted only from guard_s on. */
void fault_set_guarded(struct fault *, int64_t up_s, int64_t guard_s);

/* What a server's error says, which may be anything. */
void fault_set_error(struct fault *, const char *text);

/* A reply that no Redis would send. */
void fault_set_unexpected(struct fault *);

/* A server whose list of keys never ends. */
void fault_set_endless(struct fault *);

/* Say behind the rest of an error which nodes have started too recently. */
void fault_add_guarded(const struct fleet *, const struct fault fault[NODES_MAX], struct err *);

/*
 * Explain that no majority could answer: the one node's fault, or how many of how many answered and every fault.
 * Nodes without a vote and without a fault have been silent, or, where the time wasn't over (`closed`), not waited for.
 * ST_DENIED where the refusals alone prevent a majority, ST_SYSTEM where without what this host lacks there might have
 * been one, else ST_NO_QUORUM.
 */
enum status fault_no_quorum(const struct fleet *, const enum vote vote[NODES_MAX], const struct fault fault[NODES_MAX],
    bool closed, struct err *);

#endif
