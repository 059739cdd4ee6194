/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_CLI_CHECKS_H
#define DLOCK_CLI_CHECKS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "lock/node_facts.h"
#include "lock/quorum.h"

/*
 * Checks whether the nodes are suitable for locks.  The input is the data that was collected from the nodes, the output
 * is a list of findings.  Nothing is sent to a server here.
 */

/* The settings of the locks. */
struct checks_terms {
	int64_t ttl_ms;
	int64_t node_timeout_ms;
	int64_t restart_guard_ms;
	int replicas;	    /* how many must confirm a lock, see --replicas */
	bool configured;    /* the nodes were named, and are not the default */
	bool tls, insecure; /* a node is reached by TLS; its certificate is not verified */
};

enum grade {
	GRADE_OK,
	GRADE_WARN,
	GRADE_FAIL
};

struct finding {
	const char *node; /* NULL: all nodes together; owned by the caller of checks_judge() */
	const char *check;
	enum grade grade;
	char what[1100];
	char advice[240]; /* "" if there is nothing to do */
};

enum {
	FINDINGS_OF_NODE = 16,
	FINDINGS_MAX = NODES_MAX * FINDINGS_OF_NODE + 6
};

/*
 * Check the nodes.  Returns the number of findings.  The findings of a node are adjacent, in the order of the nodes;
 * those of all nodes together are last.
 */
size_t checks_judge(const struct checks_terms *, const struct node_facts *, int nodes,
    struct finding found[FINDINGS_MAX]);

/* The same for the servers of a ZooKeeper ensemble. */
size_t checks_judge_zk(const struct checks_terms *, const struct node_facts *, int nodes,
    struct finding found[FINDINGS_MAX]);

/*
 * The overall result.  ST_OK: no problem.  ST_NO: a finding is a warning or a failure.  ST_NO_QUORUM: too few nodes
 * grant locks, or two nodes are the same server.  ST_DENIED: so many nodes refuse us that no majority is left.  The last
 * two have an error.
 */
enum status checks_outcome(const struct node_facts *, int nodes, const struct finding *, size_t count, struct err *);

#endif
