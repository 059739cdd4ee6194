/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_LOCK_LOSS_H
#define DLOCK_LOCK_LOSS_H
#include "lock/service.h"

/* Why a token does not hold its lock. */
struct loss {
	enum ownership ownership; /* as reported by the operation that failed with ST_NO */
	int interrupt_fd;	  /* ends the query; -1: none */
	struct lock_status view;  /* set by loss_explain(); LOCK_UNKNOWN if the status is not known */
};

/*
 * Query the status of the lock, and store a message that says who broke it and who holds it now, as far as known.
 * Returns ST_NO.
 */
enum status loss_explain(struct backend *, const struct lease *, struct loss *, struct err *);

/* Was the lock of this token broken, according to the status? */
bool loss_was_break(const struct lock_status *, const char *token);

/* The holder, if it is another one than this token; otherwise NULL. */
const struct holder *loss_other_holder(const struct lock_status *, const char *token);

/* The error of a lock that is not ours any more.  Returns ST_NO. */
enum status loss_error(enum ownership, struct err *);

#endif
