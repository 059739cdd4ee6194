/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_ZK_SLOTS_H
#define DLOCK_ZK_SLOTS_H
#include <stdbool.h>
#include <stddef.h>

#include "lock/service.h"
#include "zk/entry.h"
#include "zk/session.h"

/*
 * The slots of a KEY, in the layout of Curator's InterProcessSemaphoreV2: KEY/locks is a mutex, and below KEY/leases
 * each holder has a lease, an ephemeral sequential node.  A client that wants a slot takes the mutex, makes a lease,
 * waits until there are no more leases than slots, and leaves the mutex.  So the first in the queue of the mutex is the
 * only one that waits for a lease to go.
 *
 * The number of a slot is in the data of its lease.  It is chosen in the mutex: the least that no other lease names.
 * Leases of Curator name none.  For those who look, each has the least number that no lease names.
 */
struct slot_view {
	const char *name; /* of the lease, in the queue that was read */
	int slot;	  /* 0: it waits for one */
	bool named;	  /* it has this number itself */
	struct holder holder;
};

struct leases {
	struct slot_view *view; /* in the order of the queue */
	size_t count;
};

/*
 * Read the data of the leases of a queue, which must outlive the result.  One that is gone meanwhile is left out.  Free
 * it in any case.
 */
enum zk_code leases_read(struct session *, const char *path, const struct names *queue, struct leases *,
    const struct wait *);
void leases_free(struct leases *);

/* Give numbers to the leases that name none, apart from those that wait. */
void leases_number(struct leases *);

/* The slot for the lease whose name begins so; 0: all numbers are named. */
int leases_choose(const struct leases *, const char *own);

/* Ask for the leases of a KEY: the number of slots that are held, and the holder whose lease ends first. */
struct slots_summary {
	int held;
	bool all_kept;	     /* after their commands */
	struct holder first; /* LOCK_FREE: nobody holds a slot */
};
enum zk_code slots_ask(struct session *, const char *path, struct slots_summary *, const struct wait *);

/*
 * For session_retry(), in the mutex, if there is room for the lease: choose the number of its slot, write it, and leave
 * the mutex by the same transaction.
 */
struct slot_choice {
	struct entry *lease, *mutex;
	int64_t since_ms; /* that the lease was made before this grant */
};
enum zk_code slots_take(void *choice, const struct wait *);

#endif
