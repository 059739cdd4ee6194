/* SPDX-License-Identifier: MIT */
#include "lock/merge.h"

#include <string.h>

enum lock_state
merge_state(bool held, const struct holder *holder)
{
	if (!held)
		return LOCK_FREE;
	if (holder->other_client)
		return LOCK_OTHER_CLIENT;
	if (holder->kept)
		return LOCK_KEPT;
	return holder->handover ? LOCK_HANDOVER : LOCK_HELD;
}

static bool
agree(const struct lock_status *v, const struct holder *holders, int a, int b)
{
	if (v->node[a].state == LOCK_UNKNOWN || v->node[b].state == LOCK_UNKNOWN)
		return false;
	if (v->node[a].state == LOCK_FREE || v->node[b].state == LOCK_FREE)
		return v->node[a].state == v->node[b].state;
	return strcmp(holders[a].token, holders[b].token) == 0;
}

/*
 * The node that the most nodes agree with; among several such nodes, the one whose state is the most frequent.
 * -1 if no node reported a state.
 */
static int
representative_node(const struct lock_status *v, const struct holder *holders, int *agreeing)
{
	int i, j, n, same, most_same = 0, best = -1;

	*agreeing = 0;
	for (i = 0; i < v->nodes; i++) {
		for (j = 0, n = 0, same = 0; j < v->nodes; j++) {
			n += agree(v, holders, i, j);
			same += agree(v, holders, i, j) && v->node[i].state == v->node[j].state;
		}
		if (n > *agreeing || (n == *agreeing && same > most_same)) {
			*agreeing = n;
			most_same = same;
			best = i;
		}
	}
	return best;
}

/* Does a lease last at least that long?  Negative: it never ends. */
static bool
lasts(int64_t left_ms, int64_t long_ms)
{
	return left_ms < 0 || (long_ms >= 0 && left_ms >= long_ms);
}

/* The longest time that is left on at least a majority of the nodes. */
static int64_t
surely_left(const struct lock_status *v, const struct holder *holders, int best)
{
	int64_t most = 0;
	int i, j, n;

	for (i = 0; i < v->nodes; i++) {
		if (!agree(v, holders, best, i))
			continue;
		for (j = 0, n = 0; j < v->nodes; j++)
			n += agree(v, holders, best, j) && lasts(v->node[j].left_ms, v->node[i].left_ms);
		if (n >= quorum_majority(v->nodes) && (v->node[i].left_ms < 0 || v->node[i].left_ms > most))
			most = v->node[i].left_ms;
		if (most < 0)
			break;
	}
	return most;
}

static int64_t
common_fence(const struct lock_status *v, const struct holder *holders, int best)
{
	int i, j, n;

	for (i = 0; i < v->nodes; i++) {
		for (j = 0, n = 0; j < v->nodes; j++)
			n += agree(v, holders, best, j) && holders[j].fence == holders[i].fence;
		if (agree(v, holders, best, i) && n >= quorum_majority(v->nodes))
			return holders[i].fence;
	}
	return 0;
}

/* Numbers of holds and waiters: use the largest that any agreeing node reports. */
static void
gather_counts(struct lock_status *v, const struct holder *holders, int best)
{
	int i;

	for (i = 0; i < v->nodes; i++) {
		if (!agree(v, holders, best, i))
			continue;
		if (holders[i].waiting > v->holder.waiting)
			v->holder.waiting = holders[i].waiting;
		if (holders[i].holds > v->holder.holds)
			v->holder.holds = holders[i].holds;
	}
}

/* A lock that is broken is not broken on all nodes. */
static void
find_break(struct lock_status *v, const struct holder *holders)
{
	int i;

	memset(&v->broken, 0, sizeof(v->broken));
	for (i = 0; i < v->nodes; i++) {
		if (v->node[i].state != LOCK_UNKNOWN && holders[i].broken.token[0] != '\0' &&
		    (v->broken.token[0] == '\0' || holders[i].broken.ago_ms < v->broken.ago_ms))
			v->broken = holders[i].broken;
	}
}

bool
merge_status(struct lock_status *v, const struct holder holders[NODES_MAX])
{
	int i, known = 0;
	const int best = representative_node(v, holders, &v->agreeing);

	for (i = 0; i < v->nodes; i++)
		known += v->node[i].state != LOCK_UNKNOWN;
	v->state = LOCK_UNKNOWN;
	find_break(v, holders);
	if (known < quorum_majority(v->nodes))
		return false;
	if (v->agreeing < quorum_majority(v->nodes)) {
		v->state = LOCK_CONTENDED;
		return true;
	}
	v->state = v->node[best].state;
	if (v->state == LOCK_FREE)
		return true;
	v->holder = holders[best];
	v->holder.left_ms = surely_left(v, holders, best);
	v->holder.fence = common_fence(v, holders, best);
	gather_counts(v, holders, best);
	return true;
}
