/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_CLI_METRICS_H
#define DLOCK_CLI_METRICS_H
#include "base/err.h"
#include "lock/service.h"

/*
 * Locks in the text format of Prometheus, as its textfile collector reads it.  All of a metric must stand together, so that the
 * numbers of all locks are kept until the end.
 */
struct metrics {
	struct sample *sample; /* all zero at first */
	size_t samples, room;
};

/* Note a lock; one that is noted twice counts once.  ST_SYSTEM: no memory. */
enum status metrics_add(struct metrics *, const char *key, const struct lock_view *, struct err *);

/* Print the locks that were noted, and which of the nodes are up. */
void metrics_print(struct metrics *, const struct node_facts *, int nodes);

void metrics_free(struct metrics *);

#endif
