/* SPDX-License-Identifier: MIT */
#include "redis/operations.h"

#include <string.h>

#include "base/clock.h"

#define WINDOW_LEAST_MS 1000
#define LONG_GRACE_US 100000 /* for a node that takes longer */
#define FAR_GRACE_US 300000  /* the most that is added for a node that is far away */

/*
 * Does the release at this node depend on this process?  Once it has been written to a connection in use, it will be
 * executed, whether the reply is received or not.
 */
static bool
needs_us(const struct redis_backend *s, const struct round *r, int node)
{
	if (r->ballot.unresponsive[node] || r->ballot.vote[node] != VOTE_PENDING)
		return false;
	return node_needs_us(s->nodes.node[node]);
}

/* The grace period of a node, which includes the time to establish a new connection. */
static int64_t
grace_us(const struct node *n)
{
	const int64_t connecting = 3 * node_channel(n)->took_us;

	return (node_takes_long(n) ? LONG_GRACE_US : GRACE_US) +
	    (connecting < FAR_GRACE_US ? connecting : FAR_GRACE_US);
}

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
	int64_t grace;
	int i;

	do {
		w.limit.until_us = 0;
		for (i = 0; i < s->nodes.count; i++) {
			if (!needs_us(s, r, i))
				continue;
			grace = clock_add(now, 2 * (now - began_us) + grace_us(s->nodes.node[i]));
			if (node_resends(s->nodes.node[i]) || grace > until_us)
				grace = until_us;
			w.limit.until_us = grace > w.limit.until_us ? grace : w.limit.until_us;
		}
	} while (w.limit.until_us > clock_now_us() && nodes_await(&w, ROUND_OPEN));
}

/* OWNED if the whole lock was released with this hold on a majority of the nodes, otherwise OWNED_STILL. */
static enum ownership
what_ended(const struct round *r)
{
	int i, wholly = 0;

	for (i = 0; i < r->ballot.nodes; i++)
		wholly += r->ballot.vote[i] == VOTE_YES && r->owner[i] == OWNED;
	return wholly >= quorum_majority(r->ballot.nodes) ? OWNED : OWNED_STILL;
}

/* The lock was not ours, if a majority can't have known it as ours, counting the nodes that have not replied. */
static enum status
outcome(const struct round *r, enum ownership *ownership, struct err *err)
{
	const enum verdict verdict = quorum_judge(&r->ballot);

	if (verdict == VERDICT_CARRIED) {
		*ownership = what_ended(r);
		return ST_OK;
	}
	if (verdict == VERDICT_SPLIT &&
	    r->ballot.nodes - quorum_count(&r->ballot, VOTE_NO) < quorum_majority(r->ballot.nodes))
		return nodes_round_refused(r, ownership, err);
	return nodes_round_outcome(r, ownership, err);
}

/* The time within which the waiter that receives the handoff token must acquire the lock. */
static int64_t
window_ms(const struct redis_backend *s)
{
	const int64_t rounds_ms = 2 * s->nodes.node_timeout_us / 1000;

	return rounds_ms > WINDOW_LEAST_MS ? rounds_ms : WINDOW_LEAST_MS;
}

static void
write_request(struct command *r, const struct redis_backend *s, const struct keys *names, const struct lease *lease,
    int64_t keep_ms)
{
	command_eval(r, SCRIPT_RELEASE, names, "%s %jd %c %d %jd %d %s %s", lease->token, keep_ms > 0 ? keep_ms : 0,
	    lease->again ? '1' : '0', s->nodes.count > 1, window_ms(s), keep_ms == KEEP_NOTHING,
	    strcmp(lease->token, s->taken.token) == 0 ? s->taken.handoff : "",
	    lease->outcome != NULL ? lease->outcome : "released -");
	if (keep_ms > 0 || lease->broken_by != NULL) {
		command_add(r, lease->kept_by != NULL ? lease->kept_by : "min-hold");
		command_add(r, lease->broken_by != NULL ? lease->broken_by : "");
	}
	r->keeps_trying = true;
}

enum status
redis_release(struct backend *backend, const struct lease *lease, int64_t keep_ms, enum ownership *ownership,
    struct err *err)
{
	struct redis_backend *s = (struct redis_backend *)backend;
	const int64_t began = clock_now_us();
	struct waiting w = { .nodes = &s->nodes, .limit = { clock_add(began, s->nodes.node_timeout_us), -1 } };
	struct command request;
	struct keys names;
	struct round round;
	int i;

	round.holds = NULL;
	keys_of(lease->key, &names);
	write_request(&request, s, &names, lease, keep_ms);
	log_debug(&s->nodes.log, keep_ms > 0 ? "releasing the lock in %d ms" : "releasing the lock", (int)keep_ms);
	/*
	 * Do not send the release after an older request: a server that finds the connection closed when it replies to
	 * that request reads no further.  On a new connection the release may overtake the older request, which is then
	 * refused, since the token is recorded as gone.
	 */
	for (i = 0; i < s->nodes.count; i++)
		node_disconnect(s->nodes.node[i]);
	nodes_round_run(&round, &request, &w);
	linger(s, &round, began, w.limit.until_us);
	nodes_round_end(&round);
	return outcome(&round, ownership, err);
}
