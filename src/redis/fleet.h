/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_REDIS_FLEET_H
#define DLOCK_REDIS_FLEET_H
#include <stdbool.h>
#include <stdint.h>

#include "base/trace.h"
#include "lock/quorum.h"
#include "redis/node.h"

/*
 * All nodes of a service, asked at once in one poll loop.  A round is the sending of one kind of request; its tag
 * tells its answers from those of earlier rounds, which may still come.
 */
struct fleet {
	int nodes;
	struct node *node[NODES_MAX];
	bool suspect[NODES_MAX]; /* was silent in the last round */
	struct node *second;	 /* one more connection to a node, for a request that blocks there; NULL: none */
	int second_of;		 /* to this one */
	int64_t round_us;	 /* the time that one round may take */
	unsigned int tag;	 /* of the newest round */
	struct trace trace;
};

enum fleet_event {
	FLEET_ANSWERED, /* at least one answer was delivered, or something moved */
	FLEET_TIME,	/* the instant has come */
	FLEET_INTERRUPTED
};

/* Gets each answer; the reply is freed behind it. */
typedef void fleet_deliver(void *context, int node, const struct delivery *);

/* A tag that no request has had. */
unsigned int fleet_new_tag(struct fleet *);

/*
 * Begin a round: a new tag, and a new connection for each node that was silent in the last one, since what is wrong may
 * be the connection.  What was outstanding there is delivered as failed.
 */
unsigned int fleet_new_round(struct fleet *, fleet_deliver *, void *context);

/*
 * What waits for a connection that isn't there yet is not sent any more; it is delivered as failed and unsent.
 * Was there still time to wait for it?
 */
void fleet_forget_unsent(struct fleet *, bool in_time, fleet_deliver *, void *context);

void fleet_send(struct fleet *, int node, unsigned int tag, const struct request *);
void fleet_send_all(struct fleet *, unsigned int tag, const struct request *);

/* Open a second connection to a node, in place of the one that there may be.  False: out of memory. */
bool fleet_open_second(struct fleet *, int node);

/* Close it, whatever is outstanding there; nothing of that is delivered.  Does nothing if there is none. */
void fleet_close_second(struct fleet *);

/* Does it lead to another server of its node than the first connection does now? */
bool fleet_second_parted(const struct fleet *);

/* Answers come with the node's number like those of the first connection. */
void fleet_send_second(struct fleet *, unsigned int tag, const struct request *);

/* Wait once for whatever comes first: answers, the instant, or the interrupt descriptor (-1: none). */
enum fleet_event fleet_turn(struct fleet *, int64_t until_us, int interrupt_fd, fleet_deliver *, void *context);

void fleet_close(struct fleet *);

#endif
