/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_REDIS_DOCTOR_H
#define DLOCK_REDIS_DOCTOR_H
#include "lock/finding.h"

/*
 * Doctor's view of Redis servers, without what sends requests: parsing of INFO and of the values of CONFIG GET, and the
 * checks.
 */

/* What a server reports about itself.  An unknown number is FACT_UNKNOWN, an unknown text is "". */
#define FACT_UNKNOWN INT64_C(-1)

struct facts {
	struct probed probed;
	int64_t offset_us; /* how far its clock is ahead of the clock of this host */
	bool clock_known;
	bool fails_over;   /* sentinels may replace its server by another one */
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
};

/* Set all fields to unknown. */
void facts_forget(struct facts *);

/* Parse the text of INFO.  Fields that are not in it remain unknown. */
void facts_read_info(struct facts *, const char *text);

/* The names of the parameters to query with CONFIG GET, by index; NULL after the last one. */
const char *facts_parameter(size_t index);

/* Store the value of the parameter with this index. */
void facts_set_parameter(struct facts *, size_t index, const char *value);

/* Add all findings. */
void facts_judge(const struct facts *, struct findings *);

/*
 * The overall result.  ST_OK and ST_NO: as finding_outcome().  ST_NO_QUORUM: too few nodes grant locks, or two nodes are the
 * same server.  ST_DENIED: so many nodes refuse us that no majority is left.  The last two have an error.
 */
enum status facts_outcome(const struct facts *, const struct findings *, struct err *);

#endif
