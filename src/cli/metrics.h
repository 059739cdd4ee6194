/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_CLI_METRICS_H
#define DLOCK_CLI_METRICS_H
#include "base/err.h"
#include "lock/finding.h"
#include "lock/record.h"

/*
 * Locks in the text format of Prometheus, for its textfile collector.  All samples of a metric must be printed
 * together, so the values of all locks are kept until the end.
 */
struct metrics {
	struct sample *sample; /* all zero at first */
	size_t samples, capacity;
};

/* Add a lock, with what is known of its history; duplicates count once.  ST_SYSTEM: out of memory. */
enum status metrics_add(struct metrics *, const char *key, const struct record *, struct err *);

/* Print the added locks, and which nodes are up.  All zero again. */
void metrics_print(struct metrics *, const struct probed *, int nodes);

#endif
