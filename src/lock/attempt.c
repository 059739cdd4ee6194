/* SPDX-License-Identifier: MIT */
#include "lock/attempt.h"

#include <stddef.h>
#include <string.h>

#include "base/clock.h"
#include "lock/lease.h"

/* Delay before the request is repeated to a node that hasn't received the release yet.  It doubles each time. */
#define AGAIN_FIRST_US 500
#define AGAIN_MOST_US 20000

void
attempt_start(struct attempt *a, const struct attempt_terms *terms, int64_t now_us)
{
	int i;

	memset(a, 0, offsetof(struct attempt, token));
	a->terms = *terms;
	a->started_us = now_us;
	a->deadline_us = clock_add(now_us, terms->node_timeout_us);
	a->valid_until_us = lease_valid_until(now_us, terms->ttl_us);
	a->again_us = CLOCK_NEVER;
	a->pause_us = AGAIN_FIRST_US;
	a->grants.nodes = a->raises.nodes = terms->nodes;
	for (i = 0; i < terms->nodes; i++) {
		a->perhaps[i] = true;
		a->grants.unresponsive[i] = terms->unresponsive[i];
	}
}

/* The number of a node's side: the first node that reported the same holder. */
static int
side_of(const struct attempt *a, int node)
{
	int i;

	for (i = 0; i < node; i++) {
		if (a->grants.vote[i] == VOTE_NO && strcmp(a->token[i], a->token[node]) == 0)
			return a->grants.side[i];
	}
	return node;
}

/* A node has reported this holder. */
static void
refuse(struct attempt *a, int node, const struct holder *holder)
{
	int i;

	a->grants.vote[node] = VOTE_NO;
	a->kept_us[node] = holder->state == LOCK_KEPT ? holder->left_ms * 1000 : 0;
	memcpy(a->token[node], holder->token, sizeof(a->token[node]));
	for (i = 0; i < a->terms.nodes; i++) {
		if (a->grants.vote[i] == VOTE_NO)
			a->grants.side[i] = side_of(a, i);
	}
	if (attempt_held_at(a, node))
		a->holder = *holder;
}

static bool
is_early(const struct attempt *a, const struct attempt_answer *answer)
{
	return answer->vote == VOTE_NO && a->terms.handoff != NULL && a->terms.handoff[0] != '\0' &&
	    !holder_has_ended(&answer->holder) && strcmp(answer->holder.token, a->terms.handoff) == 0;
}

void
attempt_answer(struct attempt *a, int node, const struct attempt_answer *answer)
{
	a->perhaps[node] = answer->vote == VOTE_YES || (answer->vote == VOTE_FAULT && !answer->harmless);
	if (is_early(a, answer)) {
		a->early[node] = true;
		a->early_holder = answer->holder;
		return;
	}
	a->grants.vote[node] = answer->vote;
	if (answer->vote == VOTE_YES) {
		a->fences[node] = answer->fence;
		if (a->raising && answer->fence == a->fence)
			a->raises.vote[node] =
			    VOTE_YES; /* a late grant with this fence has recorded it; one with a larger fence hasn't */
	}
	if (answer->vote == VOTE_NO)
		refuse(a, node, &answer->holder);
}

void
attempt_raised(struct attempt *a, int node, enum vote vote)
{
	a->raises.vote[node] = vote;
}

void
attempt_refused_fence(struct attempt *a, int node)
{
	a->raises.vote[node] = VOTE_NO;
	a->too_far = true;
}

void
attempt_lost(struct attempt *a, int node)
{
	a->grants.vote[node] = VOTE_FAULT;
	a->raises.vote[node] = VOTE_FAULT;
}

static void
start_raising(struct attempt *a)
{
	int i;

	a->raising = true;
	a->too_far = false;
	a->again_us = CLOCK_NEVER; /* a majority has granted the lock: no more retries */
	for (i = 0; i < a->terms.nodes; i++) {
		if (a->grants.vote[i] != VOTE_YES)
			a->raises.vote[i] = VOTE_FAULT;
		else
			a->raises.vote[i] = a->fences[i] == a->fence ? VOTE_YES : VOTE_PENDING;
	}
}

/* A majority granted the lock.  The largest fence is used, and a majority must have recorded it. */
static enum attempt_step
settle_fence(struct attempt *a)
{
	int i, recorded = 0;

	for (i = 0; i < a->terms.nodes; i++) {
		if (a->grants.vote[i] == VOTE_YES && a->fences[i] > a->fence)
			a->fence = a->fences[i];
	}
	for (i = 0; i < a->terms.nodes; i++)
		recorded += a->grants.vote[i] == VOTE_YES && a->fences[i] == a->fence;
	if (recorded >= quorum_majority(a->terms.nodes))
		return ATTEMPT_GRANTED;
	start_raising(a);
	return ATTEMPT_RAISE;
}

/* Can a majority still record the fence? */
static bool
may_be_recorded(const struct attempt *a, int64_t now_us)
{
	int i, may = 0;

	for (i = 0; i < a->terms.nodes; i++)
		may += a->raises.vote[i] == VOTE_YES || (a->raises.vote[i] == VOTE_PENDING && now_us < a->deadline_us);
	return may >= quorum_majority(a->terms.nodes);
}

/* Ignore the grants of the nodes that returned this fence.  The grants of the others may still be a majority. */
static void
exclude_grants(struct attempt *a)
{
	int i;

	for (i = 0; i < a->terms.nodes; i++) {
		if (a->grants.vote[i] != VOTE_YES || a->fences[i] != a->fence)
			continue;
		a->grants.vote[i] = VOTE_FAULT;
		a->excluded[i] = true;
	}
	a->fence = 0;
	a->raising = false;
}

static enum attempt_step
failure(enum verdict verdict)
{
	switch (verdict) {
	case VERDICT_REFUSED:
		return ATTEMPT_HELD;
	case VERDICT_SPLIT:
		return ATTEMPT_SPLIT;
	case VERDICT_OPEN:
	case VERDICT_CARRIED:
	case VERDICT_NO_QUORUM:
		break;
	}
	return ATTEMPT_NO_QUORUM;
}

static bool
any_early(const struct attempt *a)
{
	int i;

	for (i = 0; i < a->terms.nodes; i++) {
		if (a->early[i])
			return true;
	}
	return false;
}

/* The outcome is still open: wait, or repeat the request to the early nodes when that is due. */
static enum attempt_step
go_on(struct attempt *a, int64_t now_us)
{
	if (a->raising || !any_early(a))
		return ATTEMPT_WAIT;
	if (a->again_us == CLOCK_NEVER)
		a->again_us = clock_add(now_us, a->pause_us);
	return now_us < a->again_us ? ATTEMPT_WAIT : ATTEMPT_AGAIN;
}

/* The deadline has passed and the release did not arrive: the previous holder still has the lock there. */
static void
close_early(struct attempt *a)
{
	int i;

	for (i = 0; i < a->terms.nodes; i++) {
		if (a->early[i])
			refuse(a, i, &a->early_holder);
		a->early[i] = false;
	}
}

enum attempt_step
attempt_next(struct attempt *a, int64_t now_us)
{
	struct ballot *ballot;
	enum verdict verdict;

	if (a->raising && a->too_far && !may_be_recorded(a, now_us))
		exclude_grants(a);
	ballot = a->raising ? &a->raises : &a->grants;
	ballot->closed = now_us >= a->deadline_us;
	if (ballot->closed)
		close_early(a);
	verdict = quorum_judge(ballot);
	if (verdict == VERDICT_OPEN)
		return go_on(a, now_us);
	if (verdict != VERDICT_CARRIED)
		return a->raising ? (verdict == VERDICT_NO_QUORUM ? ATTEMPT_NO_QUORUM : ATTEMPT_SPLIT)
				  : failure(verdict);
	if (now_us >= a->valid_until_us)
		return ATTEMPT_TOO_SLOW;
	return a->raising ? ATTEMPT_GRANTED : settle_fence(a);
}

int64_t
attempt_wake_us(const struct attempt *a)
{
	return clock_sooner(a->again_us, a->deadline_us);
}

void
attempt_repeated(struct attempt *a)
{
	int i;

	for (i = 0; i < a->terms.nodes; i++) {
		a->perhaps[i] = a->perhaps[i] || a->early[i];
		a->early[i] = false;
	}
	a->again_us = CLOCK_NEVER;
	a->pause_us = a->pause_us * 2 < AGAIN_MOST_US ? a->pause_us * 2 : AGAIN_MOST_US;
}

bool
attempt_needs_fence(const struct attempt *a, int node)
{
	return a->raising && a->raises.vote[node] == VOTE_PENDING;
}

bool
attempt_perhaps_granted(const struct attempt *a, int node)
{
	return a->perhaps[node];
}

/* The first node on the side that most nodes are on; -1: no node has reported a holder. */
static int
leader(const struct attempt *a)
{
	int i, j, named, most = 0, first = -1;

	for (i = 0; i < a->terms.nodes; i++) {
		for (j = 0, named = 0; j < a->terms.nodes; j++)
			named += a->grants.vote[i] == VOTE_NO && a->grants.vote[j] == VOTE_NO &&
			    a->grants.side[j] == a->grants.side[i];
		if (named > most) {
			most = named;
			first = i;
		}
	}
	return first;
}

const struct holder *
attempt_holder(const struct attempt *a)
{
	return leader(a) >= 0 ? &a->holder : NULL;
}

bool
attempt_held_at(const struct attempt *a, int node)
{
	const int first = leader(a);

	return first >= 0 && a->grants.vote[node] == VOTE_NO && a->grants.side[node] == a->grants.side[first];
}

bool
attempt_kept(const struct attempt *a, int64_t until_us)
{
	int i, kept = 0;

	for (i = 0; i < a->terms.nodes; i++)
		kept += attempt_held_at(a, i) && a->kept_us[i] > 0 &&
		    clock_add(a->started_us, a->kept_us[i]) >= until_us;
	return kept >= quorum_majority(a->terms.nodes);
}
