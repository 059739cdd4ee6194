/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_REDIS_DOCTOR_H
#define DLOCK_REDIS_DOCTOR_H
#include "lock/finding.h"

/* Doctor's view of Redis servers, and the checks, without what sends requests. */
enum {
	FACT_SIZE = 64, /* of the longest value that counts */
	INFO_MOST = 24000
};

struct facts {
	struct probed probed;
	int64_t offset_us; /* its clock is so far ahead of the clock of this host */
	bool clock_known;
	bool fails_over; /* sentinels may replace its server by another one */
	char text[INFO_MOST +
	    1000]; /* lines "NAME:value" of INFO, and of CONFIG behind it; the first of a name counts */
};

/* Add lines of a text, of which so many bytes count. */
void doctor_add(struct facts *, const char *lines, size_t most);

/* Add all findings. */
void doctor_judge(const struct facts *, struct findings *);

/*
 * The overall result.  ST_OK and ST_NO: as finding_outcome().  ST_NO_QUORUM: too few nodes grant locks, or two nodes
 * are the same server.  ST_DENIED: so many nodes refuse us that no majority is left.  The last two have an error.
 */
enum status doctor_outcome(const struct facts *, const struct findings *, struct err *);

#endif
