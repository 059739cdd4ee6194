/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_LOCK_HEALTH_H
#define DLOCK_LOCK_HEALTH_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/reason.h"
#include "lock/quorum.h"

/*
 * Is a node fit to keep locks?  What is known of the nodes goes in, findings come out; nobody is asked anything here.
 */

/* What a node tells of itself.  A number that is not known is HEALTH_UNKNOWN, a text "". */
#define HEALTH_UNKNOWN INT64_C(-1)

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

/* What the locks are to be like. */
struct health_terms {
	int64_t ttl_ms;
	int64_t node_timeout_ms;
	int64_t restart_guard_ms;
	int replicas; /* that must confirm a lock, see --replicas */
};

enum grade {
	GRADE_OK,
	GRADE_WARN,
	GRADE_FAIL
};

struct finding {
	const char *node; /* NULL: all of them together */
	const char *check;
	enum grade grade;
	char what[1100];
	char advice[240]; /* "" where there is nothing to do */
};

enum {
	FINDINGS_OF_NODE = 16,
	FINDINGS_MAX = NODES_MAX * FINDINGS_OF_NODE + 4
};

/* Judge the nodes; returns how many findings there are.  Those of a node stand together, in the order of the nodes. */
size_t health_judge(const struct health_terms *, const struct node_facts *, int nodes,
    struct finding found[FINDINGS_MAX]);

/*
 * What it all comes to: ST_OK, ST_NO where something is to be seen to, ST_NO_QUORUM where too few nodes keep locks or two of
 * them are the same server, ST_DENIED where refusals alone are the reason.
 */
enum status health_outcome(const struct node_facts *, int nodes, const struct finding *, size_t count);

#endif
