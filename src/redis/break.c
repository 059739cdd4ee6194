/* SPDX-License-Identifier: MIT */
#include "redis/operations.h"

#include <string.h>

#include "base/clock.h"

/*
 * Delete the key where it has this fingerprint.  Wait for the replies of all nodes, including those that hold something
 * else.
 */
static enum status
break_exactly(struct nodes *n, const struct break_args *args, enum ownership *ownership, struct err *err)
{
	struct waiting w = { .nodes = n,
		.limit = { clock_add(clock_now_us(), n->node_timeout_us), -1 },
		.patience = EVERYBODY };
	struct command request;
	struct keys names;
	struct round round;
	int done, other;

	round.holds = NULL;
	keys_of(args->key, &names);
	command_eval(&request, SCRIPT_BREAK, &names, "%s %c", args->holder->fingerprint, '0');
	nodes_round_run(&round, &request, &w);
	nodes_round_end(&round);
	done = quorum_count(&round.ballot, VOTE_YES);
	other = quorum_count(&round.ballot, VOTE_NO);
	if (done + other < quorum_majority(round.ballot.nodes))
		return nodes_no_quorum(n, &round.ballot, round.error, err);
	if (done == 0)
		return nodes_round_refused(&round, ownership, err);
	*ownership = OWNED;
	return ST_OK;
}

enum status
redis_break(struct backend *backend, const struct break_args *args, enum ownership *ownership, struct err *err)
{
	struct nodes *const n = &((struct redis_backend *)backend)->nodes;
	struct lease lease = { .key = args->key, .outcome = "broken -", .broken_by = args->by };
	enum status status;

	/*
	 * The lock of a dlock client is released in its name: its token is recorded as gone, so that a late renewal
	 * can't restore it, and the waiters are served.  A lock that has been released already is only kept for a
	 * while, and has no waiters to serve.
	 */
	if (args->holder->state != LOCK_HELD || !token_valid(args->holder->token))
		return break_exactly(n, args, ownership, err);
	memcpy(lease.token, args->holder->token, TOKEN_SIZE);
	status = redis_release(backend, &lease, KEEP_NOTHING, ownership, err);
	if (status == ST_NO && args->holder->nodes < quorum_majority(n->count)) {
		*ownership = OWNED; /* it never held a majority */
		err->text[0] = '\0';
		return ST_OK;
	}
	return status;
}
