/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_CLI_CHECKS_H
#define DLOCK_CLI_CHECKS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lock/node_facts.h"
#include "lock/quorum.h"

/*
 * Is a node fit to keep locks?  What is known of the nodes goes in, findings come out; nobody is asked anything here.
 */

/* What the locks are to be like. */
struct checks_terms {
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
size_t checks_judge(const struct checks_terms *, const struct node_facts *, int nodes,
    struct finding found[FINDINGS_MAX]);

/*
 * What it all comes to: ST_OK, ST_NO where something is to be seen to, ST_NO_QUORUM where too few nodes keep locks or two of
 * them are the same server, ST_DENIED where refusals alone are the reason.
 */
enum status checks_outcome(const struct node_facts *, int nodes, const struct finding *, size_t count);

#endif
