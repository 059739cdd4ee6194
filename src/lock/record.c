/* SPDX-License-Identifier: MIT */
#include "lock/record.h"

#include <stdlib.h>
#include <string.h>

const char *
record_state(enum lock_state state)
{
	static const char *const names[] = { [LOCK_FREE] = "free",
		[LOCK_HELD] = "held",
		[LOCK_HANDOVER] = "handover",
		[LOCK_KEPT] = "kept",
		[LOCK_OTHER_CLIENT] = "foreign",
		[LOCK_CONTENDED] = "contended",
		[LOCK_UNKNOWN] = "unknown" };

	return names[state];
}

bool
record_is_held(const struct record *r)
{
	return r->state != LOCK_FREE && r->state != LOCK_CONTENDED && r->state != LOCK_UNKNOWN;
}

const struct holder *
record_holder(const struct record *r)
{
	static const struct holder nobody;

	return record_is_held(r) ? &r->holder[0] : &nobody;
}

void
record_note_break(struct record *r, const struct broken *b)
{
	if (b->token[0] != '\0' && (r->broken.token[0] == '\0' || b->ago_ms < r->broken.ago_ms))
		r->broken = *b;
}

void
record_free(struct record *r)
{
	free(r->former);
	free(r->waiter);
	r->former = NULL;
	r->waiter = NULL;
	r->formers = r->former_room = r->waiters = r->waiter_room = 0;
}

/* -- Merging ---------------------------------------------------------------- */

/* Are these the same holder?  The token alone identifies a lock of dlock, and the exact value of the key any other. */
static bool
is_same(const struct holder *a, const struct holder *b)
{
	if (strcmp(a->token, b->token) != 0)
		return false;
	if (a->fingerprint[0] == '\0' && b->fingerprint[0] == '\0')
		return true;
	return (a->state == LOCK_OTHER_CLIENT) == (b->state == LOCK_OTHER_CLIENT) &&
	    (a->state != LOCK_OTHER_CLIENT || strcmp(a->fingerprint, b->fingerprint) == 0);
}

/* Does a lease last at least that long?  Negative: it never ends. */
static bool
lasts(int64_t left_ms, int64_t long_ms)
{
	return left_ms < 0 || (long_ms >= 0 && left_ms >= long_ms);
}

/* A holder, and the nodes that report it. */
struct side {
	bool member[NODES_MAX];
	int members;
	int most; /* of its members have the state of the one that represents it */
};

/*
 * Collect the nodes that agree with this one.  Some of them may see the lock as released already, or lack its metadata: what
 * most of them say counts.  Returns the one that represents them.
 */
static int
take_side(const struct record *r, const struct holder *said, int node, struct side *side)
{
	int i, j, same, best = node;

	memset(side, 0, sizeof(*side));
	for (i = 0; i < r->nodes; i++) {
		side->member[i] = r->node[i].state != LOCK_UNKNOWN &&
		    (r->node[i].state == LOCK_FREE) == (r->node[node].state == LOCK_FREE) &&
		    (r->node[i].state == LOCK_FREE || is_same(&said[i], &said[node]));
		side->members += side->member[i];
	}
	for (i = 0; i < r->nodes; i++) {
		for (j = 0, same = 0; j < r->nodes; j++)
			same += side->member[j] && r->node[i].state == r->node[j].state;
		if (side->member[i] && same > side->most) {
			side->most = same;
			best = i;
		}
	}
	return best;
}

/* Add a holder: what its nodes surely have in common, and the largest numbers of holds and waiters that any reports. */
static void
add_holder(struct record *r, const struct holder *said, int node, const struct side *side)
{
	struct holder *const h = &r->holder[r->holders++];
	int i, j, lasting, fences;

	*h = said[node];
	h->state = r->node[node].state;
	h->nodes = side->members;
	h->left_ms = h->fence = 0;
	for (i = 0; i < r->nodes; i++) {
		if (!side->member[i])
			continue;
		for (j = 0, lasting = 0, fences = 0; j < r->nodes; j++) {
			lasting += side->member[j] && lasts(r->node[j].left_ms, r->node[i].left_ms);
			fences += side->member[j] && said[j].fence == said[i].fence;
		}
		if (lasting >= quorum_majority(r->nodes) && lasts(r->node[i].left_ms, h->left_ms))
			h->left_ms = r->node[i].left_ms;
		if (fences >= quorum_majority(r->nodes))
			h->fence = said[i].fence;
		h->waiting = said[i].waiting > h->waiting ? said[i].waiting : h->waiting;
		h->holds = said[i].holds > h->holds ? said[i].holds : h->holds;
	}
	if (side->members < quorum_majority(r->nodes))
		h->left_ms = said[node].left_ms;
}

bool
record_merge(struct record *r, const struct holder said[NODES_MAX])
{
	bool taken[NODES_MAX] = { false };
	struct side side;
	int i, j, node, known = 0;

	r->state = LOCK_UNKNOWN;
	r->holders = r->agreeing = 0;
	for (i = 0; i < r->nodes; i++) {
		known += r->node[i].state != LOCK_UNKNOWN;
		if (r->node[i].state == LOCK_UNKNOWN || taken[i])
			continue;
		node = take_side(r, said, i, &side);
		for (j = 0; j < r->nodes; j++)
			taken[j] |= side.member[j];
		r->agreeing = side.members > r->agreeing ? side.members : r->agreeing;
		if (side.members >= quorum_majority(r->nodes)) {
			r->state = r->node[node].state;
			r->holders = 0;
		}
		if (r->node[node].state != LOCK_FREE)
			add_holder(r, said, node, &side);
		if (r->state != LOCK_UNKNOWN)
			return true;
	}
	if (known >= quorum_majority(r->nodes))
		r->state = LOCK_CONTENDED;
	else
		r->holders = 0;
	return r->state == LOCK_CONTENDED;
}
