/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_RUN_LOSS_H
#define DLOCK_RUN_LOSS_H
#include "lock/service.h"

/* Why a token does not hold its lock. */
struct loss {
	enum ownership ownership; /* as reported by the operation that failed with ST_NO */
	int interrupt_fd;	  /* ends the look; -1: none */

	/* Set by loss_explain(), as far as known. */
	struct holder holder; /* the other one who holds the lock; token "": nobody, or unknown */
	struct broken broken; /* the break that ended ours; token "": it was not broken, or that is unknown */
};

/*
 * Look at the lock, and store a message that says who broke it and who holds it now, as far as known.  Returns ST_NO.
 */
enum status loss_explain(struct backend *, const struct lease *, struct loss *, struct err *);

#endif
