/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "zk/operations.h"

/*
 * Enter the lock of a token again: a proof that adds a hold.  The lease is that of the session, whoever renews it.
 */
static enum status
enter(struct zk_backend *z, const struct wait *limit, const struct acquire_args *args, struct lease *lease,
    struct err *err)
{
	char hold[METADATA_HOLD_LENGTH + 1];
	struct zk_token token;
	struct zk_proof proof = { .hold = token.hold, .added = hold };
	enum ownership ownership;
	enum zk_code code;
	struct err ignored;

	if (!zk_adopt(z, lease, &token, err))
		return ST_NO; /* it may be the token of another service */
	if (!zk_hold_new(hold))
		return err_set(err, ST_SYSTEM, "the kernel has no random numbers for a token");
	log_debug(&z->log, "entering the lock again");
	code = zk_prove_until(z, &proof, limit);
	if (code == ZK_EXPIRED || code == ZK_NO_NODE)
		return err_set(err, ST_NO, "gone");
	zk_fill_lease(z, args, hold, lease);
	if (code == ZK_OK && clock_now_us() < lease->valid_until_us)
		return ST_OK;
	/* The hold may have been written. */
	(void)zk_release(&z->base, lease, 0, &ownership, &ignored);
	if (code == ZK_OK)
		return err_set(err, ST_NO_QUORUM, "granted too late: the lease had nearly expired; use a longer --ttl");
	return zk_error(z, code, err);
}

enum status
zk_reenter(struct zk_backend *z, const struct acquire_args *args, struct lease *lease, struct err *err)
{
	enum status status = ST_NO;
	struct wait limit;
	int i;

	for (i = 0; i < args->holds && status == ST_NO; i++) {
		limit = zk_limit(z, CLOCK_NEVER, args->wait.interrupt_fd);
		memset(lease, 0, sizeof(*lease));
		lease->key = args->key;
		(void)snprintf(lease->token, sizeof(lease->token), "%s", args->hold[i].token);
		status = enter(z, &limit, args, lease, err);
	}
	return status;
}
