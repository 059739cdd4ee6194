/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_LOCK_NODE_FACTS_H
#define DLOCK_LOCK_NODE_FACTS_H
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/reason.h"

/* What a node tells of itself.  A number that is not known is FACT_UNKNOWN, a text "". */
#define FACT_UNKNOWN INT64_C(-1)

struct node_facts {
	const char *name;     /* belongs to the service */
	bool up;	      /* it answers, and serves us */
	bool denied;	      /* it refuses to serve us: login, ACL */
	struct reason reason; /* why it is not up */
	int64_t rtt_us;	      /* a request and its answer: the median */
	int64_t offset_us;    /* its clock is so much ahead of this host's */
	bool clock_known;
	bool fails_over; /* others, the sentinels, may put another server in its place */

	/* What it tells only where all is asked. */
	char software[16]; /* "Redis", "Valkey" ... */
	char version[24];
	char run_id[48];
	char role[16]; /* "master", "slave", "sentinel" */
	int64_t uptime_s;
	int64_t aof; /* 0 or 1 */
	char fsync[12];
	int64_t snapshots; /* 0 or 1 */
	int64_t maxmemory, used_memory;
	char policy[24];
	int64_t evicted; /* keys, since it started */
	int64_t replicas;
	int64_t clients, maxclients;
	int64_t idle_timeout_s, keepalive_s;
	int64_t min_replicas; /* without so many it takes no writes */

	/* What became of a lock of our own, if one was tried. */
	enum status trial;
	struct err trial_err;
};

#endif
