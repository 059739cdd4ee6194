/* SPDX-License-Identifier: MIT */
#include "redis/operations.h"

#include <string.h>

#include "base/clock.h"

static void
write_request(struct command *r, const struct keys *names, const char *fingerprint)
{
	command_eval(r, SCRIPT_BREAK, names);
	command_add(r, fingerprint);
	command_add_again(r);
}

static enum status
outcome(const struct redis_backend *s, const struct round *r, enum ownership *ownership, struct err *err)
{
	const int done = quorum_count(&r->ballot, VOTE_YES), other = quorum_count(&r->ballot, VOTE_NO);

	if (done + other < quorum_majority(r->ballot.nodes))
		return nodes_no_quorum(&s->nodes, &r->ballot, r->error, err);
	if (done == 0)
		return nodes_round_refused(r, ownership, err);
	*ownership = OWNED;
	return ST_OK;
}

/* Wait for the replies of all nodes, including those that hold something else. */
static enum status
break_exactly(struct redis_backend *s, const char *key, const char *fingerprint, enum ownership *ownership,
    struct err *err)
{
	const int64_t until = clock_add(clock_now_us(), s->nodes.node_timeout_us);
	enum loop_event event = LOOP_ACTIVE;
	struct command request;
	struct keys names;
	struct round round;

	round.holds = NULL;
	keys_of(key, &names);
	write_request(&request, &names, fingerprint);
	nodes_round_start(&round, &s->nodes, &request);
	while (!nodes_round_is_complete(&round) && event == LOOP_ACTIVE)
		event = loop_turn(&s->nodes.loop, until, -1);
	nodes_round_end(&round);
	return outcome(s, &round, ownership, err);
}

enum status
redis_break_commit(struct backend *backend, const char *key, const struct break_side *side, enum ownership *ownership,
    struct err *err)
{
	struct redis_backend *s = (struct redis_backend *)backend;
	struct lease lease = { .key = key, .outcome = "broken -", .broken_by = side->broken_by };
	enum status status;

	/*
	 * The lock of a dlock client is released in its name: its token is recorded as gone, so that a late renewal
	 * can't restore it, and the waiters are served.  A lock that has been released already is only kept for a
	 * while, and has no waiters to serve.
	 */
	if (side->holder.other_client || side->holder.handover || !token_valid(side->holder.token))
		return break_exactly(s, key, side->fingerprint, ownership, err);
	memcpy(lease.token, side->holder.token, TOKEN_SIZE);
	status = redis_release(backend, &lease, KEEP_NOTHING, ownership, err);
	if (status == ST_NO && side->nodes < quorum_majority(s->nodes.count)) {
		*ownership = OWNED; /* it never held a majority */
		err->text[0] = '\0';
		return ST_OK;
	}
	return status;
}
