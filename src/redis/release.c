/* SPDX-License-Identifier: MIT */
#include "redis/operations.h"

#include <string.h>

#include "base/clock.h"

/*
 * The time within which the waiter that receives the handoff token must acquire the lock: two rounds, and at least
 * this.
 */
#define WINDOW_LEAST_MS INT64_C(1000)

#define LONG_GRACE_US 100000 /* for a node that takes longer */
#define FAR_GRACE_US 300000  /* the most that is added for a node that is far away */

/*
 * Wait for the release to reach the nodes whose replies no longer matter.  A slow node gets a grace period, since it
 * may be hung.  A node that has closed a connection is alive, and gets the whole time.  A node that accepts no new
 * connection gets none.
 */
static void
linger(struct redis_backend *s, struct round *r, int64_t began_us, int64_t until_us)
{
	const int64_t now = clock_now_us();
	struct waiting w = { .nodes = &s->nodes, .limit = { .interrupt_fd = -1 } };
	struct node *node;
	int64_t grace;
	int i;

	do {
		w.limit.until_us = 0;
		for (i = 0; i < s->nodes.count; i++) {
			node = s->nodes.node[i];
			/* Once it has been written to a connection in use, it will be executed without this process. */
			if (r->ballot.unresponsive[i] || r->ballot.vote[i] != VOTE_PENDING || !node_needs_us(node))
				continue;
			/* This includes the time to establish a new connection. */
			grace = (node_takes_long(node) ? LONG_GRACE_US : GRACE_US) +
			    clock_sooner(3 * node_channel(node)->took_us, FAR_GRACE_US);
			grace = node_resends(node) ? until_us : clock_add(now, 2 * (now - began_us) + grace);
			grace = clock_sooner(grace, until_us);
			w.limit.until_us = grace > w.limit.until_us ? grace : w.limit.until_us;
		}
	} while (w.limit.until_us > clock_now_us() && nodes_await(&w, ROUND_OPEN));
}

/*
 * The lock was not ours, if a majority can't have known it as ours, counting the nodes that have not replied.  OWNED if
 * the whole lock was released with this hold on a majority of the nodes, otherwise OWNED_STILL.
 */
static enum status
outcome(const struct round *r, enum ownership *ownership, struct err *err)
{
	const enum verdict verdict = quorum_judge(&r->ballot);
	const int nodes = r->ballot.nodes;
	int i, wholly = 0;

	if (verdict == VERDICT_SPLIT && nodes - quorum_count(&r->ballot, VOTE_NO) < quorum_majority(nodes))
		return nodes_round_refused(r, ownership, err);
	if (verdict != VERDICT_CARRIED)
		return nodes_round_outcome(r, ownership, err);
	for (i = 0; i < nodes; i++)
		wholly += r->ballot.vote[i] == VOTE_YES && r->owner[i] == OWNED;
	*ownership = wholly >= quorum_majority(nodes) ? OWNED : OWNED_STILL;
	return ST_OK;
}

int64_t
redis_window_ms(const struct nodes *n)
{
	const int64_t rounds_ms = 2 * n->node_timeout_us / 1000;

	return rounds_ms > WINDOW_LEAST_MS ? rounds_ms : WINDOW_LEAST_MS;
}

/* The readers that this one has invited find its lock before it is released. */
static void
await_invited(struct redis_backend *s, const struct lease *lease)
{
	struct waiting w = { .nodes = &s->nodes, .limit = { s->taken.stays_until_us, -1 } };

	while (strcmp(lease->token, s->taken.token) == 0 && clock_now_us() < w.limit.until_us &&
	    nodes_await(&w, ROUND_OPEN))
		;
}

enum status
redis_release(struct backend *backend, const struct lease *lease, int64_t keep_ms, enum ownership *ownership,
    struct err *err)
{
	struct redis_backend *s = (struct redis_backend *)backend;
	struct waiting w = { .nodes = &s->nodes, .limit.interrupt_fd = -1 };
	struct command request;
	struct keys names;
	struct round round;
	bool hung[NODES_MAX]; /* it does not even accept connections, as far as is known */
	int64_t began;
	int i;

	await_invited(s, lease);
	began = clock_now_us();
	w.limit.until_us = clock_add(began, s->nodes.node_timeout_us);
	round.holds = NULL;
	keys_of(lease->key, &names);
	command_eval(&request, SCRIPT_RELEASE, &names, "%s %jd %c %d %jd %d %s %s", lease->token,
	    keep_ms > 0 ? keep_ms : 0, lease->again ? '1' : '0', s->nodes.count > 1, redis_window_ms(&s->nodes),
	    keep_ms == KEEP_NOTHING, strcmp(lease->token, s->taken.token) == 0 ? s->taken.handoff : "",
	    lease->outcome != NULL ? lease->outcome : "released -");
	if (keep_ms > 0 || lease->by != NULL) {
		command_add(&request, lease->kept_by != NULL ? lease->kept_by : "min-hold");
		command_add(&request, lease->by != NULL ? lease->by : "");
	}
	request.keeps_trying = true;
	log_debug(&s->nodes.log, keep_ms > 0 ? "releasing the lock in %d ms" : "releasing the lock", (int)keep_ms);
	/*
	 * Do not send the release after an older request: a server that finds the connection closed when it replies to
	 * that request reads no further.  On a new connection the release may overtake the older request, which is then
	 * refused, since the token is recorded as gone.
	 */
	for (i = 0; i < s->nodes.count; i++) {
		hung[i] = s->nodes.unresponsive[i] && node_channel(s->nodes.node[i])->state != CHANNEL_OPEN;
		node_disconnect(s->nodes.node[i]);
	}
	nodes_round_run(&round, &request, &w);
	memcpy(round.ballot.unresponsive, hung, (size_t)s->nodes.count * sizeof(hung[0]));
	linger(s, &round, began, w.limit.until_us);
	nodes_round_end(&round);
	return outcome(&round, ownership, err);
}

/* -- Breaking --------------------------------------------------------------- */

enum status
redis_break(struct backend *backend, const struct break_args *args, enum ownership *ownership, struct err *err)
{
	struct nodes *const n = &((struct redis_backend *)backend)->nodes;
	struct lease lease = { .key = args->key, .outcome = "broken -", .by = args->by };
	struct waiting w = { .nodes = n,
		.limit = { clock_add(clock_now_us(), n->node_timeout_us), -1 },
		.patience = EVERYBODY };
	struct command request;
	enum status status;
	struct keys names;
	struct round round;
	int done;

	/*
	 * The lock of a dlock client is released in its name: its token is recorded as gone, so that a late renewal
	 * can't restore it, and the waiters are served.  A lock that has been released already is only kept for a
	 * while, and has no waiters to serve.
	 */
	if ((args->holder->state == LOCK_HELD || args->holder->state == LOCK_SHARED) &&
	    token_valid(args->holder->token)) {
		memcpy(lease.token, args->holder->token, TOKEN_SIZE);
		status = redis_release(backend, &lease, KEEP_NOTHING, ownership, err);
		if (status != ST_NO || args->holder->nodes >= quorum_majority(n->count))
			return status;
		*ownership = OWNED; /* it never held a majority */
		err->text[0] = '\0';
		return ST_OK;
	}
	/* Delete the key where it has this fingerprint.  All nodes must reply, also those that hold something else. */
	round.holds = NULL;
	keys_of(args->key, &names);
	command_eval(&request, SCRIPT_BREAK, &names, "%s %c", args->holder->fingerprint, '0');
	nodes_round_run(&round, &request, &w);
	nodes_round_end(&round);
	done = quorum_count(&round.ballot, VOTE_YES);
	if (done + quorum_count(&round.ballot, VOTE_NO) < quorum_majority(round.ballot.nodes))
		return nodes_no_quorum(n, &round.ballot, round.error, err);
	if (done == 0)
		return nodes_round_refused(&round, ownership, err);
	*ownership = OWNED;
	return ST_OK;
}

/* -- Asking ------------------------------------------------------------------ */

/* A majority must have the mark, as it must for a break.  A node that takes longer gets it, too. */
enum status
redis_ask(struct backend *backend, const struct break_args *args, enum ownership *ownership, struct err *err)
{
	struct nodes *const n = &((struct redis_backend *)backend)->nodes;
	struct waiting w = { .nodes = n,
		.limit = { clock_add(clock_now_us(), n->node_timeout_us), -1 },
		.patience = AS_FAR_AWAY,
		.began_us = clock_now_us() };
	struct command request;
	struct keys names;
	struct round round;

	round.holds = NULL;
	keys_of(args->key, &names);
	command_eval(&request, SCRIPT_ASK, &names, "%s %s", args->holder->token, args->by);
	nodes_round_run(&round, &request, &w);
	nodes_round_end(&round);
	return outcome(&round, ownership, err);
}
