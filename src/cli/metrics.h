/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_CLI_METRICS_H
#define DLOCK_CLI_METRICS_H
#include "base/err.h"
#include "lock/service.h"

/*
 * Locks in the text format of Prometheus, for its textfile collector.  All samples of a metric must be printed
 * together, so the values of all locks are kept until the end.
 */
struct metrics {
	struct sample *sample; /* all zero at first */
	size_t samples, capacity;
};

/* Add a lock; duplicates count once.  ST_SYSTEM: out of memory. */
enum status metrics_add(struct metrics *, const char *key, const struct lock_status *, struct err *);

/* The number of the locks, and their keys, by an index. */
size_t metrics_keys(struct metrics *);
const char *metrics_key(const struct metrics *, size_t index);

/* Add the metrics of the history of that lock. */
void metrics_add_history(struct metrics *, size_t index, const struct history *);

/* Print the added locks, and which nodes are up.  All zero again. */
void metrics_print(struct metrics *, const struct probed *, int nodes);

#endif
