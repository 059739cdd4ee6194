/* SPDX-License-Identifier: MIT */
#include "redis/operations.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

static enum status
outcome(const struct redis_service *s, enum verdict verdict, enum ownership *ownership, struct err *err)
{
	const struct round *r = &s->renewal->round;

	switch (verdict) {
	case VERDICT_CARRIED:
		*ownership = OWNED;
		return ST_OK;
	case VERDICT_REFUSED:
		*ownership = round_ownership(r);
		return err_set(err, ST_NO, *ownership == OWNED_BY_ANOTHER ? "held by another" : "already expired");
	case VERDICT_SPLIT:
		return err_set(err, ST_NO_QUORUM, "fewer than a majority of the %d nodes say that the lock is ours",
		    r->ballot.nodes);
	case VERDICT_OPEN:
	case VERDICT_NO_QUORUM:
		break;
	}
	return fault_no_quorum(&s->fleet, r->ballot.vote, r->fault, r->ballot.closed, err);
}

/* The length that every node which renewed the lease has given it at least. */
static int64_t
shortest_ttl(const struct round *r)
{
	int64_t shortest = 0;
	int i;

	for (i = 0; i < r->ballot.nodes; i++) {
		if (r->ballot.vote[i] == VOTE_YES && (shortest == 0 || r->ttl_ms[i] < shortest))
			shortest = r->ttl_ms[i];
	}
	return shortest;
}

enum status
redis_renew(struct service *service, struct lease *lease, int64_t until_us, int interrupt_fd, int64_t *sent_us,
    enum ownership *ownership, struct err *err)
{
	struct redis_service *s = (struct redis_service *)service;
	const int64_t deadline = clock_add(clock_now_us(), s->fleet.round_us);
	const int64_t until = deadline < until_us ? deadline : until_us;
	struct renewal *renewal;
	enum fleet_event event = FLEET_ANSWERED;
	enum verdict verdict;

	if (s->renewal == NULL)
		s->renewal = malloc(sizeof(*s->renewal));
	renewal = s->renewal;
	if (renewal == NULL)
		return err_set(err, ST_SYSTEM, "out of memory");
	names_of(lease->key, &renewal->names);
	request_eval(&renewal->request, SCRIPT_RENEW, &renewal->names);
	request_add(&renewal->request, lease->token);
	request_add_number(&renewal->request, lease->ttl_ms);
	request_add_number(&renewal->request, lease->fence);
	renewal->heal_tag = 0;
	memset(renewal->healing, 0, sizeof(renewal->healing));
	trace_say(&s->fleet.trace, "renewing the lease");
	*sent_us = clock_now_us();
	round_start(&renewal->round, &s->fleet, &s->debts, &renewal->request);
	while ((verdict = quorum_judge(&renewal->round.ballot)) == VERDICT_OPEN && event == FLEET_ANSWERED)
		event = round_turn(&renewal->round, until, interrupt_fd);
	if (event == FLEET_INTERRUPTED && verdict == VERDICT_OPEN)
		return err_set(err, ST_INTERRUPTED, "interrupted");
	if (event == FLEET_TIME && verdict == VERDICT_OPEN)
		round_close(&renewal->round);
	if (lease->ttl_ms == 0)
		lease->ttl_ms = shortest_ttl(&renewal->round);
	return outcome(s, quorum_judge(&renewal->round.ballot), ownership, err);
}

/* -- Healing ---------------------------------------------------------------- */

static void
deliver(void *context, int node, const struct delivery *d)
{
	struct redis_service *s = context;
	struct renewal *r = s->renewal;

	if (r->heal_tag == 0 || d->tag != r->heal_tag) {
		(void)round_deliver(&r->round, node, d);
		return;
	}
	r->healing[node] = false;
	trace_say(&s->fleet.trace, "%s: the lock %s", node_name(s->fleet.node[node]),
	    d->reply != NULL && reply_integer(d->reply) == 1 ? "was given back to it"
							     : "could not be given back to it");
}

/*
 * The node said at heard_us, when its clock stood at server_ms or later, that nobody holds the lock.  Validity ends
 * when its clock has gone on for as long as ours may still.
 */
static void
send_heal(struct redis_service *s, const struct lease *lease, int node, int64_t valid_until_us)
{
	struct renewal *r = s->renewal;
	const int64_t left_us = valid_until_us - r->round.heard_us[node];
	struct request request;

	if (r->heal_tag == 0)
		r->heal_tag = fleet_new_tag(&s->fleet);
	request_eval(&request, SCRIPT_HEAL, &r->names);
	request_add(&request, lease->token);
	request_add_number(&request, lease->ttl_ms);
	request_add_number(&request, lease->fence);
	request_add_number(&request, r->round.server_ms[node] + left_us / 1000);
	request_add(&request, lease->owner != NULL ? lease->owner : "");
	request_add(&request, lease->label != NULL ? lease->label : "");
	request_add_number(&request, (clock_now_us() - lease->sent_us) / 1000);
	request_add(&request, r->round.holds);
	fleet_send(&s->fleet, node, r->heal_tag, &request);
	r->healing[node] = true;
}

/* Send what is due; true while there is something to wait for. */
static bool
heal_on(struct redis_service *s, const struct lease *lease, int64_t valid_until_us)
{
	struct round *round = &s->renewal->round;
	bool busy = !round_heard(round);
	int i;

	for (i = 0; i < s->fleet.nodes; i++) {
		if (round->ballot.vote[i] == VOTE_NO && round->owner[i] == OWNED_BY_NOBODY) {
			round->owner[i] = OWNED; /* once for each round */
			send_heal(s, lease, i, valid_until_us);
		}
		busy = busy || s->renewal->healing[i];
	}
	return busy;
}

void
redis_heal(struct service *service, const struct lease *lease, int64_t valid_until_us, int64_t until_us,
    int interrupt_fd)
{
	struct redis_service *s = (struct redis_service *)service;
	const int64_t deadline = clock_add(s->fleet.round_us, clock_now_us());
	const int64_t until = deadline < until_us ? deadline : until_us;
	enum fleet_event event = FLEET_ANSWERED;

	if (s->fleet.nodes == 1)
		return;
	while (event == FLEET_ANSWERED && heal_on(s, lease, valid_until_us))
		event = fleet_turn(&s->fleet, until, interrupt_fd, deliver, s);
	/* Who was interrupted can't call the others silent: the release that comes next must reach them. */
	if (event != FLEET_INTERRUPTED)
		round_close(&s->renewal->round);
}
