/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_CLI_METRICS_H
#define DLOCK_CLI_METRICS_H
#include "base/err.h"
#include "lock/backend.h"

/*
 * Locks in the text format of Prometheus, for its textfile collector.  All samples of a metric must be printed
 * together, so the values of all locks are kept until the end.
 */
struct metrics {
	struct sample *sample; /* all zero at first */
	size_t samples, room;
};

/* Add a lock; duplicates count once.  ST_SYSTEM: out of memory. */
enum status metrics_add(struct metrics *, const char *key, const struct lock_status *, struct err *);

/* Print the added locks, and which nodes are up.  All zero again. */
void metrics_print(struct metrics *, const struct node_facts *, int nodes);

#endif
