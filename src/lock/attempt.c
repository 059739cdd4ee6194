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
	memset(a, 0, offsetof(struct attempt, token));
	a->terms = *terms;
	a->started_us = now_us;
	a->deadline_us = clock_add(now_us, terms->node_timeout_us);
	a->valid_until_us = lease_valid_until(now_us, terms->ttl_us);
	a->again_us = CLOCK_NEVER;
	a->pause_us = AGAIN_FIRST_US;
	a->grants.nodes = a->raises.nodes = terms->nodes;
	memset(a->perhaps, true, sizeof(a->perhaps));
	memcpy(a->grants.unresponsive, terms->unresponsive, sizeof(terms->unresponsive));
}

/* A node has reported this holder.  Its side has the number of the first node that did. */
static void
refuse(struct attempt *a, int node, const struct holder *holder)
{
	int i = 0;

	while (i < a->terms.nodes && (a->grants.vote[i] != VOTE_NO || strcmp(a->token[i], holder->token) != 0))
		i++;
	a->grants.side[node] = i < a->terms.nodes ? a->grants.side[i] : node;
	a->grants.vote[node] = VOTE_NO;
	a->kept_us[node] = holder->state == LOCK_KEPT ? holder->left_ms * 1000 : 0;
	memcpy(a->token[node], holder->token, sizeof(a->token[node]));
	if (attempt_held_at(a, node))
		a->holder = *holder;
}

void
attempt_answer(struct attempt *a, int node, const struct attempt_answer *answer)
{
	const enum vote vote = answer->vote;

	a->perhaps[node] = vote == VOTE_YES || (vote == VOTE_FAULT && !answer->harmless);
	if (vote == VOTE_NO && a->terms.handoff != NULL && a->terms.handoff[0] != '\0' &&
	    !holder_has_ended(&answer->holder) && strcmp(answer->holder.token, a->terms.handoff) == 0) {
		a->early[node] = true;
		a->early_holder = answer->holder;
		return;
	}
	if (vote == VOTE_NO) {
		refuse(a, node, &answer->holder);
		return;
	}
	a->grants.vote[node] = vote;
	a->fences[node] = answer->fence;
	/* A late grant with this fence has recorded it; one with a larger fence hasn't. */
	if (vote == VOTE_YES && a->raising && answer->fence == a->fence)
		a->raises.vote[node] = VOTE_YES;
}

void
attempt_raised(struct attempt *a, int node, enum vote vote, bool too_far)
{
	a->raises.vote[node] = vote;
	a->too_far = a->too_far || too_far;
}

void
attempt_lost(struct attempt *a, int node)
{
	a->grants.vote[node] = a->raises.vote[node] = VOTE_FAULT;
}

/* A majority granted the lock.  The largest fence is used, and a majority must have recorded it. */
static enum attempt_step
settle_fence(struct attempt *a)
{
	int i;

	for (i = 0; i < a->terms.nodes; i++) {
		if (a->grants.vote[i] == VOTE_YES && a->fences[i] > a->fence)
			a->fence = a->fences[i];
	}
	for (i = 0; i < a->terms.nodes; i++)
		a->raises.vote[i] = a->grants.vote[i] != VOTE_YES ? VOTE_FAULT
		    : a->fences[i] == a->fence			  ? VOTE_YES
								  : VOTE_PENDING;
	if (quorum_count(&a->raises, VOTE_YES) >= quorum_majority(a->terms.nodes))
		return ATTEMPT_GRANTED;
	a->raising = true;
	a->too_far = false;
	a->again_us = CLOCK_NEVER; /* a majority has granted the lock: no more retries */
	return ATTEMPT_RAISE;
}

/*
 * A node refuses the fence.  If no majority can record it any more, ignore the grants of the nodes that returned it.
 * The grants of the others may still be a majority.
 */
static void
exclude_grants(struct attempt *a, bool closed)
{
	int i;

	if (quorum_count(&a->raises, VOTE_YES) + (closed ? 0 : quorum_count(&a->raises, VOTE_PENDING)) >=
	    quorum_majority(a->terms.nodes))
		return;
	for (i = 0; i < a->terms.nodes; i++) {
		if (a->grants.vote[i] != VOTE_YES || a->fences[i] != a->fence)
			continue;
		a->grants.vote[i] = VOTE_FAULT;
		a->excluded[i] = true;
	}
	a->fence = 0;
	a->raising = false;
}

/* Does a node report that the handoff token still holds the lock?  After the deadline, that is who has it there. */
static bool
any_early(struct attempt *a, bool closed)
{
	bool any = false;
	int i;

	for (i = 0; i < a->terms.nodes; i++) {
		if (a->early[i] && closed)
			refuse(a, i, &a->early_holder);
		a->early[i] = a->early[i] && !closed;
		any = any || a->early[i];
	}
	return any;
}

enum attempt_step
attempt_next(struct attempt *a, int64_t now_us)
{
	static const enum attempt_step failure[] = { [VERDICT_REFUSED] = ATTEMPT_HELD,
		[VERDICT_SPLIT] = ATTEMPT_SPLIT,
		[VERDICT_NO_QUORUM] = ATTEMPT_NO_QUORUM };
	const bool closed = now_us >= a->deadline_us, early = any_early(a, closed);
	struct ballot *ballot;
	enum verdict verdict;

	if (a->raising && a->too_far)
		exclude_grants(a, closed);
	ballot = a->raising ? &a->raises : &a->grants;
	ballot->closed = closed;
	verdict = quorum_judge(ballot);
	if (verdict == VERDICT_OPEN && early && !a->raising && a->again_us == CLOCK_NEVER)
		a->again_us = clock_add(now_us, a->pause_us);
	if (verdict == VERDICT_OPEN)
		return early && now_us >= a->again_us ? ATTEMPT_AGAIN : ATTEMPT_WAIT;
	if (verdict != VERDICT_CARRIED)
		return a->raising && verdict == VERDICT_REFUSED ? ATTEMPT_SPLIT : failure[verdict];
	if (now_us >= a->valid_until_us)
		return ATTEMPT_TOO_SLOW;
	return a->raising ? ATTEMPT_GRANTED : settle_fence(a);
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
	a->pause_us = clock_sooner(a->pause_us * 2, AGAIN_MOST_US);
}

bool
attempt_perhaps_granted(const struct attempt *a, int node)
{
	return a->perhaps[node];
}

const struct holder *
attempt_holder(const struct attempt *a)
{
	return quorum_count(&a->grants, VOTE_NO) > 0 ? &a->holder : NULL;
}

bool
attempt_held_at(const struct attempt *a, int node)
{
	int i, named, most = 0, side = -1; /* on which most nodes are, or else the first node */

	for (i = 0; i < a->terms.nodes; i++) {
		named = quorum_side(&a->grants, i);
		side = named > most ? a->grants.side[i] : side;
		most = named > most ? named : most;
	}
	return a->grants.vote[node] == VOTE_NO && a->grants.side[node] == side;
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
