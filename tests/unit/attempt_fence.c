/* SPDX-License-Identifier: MIT */
#include "attempt_scene.h"

static void
start(struct attempt *a, int nodes)
{
	attempt_start(a, &(struct attempt_terms){ .nodes = nodes, .ttl_us = TTL, .node_timeout_us = ROUND }, START);
}

static void
grant(struct attempt *a, int node, int64_t fence)
{
	const struct attempt_answer answer = { .vote = VOTE_YES, .fence = fence };

	attempt_answer(a, node, &answer);
}

/* -- A grant that comes while the fence is raised ----------------------------- */

/*
 * A grant with the same fence counts like a recorded fence.  A grant with a greater fence doesn't: another client may have
 * received a fence between the two.
 */
static void
test_late_grant(int64_t late, enum attempt_step expected)
{
	struct attempt a;

	start(&a, 3);
	grant(&a, 0, LOW);
	grant(&a, 1, HIGH);
	is_int(attempt_next(&a, START + 1), ATTEMPT_RAISE, "two grants with two fences");
	grant(&a, 2, late);
	is_int(attempt_next(&a, START + 2), expected, "a late grant with fence %" PRId64, late);
	attempt_raised(&a, 0, VOTE_YES, false);
	is_int(attempt_next(&a, START + 3), ATTEMPT_GRANTED, "the other node has recorded it");
	is_int(a.fence, HIGH, "the fence is still the same");
}

/* -- A fence that nodes refuse to record ------------------------------------- */

/* The first node returns a fence that is too far ahead, the second one refuses it. */
static void
begin_too_far(struct attempt *a, int nodes)
{
	start(a, nodes);
	grant(a, 0, HIGH);
	grant(a, 1, LOW);
	if (nodes == 5)
		grant(a, 2, LOW);
	is_int(attempt_next(a, START + 1), ATTEMPT_RAISE, "one node returned a greater fence: it is raised");
	attempt_raised(a, 1, VOTE_NO, true);
}

TEST(too_far)
{
	struct attempt a;

	begin_too_far(&a, 3);
	is_int(attempt_next(&a, START + 2), ATTEMPT_WAIT, "it is refused: the first node doesn't count, the third may");
	ok(a.excluded[0] && !a.excluded[1], "the first node is barred");
	grant(&a, 2, LOW);
	is_int(attempt_next(&a, START + 3), ATTEMPT_GRANTED, "the two others are a majority");
	is_int(a.fence, LOW, "with their fence");
	ok(attempt_perhaps_granted(&a, 0), "the first one may hold our token");

	begin_too_far(&a, 3);
	grant(&a, 2, LOW + 1);
	is_int(attempt_next(&a, START + 2), ATTEMPT_RAISE, "the two others differ: their larger fence is raised");
	is_int(a.fence, LOW + 1, "the fence is that of the third node");
	ok(needs_fence(&a, 1) && !needs_fence(&a, 0) && !needs_fence(&a, 2), "on the second node");
	attempt_raised(&a, 1, VOTE_YES, false);
	is_int(attempt_next(&a, START + 3), ATTEMPT_GRANTED, "then the lock is granted");
	is_int(a.fence, LOW + 1, "with that fence");
}

TEST(too_far_fails)
{
	struct attempt a;

	begin_too_far(&a, 3);
	is_int(attempt_next(&a, START + ROUND), ATTEMPT_NO_QUORUM, "without the first node there is no majority");
	ok(a.excluded[0], "the first node is barred");

	begin_too_far(&a, 5);
	is_int(attempt_next(&a, START + 2), ATTEMPT_WAIT, "refused by one of five: the others may record it");
	attempt_raised(&a, 2, VOTE_YES, false);
	is_int(attempt_next(&a, START + 2), ATTEMPT_WAIT,
	    "two have recorded it, and no more can: the first node doesn't count");
	ok(a.excluded[0], "the first node is barred, though another node has recorded its fence");
	grant(&a, 3, LOW);
	is_int(attempt_next(&a, START + 3), ATTEMPT_GRANTED, "three of five agree without it");
	is_int(a.fence, LOW, "with their fence");
}

TEST(grants)
{
	test_late_grant(LOW, ATTEMPT_WAIT);
	test_late_grant(HIGH, ATTEMPT_GRANTED);
	test_late_grant(HIGH + 1, ATTEMPT_WAIT);
}
