/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_ZK_DOCTOR_H
#define DLOCK_ZK_DOCTOR_H
#include "lock/finding.h"

/* Doctor's view of the servers of an ensemble, and the checks, without what sends requests. */
struct zk_facts {
	struct probed probed;
	char version[24];		   /* "": unknown */
	char role[16];			   /* "leader", "follower", "standalone", "looking"; "": unknown */
	int64_t ttl_least_ms, ttl_most_ms; /* the lengths of leases that it grants */
	int64_t members;		   /* the number of servers that vote; negative: unknown */
	bool unguarded;			   /* there is a password, and everybody may make nodes in the chroot */
	bool stranger;			   /* it does not know a session that the first server that is up has made */
};

/* Add all findings. */
void zk_doctor_judge(const struct zk_facts *, struct findings *);

#endif
