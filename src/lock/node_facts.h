/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_LOCK_NODE_FACTS_H
#define DLOCK_LOCK_NODE_FACTS_H
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* What a node reports about itself.  An unknown number is FACT_UNKNOWN, an unknown text is "". */
#define FACT_UNKNOWN INT64_C(-1)

struct node_facts {
	const char *name;     /* owned by the backend */
	bool up;	      /* it replies and accepts our requests */
	bool denied;	      /* it refuses our requests: login, ACL */
	struct reason reason; /* why it is not up */
	int64_t rtt_us;	      /* round-trip time of a request: of several, the median or the shortest */
	int64_t offset_us;    /* how far its clock is ahead of the clock of this host */
	bool clock_known;
	const char *local; /* how it is connected if only this host can reach it so; NULL: others can */
	bool fails_over;   /* sentinels may replace its server by another one */

	/* Set only if everything was requested. */
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
	int64_t evicted; /* keys evicted since the server started */
	int64_t replicas;
	int64_t clients, maxclients;
	int64_t idle_timeout_s, keepalive_s;
	int64_t min_replicas; /* min-replicas-to-write: with fewer replicas it refuses writes */

	/* Of a ZooKeeper server: the lengths of leases that it grants, and the number of servers that vote. */
	int64_t ttl_least_ms, ttl_most_ms;
	int64_t members;
	bool unguarded; /* there is a password, and everybody may make nodes in the chroot */
	bool stranger;	/* it does not know a session that the first server that is up has made */

	/* The result of the test lock, if one was tried. */
	enum status trial;
	struct err trial_err;
};

#endif
