/* SPDX-License-Identifier: MIT */
#include "redis/undo.h"

#include "base/clock.h"

/* Nodes whose answer didn't matter get at least this much time to take an undo off our hands. */
#define GRACE_US 20000
#define UNDO_RESENDS 2

/* A node as near as those that have decided answers within this time, or within what they took. */
#define HEAR_US 1000

/*
 * Must this node's answer to an undo be waited for?  A node that has answered the attempt: yes.  One that hasn't, for a
 * grace only, since it may be hung.  Written is not enough: a server that finds us gone when it answers the request
 * doesn't read on, and the undo behind it is lost.  From a node that was silent before nothing is expected.
 */
static bool
awaits_undo(const struct undo *u, int node, bool in_grace)
{
	const bool answered = u->attempt->grants.vote[node] != VOTE_PENDING;

	return debts_under_way(u->debts, node) && (answered || (in_grace && !u->fleet->suspect[node]));
}

static bool
undo_awaited(const struct undo *u, bool in_grace)
{
	int i;

	for (i = 0; i < u->fleet->nodes; i++) {
		if (awaits_undo(u, i, in_grace))
			return true;
	}
	return false;
}

static bool
send_debts(const struct undo *u)
{
	bool any = false;
	int i;

	for (i = 0; i < u->fleet->nodes; i++)
		any = debts_send(u->debts, u->fleet, i, u->names) || any;
	return any;
}

/*
 * Will this node perhaps answer in a moment?  One of a Cluster may say that the key is elsewhere: there the undo has to be
 * under way, so that the attempt isn't sent on.
 */
static bool
about_to_answer(const struct undo *u, int node)
{
	return u->attempt->grants.vote[node] == VOTE_PENDING && attempt_perhaps_granted(u->attempt, node) &&
	    !u->fleet->suspect[node] && node_url(u->fleet->node[node])->kind != URL_CLUSTER;
}

static bool
unheard(const struct undo *u)
{
	int i;

	for (i = 0; i < u->fleet->nodes; i++) {
		if (about_to_answer(u, i))
			return true;
	}
	return false;
}

/* Note what is to be undone and wasn't noted yet, but for nodes that are still to be heard.  True if any. */
static bool
owe(const struct undo *u, bool owed[NODES_MAX], bool hear)
{
	bool any = false;
	int i;

	for (i = 0; i < u->fleet->nodes; i++) {
		if (owed[i] || !attempt_perhaps_granted(u->attempt, i) || (hear && about_to_answer(u, i)))
			continue;
		debts_note(u->debts, i, u->token);
		owed[i] = any = true;
	}
	return any;
}

void
undo_attempt(const struct undo *u, int64_t took_us, bool hear, fleet_deliver *deliver, void *context)
{
	const int64_t now = clock_now_us(), round_us = u->fleet->round_us;
	const int64_t until = clock_sooner(clock_add(now, round_us > GRACE_US ? round_us : GRACE_US), u->until_us);
	const int64_t grace = clock_sooner(clock_add(now, 8 * took_us > GRACE_US ? 8 * took_us : GRACE_US), until);
	const int64_t hear_until = clock_sooner(clock_add(now, took_us > HEAR_US ? took_us : HEAR_US), grace);
	bool owed[NODES_MAX] = { false }, more, in_grace = true;
	int resends = UNDO_RESENDS;
	enum fleet_event event;
	int64_t end;

	fleet_forget_unsent(u->fleet, !u->attempt->grants.closed, deliver, context);
	for (;;) {
		hear = hear && clock_now_us() < hear_until && unheard(u);
		more = owe(u, owed, hear);
		if ((more || resends > 0) && send_debts(u) && !more)
			resends--;
		if (more)
			trace_say(&u->fleet->trace, "taking back what may have been granted");
		if (!hear && !undo_awaited(u, in_grace))
			break;
		end = in_grace ? grace : until;
		event = fleet_turn(u->fleet, hear ? hear_until : end, -1, deliver, context);
		if (event != FLEET_TIME || hear)
			continue;
		if (end == until)
			break;
		in_grace = false;
	}
}
