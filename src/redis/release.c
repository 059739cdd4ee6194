/* SPDX-License-Identifier: MIT */
#include "redis/operations.h"

#include <string.h>

#include "base/clock.h"

/* Once the outcome is certain, the other nodes get this much time to take the request off our hands. */
#define GRACE_US 10000
#define WINDOW_LEAST_MS 1000
#define LONG_GRACE_US 100000 /* to one that takes longer */
#define FAR_GRACE_US 300000  /* and to one that is far away at the most */

/* A release that has left this host by a connection in use is carried out, whether we hear of it or not. */
static bool
needs_us(const struct redis_service *s, const struct round *r, int node)
{
	if (r->ballot.suspect[node] || r->ballot.vote[node] != VOTE_PENDING)
		return false;
	return node_resends(s->fleet.node[node]) || !node_flushed(s->fleet.node[node]);
}

/* The grace of a node: a new connection, if it needs one, must have time to stand. */
static int64_t
grace_us(const struct node *n)
{
	const int64_t dial = 3 * node_dial_us(n);

	return (node_takes_long(n) ? LONG_GRACE_US : GRACE_US) + (dial < FAR_GRACE_US ? dial : FAR_GRACE_US);
}

/*
 * Let the release reach also the nodes whose answer no longer matters.  One that is slow gets a grace, since it may be
 * hung; one that has closed a connection is alive, and gets the whole time, unless it takes no new one.
 */
static void
linger(struct redis_service *s, struct round *r, int64_t began_us, int64_t until_us)
{
	const int64_t now = clock_now_us();
	int64_t until, grace;
	int i;

	do {
		until = 0;
		for (i = 0; i < s->fleet.nodes; i++) {
			if (!needs_us(s, r, i))
				continue;
			grace = clock_add(now, 2 * (now - began_us) + grace_us(s->fleet.node[i]));
			if (node_resends(s->fleet.node[i]) || grace > until_us)
				grace = until_us;
			until = grace > until ? grace : until;
		}
	} while (until > clock_now_us() && round_turn(r, until, -1) != FLEET_TIME);
}

/* Can a majority have known the lock as ours, silent nodes included? */
static bool
may_have_been_ours(const struct ballot *b)
{
	int i, others = 0;

	for (i = 0; i < b->nodes; i++)
		others += b->vote[i] == VOTE_NO;
	return b->nodes - others >= quorum_majority(b->nodes);
}

static enum status
outcome(const struct redis_service *s, const struct round *r, enum ownership *ownership, struct err *err)
{
	const enum verdict verdict = quorum_judge(&r->ballot);

	if (verdict == VERDICT_CARRIED) {
		*ownership = round_released(r);
		return ST_OK;
	}
	if (verdict == VERDICT_REFUSED || (verdict == VERDICT_SPLIT && !may_have_been_ours(&r->ballot))) {
		*ownership = round_ownership(r);
		return err_set(err, ST_NO, *ownership == OWNED_BY_ANOTHER ? "held by another" : "already expired");
	}
	if (verdict == VERDICT_SPLIT)
		return err_set(err, ST_NO_QUORUM, "fewer than a majority of the %d nodes say that the lock was ours",
		    r->ballot.nodes);
	return fault_no_quorum(&s->fleet, r->ballot.vote, r->fault, r->ballot.closed, err);
}

/* The time that whoever is handed the lock has to take it. */
static int64_t
window_ms(const struct redis_service *s)
{
	const int64_t rounds_ms = 2 * s->fleet.round_us / 1000;

	return rounds_ms > WINDOW_LEAST_MS ? rounds_ms : WINDOW_LEAST_MS;
}

static void
write_request(struct request *r, const struct redis_service *s, const struct names *names, const struct lease *lease,
    int64_t keep_ms)
{
	request_eval(r, SCRIPT_RELEASE, names);
	request_add(r, lease->token);
	request_add_number(r, keep_ms > 0 ? keep_ms : 0);
	request_add_again(r);
	request_add(r, s->fleet.nodes > 1 ? "1" : "0");
	request_add_number(r, window_ms(s));
	request_add(r, keep_ms == KEEP_NOTHING ? "1" : "0");
	request_add(r, strcmp(lease->token, s->taken.token) == 0 ? s->taken.baton : "");
	r->patient = true;
}

enum status
redis_release(struct service *service, const struct lease *lease, int64_t keep_ms, enum ownership *ownership,
    struct err *err)
{
	struct redis_service *s = (struct redis_service *)service;
	const int64_t began = clock_now_us();
	const int64_t until = clock_add(began, s->fleet.round_us);
	enum fleet_event event = FLEET_ANSWERED;
	struct request request;
	struct names names;
	struct round round;
	int i;

	names_of(lease->key, &names);
	write_request(&request, s, &names, lease, keep_ms);
	trace_say(&s->fleet.trace, keep_ms > 0 ? "giving the lock back in %d ms" : "giving the lock back",
	    (int)keep_ms);
	/*
	 * Not behind an older request: a server that finds us gone when it answers that one reads no further.  On a new
	 * connection the release may overtake it, and then refuses it, since the token is noted as gone.
	 */
	for (i = 0; i < s->fleet.nodes; i++)
		node_break(s->fleet.node[i]);
	round_start(&round, &s->fleet, &s->debts, &request);
	while (quorum_judge(&round.ballot) == VERDICT_OPEN && event == FLEET_ANSWERED)
		event = round_turn(&round, until, -1);
	linger(s, &round, began, until);
	round_close(&round);
	return outcome(s, &round, ownership, err);
}
