/* SPDX-License-Identifier: MIT */
#include "attempt_scene.h"

/* -- The expected result --------------------------------------------------- */

/* The number of nodes that may still reply; 0 after the deadline, or if only unresponsive nodes are left and a majority has
 * voted. */
static int
open_nodes(const struct scene *s, int voted)
{
	int i, n = 0, awaited = 0;

	for (i = 0; i < s->nodes; i++) {
		n += !s->replied[i];
		awaited += !s->replied[i] && !s->unresponsive[i];
	}
	if (s->now >= START + ROUND || (awaited == 0 && majority(s, voted)))
		return 0;
	return n;
}

static enum attempt_step
expected(const struct scene *s)
{
	const int low = replies(s, GRANTS_LOW), high = replies(s, GRANTS_HIGH);
	const int a = replies(s, HELD_BY_A), b = replies(s, HELD_BY_B);
	const int yes = low + high, most = a > b ? a : b, open = open_nodes(s, yes + a + b);
	/* The results that are still possible; the other nodes may report new holders or fail. */
	const bool may_carry = majority(s, yes + open), may_be_held = majority(s, most + open);
	const bool may_split = majority(s, yes + a + b + open) && s->nodes > 1;
	const bool may_lack = !majority(s, yes + a + b);

	if (majority(s, yes) && s->now >= VALID_UNTIL)
		return ATTEMPT_TOO_SLOW;
	if (majority(s, yes))
		return majority(s, high) || high == 0 ? ATTEMPT_GRANTED : ATTEMPT_RAISE;
	if (majority(s, most))
		return ATTEMPT_HELD;
	if (may_carry + may_be_held + may_split + may_lack > 1)
		return ATTEMPT_WAIT;
	return may_split ? ATTEMPT_SPLIT : ATTEMPT_NO_QUORUM;
}

static void
check_perhaps(const struct scene *s)
{
	for (int i = 0; i < s->nodes; i++) {
		const bool certainly_not = s->kind[i] == HELD_BY_A || s->kind[i] == HELD_BY_B || s->kind[i] == HARMLESS;

		each(attempt_perhaps_granted(&s->attempt, i) == !(s->replied[i] && certainly_not), "node %d of kind %d",
		    i, (int)s->kind[i]);
	}
}

static void
check_holder(const struct scene *s)
{
	const int a = replies(s, HELD_BY_A), b = replies(s, HELD_BY_B);
	const struct holder *holder = attempt_holder(&s->attempt);

	if (!each((holder == NULL) == (a + b == 0), "%d and %d report a holder", a, b) || holder == NULL)
		return;
	each(strcmp(holder->token, "A") == 0 ? a >= b : b >= a, "%d report A, %d report B, the result is %s", a, b,
	    holder->token);
	each(holder->left_ms == 77, "not the data of that holder");
}

/* -- Running a scene ------------------------------------------------------------- */

static enum attempt_step
next(struct scene *s)
{
	const enum attempt_step step = attempt_next(&s->attempt, s->now);

	if (step == ATTEMPT_GRANTED)
		check_granted(s);
	check_perhaps(s);
	return step;
}

static void
start(struct scene *s)
{
	struct attempt_terms terms = { .nodes = s->nodes, .ttl_us = TTL, .node_timeout_us = ROUND };

	memcpy(terms.unresponsive, s->unresponsive, sizeof(terms.unresponsive));
	memset(s->replied, 0, sizeof(s->replied));
	memset(s->record, 0, sizeof(s->record));
	s->now = s->answers_at;
	attempt_start(&s->attempt, &terms, START);
	each(s->attempt.valid_until_us == VALID_UNTIL && s->attempt.deadline_us == START + ROUND, "wrong times");
	each(attempt_holder(&s->attempt) == NULL, "a holder before any answer");
}

/* The acquire requests: the decision is right and made as soon as it is certain. */
static enum attempt_step
play_answers(struct scene *s)
{
	enum attempt_step step = ATTEMPT_WAIT;

	for (int i = 0; i <= s->nodes && step == ATTEMPT_WAIT; i++) {
		if (i > 0)
			reply(s, s->order[i - 1]);
		if (s->now >= START + ROUND && i < s->nodes)
			continue; /* after the deadline only the last reply is followed by a decision */
		step = next(s);
		each(step == expected(s), "after %d replies: step %d, not %d", i, (int)step, (int)expected(s));
		check_holder(s);
	}
	if (step == ATTEMPT_WAIT) {
		s->now = START + ROUND;
		step = next(s);
		each(step == expected(s) && step != ATTEMPT_WAIT, "at the deadline: step %d, not %d", (int)step,
		    (int)expected(s));
	}
	return step;
}

static void
check_raise(const struct scene *s, enum attempt_step step, int pending)
{
	const int have = recorded(s, s->attempt.fence);
	const bool closed = s->now >= START + ROUND;

	if (majority(s, have))
		each(step == (s->now < VALID_UNTIL ? ATTEMPT_GRANTED : ATTEMPT_TOO_SLOW), "raised, but %d", (int)step);
	else if (step == ATTEMPT_WAIT)
		each(!closed && pending > 0, "waits for nothing");
	else if (step != ATTEMPT_GRANTED && step != ATTEMPT_TOO_SLOW)
		each((closed || !majority(s, have + pending)) && (step == ATTEMPT_SPLIT || step == ATTEMPT_NO_QUORUM),
		    "%d have it, %d may yet: %d", have, pending, (int)step);
}

static void
raise_one(struct scene *s, int node)
{
	attempt_raised(&s->attempt, node, s->raise[node], false);
	if (s->raise[node] == VOTE_YES)
		s->record[node] = s->attempt.fence;
	each(!needs_fence(&s->attempt, node), "node %d lags though it has replied", node);
}

/* The second round, to the nodes with a smaller fence. */
static enum attempt_step
play_raises(struct scene *s)
{
	const int64_t fence = s->attempt.fence;
	enum attempt_step step = ATTEMPT_WAIT;
	int i, node, pending = 0;

	for (i = 0; i < s->nodes; i++) {
		each(needs_fence(&s->attempt, i) == (granted(s, i) && s->record[i] < fence), "node %d lags", i);
		pending += needs_fence(&s->attempt, i);
	}
	s->now = s->raises_at > s->now ? s->raises_at : s->now;
	for (i = 0; i < s->nodes && step == ATTEMPT_WAIT; i++) {
		node = s->order[i];
		if (s->mixed && !s->replied[node])
			reply(s, node);
		if (!needs_fence(&s->attempt, node) || s->raise[node] == VOTE_PENDING)
			continue;
		raise_one(s, node);
		pending--;
		if (s->now >= START + ROUND && pending > 0)
			continue;
		step = next(s);
		check_raise(s, step, pending);
	}
	if (step == ATTEMPT_WAIT) {
		s->now = s->now > START + ROUND ? s->now : START + ROUND;
		step = next(s);
		check_raise(s, step, pending);
	}
	each(s->attempt.fence == fence, "the fence changed while it was raised");
	return step;
}

static void
play(struct scene *s)
{
	enum attempt_step step;

	start(s);
	step = play_answers(s);
	if (step == ATTEMPT_RAISE) {
		each(s->attempt.fence == HIGH, "raises to %" PRId64, s->attempt.fence);
		step = play_raises(s);
	}
	each(step != ATTEMPT_WAIT && step != ATTEMPT_RAISE, "no end");
}

/* -- All scenes of few nodes, random ones of many --------------------------------------------------- */

static const int64_t instants[] = { START, START + ROUND - 1, START + ROUND, VALID_UNTIL - 1, VALID_UNTIL,
	VALID_UNTIL + TTL };
static const enum vote raise_votes[] = { VOTE_YES, VOTE_NO, VOTE_FAULT, VOTE_PENDING };

static void
set_kinds(struct scene *s, int64_t number)
{
	for (int i = 0; i < s->nodes; i++, number /= KINDS)
		s->kind[i] = (enum kind)(number % KINDS);
}

static void
set_raises(struct scene *s, int64_t number)
{
	for (int i = 0; i < s->nodes; i++, number /= 4)
		s->raise[i] = raise_votes[number % 4];
}

/* Every kind of node, every order, every reply to the raised fence, and every instant. */
static void
test_all(int nodes)
{
	static const int orders[] = { 1, 1, 2, 6 };
	struct scene s = { .nodes = nodes };

	for (int64_t kinds = 0; kinds < power(KINDS, nodes); kinds++) {
		set_kinds(&s, kinds);
		for (int64_t order = 0; order < orders[nodes]; order++) {
			set_order(&s, order);
			s.answers_at = s.raises_at = START + 5;
			for (int64_t raises = 0; raises < power(4, nodes); raises++) {
				set_raises(&s, raises);
				s.mixed = (raises & 1) != 0 && (order & 1) != 0;
				play(&s);
			}
			s.mixed = false;
			set_raises(&s, 0);
			for (size_t instant = 0; instant < COUNT(instants); instant++) {
				s.answers_at = START + 5;
				s.raises_at = instants[instant];
				play(&s);
				s.answers_at = instants[instant];
				play(&s);
			}
		}
	}
	each_ok("every attempt with %d nodes", nodes);
}

static void
randomize(struct scene *s)
{
	set_order(s, below(INT64_MAX));
	set_raises(s, below(4) == 0 ? 0 : below(INT64_C(1) << 30));
	s->answers_at = below(4) == 0 ? instants[below(COUNT(instants))] : START + 5;
	s->raises_at = below(4) == 0 ? instants[below(COUNT(instants))] : START + 6;
	s->mixed = below(2) == 0;
	for (int i = 0; i < s->nodes; i++)
		s->unresponsive[i] = below(3) == 0;
}

static void
test_larger(int nodes)
{
	struct scene s = { .nodes = nodes };

	for (int64_t kinds = 0; kinds < power(KINDS, nodes); kinds++) {
		set_kinds(&s, kinds);
		randomize(&s);
		play(&s);
	}
	each_ok("every kind of %d nodes in some order", nodes);
}

TEST(largest)
{
	struct scene s = { .nodes = NODES_MAX };

	for (int i = 0; i < 5000; i++) {
		s.nodes = 6 + (int)below(NODES_MAX - 5);
		for (int j = 0; j < s.nodes; j++)
			s.kind[j] = (enum kind)below(below(2) == 0 ? 2 : KINDS);
		randomize(&s);
		play(&s);
	}
	each_ok("some attempts with up to %d nodes", NODES_MAX);
}

/* -- The cases of the manual --------------------------------------------------- */

/* Nodes as letters: l, h grant; a, b held; e error, u certainly not granted, . silent. */
static const struct {
	enum attempt_step step;
	const char *nodes[5];
} table[] = {
	{ ATTEMPT_GRANTED, { "l", "lla", "hh." } },
	{ ATTEMPT_GRANTED, { "lllhh" } }, /* the majority that counted had the same fence */
	{ ATTEMPT_RAISE, { "lh.", "lhlhl" } },
	{ ATTEMPT_HELD, { "a", "laa", "aaabb" } },
	{ ATTEMPT_SPLIT, { "lab", "la.", "llaab" } },
	{ ATTEMPT_NO_QUORUM, { "e", ".", "l..", "leu", "aeu" } },
};

static void
check_case(const char *nodes, enum attempt_step step)
{
	static const char letters[] = "lhabeu.";
	struct scene s = { .nodes = (int)strlen(nodes), .answers_at = START + 5 };

	for (int i = 0; i < s.nodes; i++) {
		s.kind[i] = (enum kind)(strchr(letters, nodes[i]) - letters);
		s.order[i] = i;
	}
	start(&s);
	is_int(play_answers(&s), step, "%s", nodes);
}

TEST(table)
{
	for (size_t i = 0; i < COUNT(table); i++) {
		for (size_t j = 0; j < COUNT(table[i].nodes) && table[i].nodes[j] != NULL; j++)
			check_case(table[i].nodes[j], table[i].step);
	}
	each_ok("every step on the way is right");
}

/* A node that did not reply to the previous attempt does not delay the decision. */
TEST(unresponsive)
{
	struct scene s = { .nodes = 3,
		.kind = { GRANTS_LOW, HELD_BY_A, SILENT },
		.order = { 0, 1, 2 },
		.answers_at = START };

	s.unresponsive[2] = true;
	start(&s);
	reply(&s, 0);
	is_int(next(&s), ATTEMPT_WAIT, "one vote of three, and one unresponsive node: wait");
	reply(&s, 1);
	is_int(next(&s), ATTEMPT_SPLIT, "two votes of three, and one unresponsive node: split");
	ok(attempt_perhaps_granted(&s.attempt, 2), "the unresponsive node gets a rollback");
	each_ok("every step on the way is right");
}

/* Of three nodes this many keep the lock for 50 ms, the others have it held. */
TEST(kept)
{
	const struct attempt_terms terms = { .nodes = 3, .ttl_us = TTL, .node_timeout_us = ROUND };
	struct attempt_answer answer = { .vote = VOTE_NO, .holder = { .token = "A", .left_ms = 50 } };
	static struct attempt a;

	for (int kept = 0; kept <= 3; kept++) {
		attempt_start(&a, &terms, START);
		for (int i = 0; i < 3; i++) {
			answer.holder.state = i < kept ? LOCK_KEPT : LOCK_HELD;
			attempt_answer(&a, i, &answer);
		}
		is_int(attempt_kept(&a, START + 50 * MS), kept >= 2, "kept on %d of 3", kept);
		ok(!attempt_kept(&a, START + 50 * MS + 1), "and not for longer");
	}
}

TEST(all_replies)
{
	for (int nodes = 1; nodes <= 3; nodes++)
		test_all(nodes);
	test_larger(4);
	test_larger(5);
}

static void
start_one(struct attempt *a, int nodes)
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

	start_one(&a, 3);
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
	start_one(a, nodes);
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
