/* SPDX-License-Identifier: MIT */
#include "attempt_scene.h"

#define HANDOFF "T" /* the handoff token */
#define FOREVER 99
#define AGAIN_MOST 12 /* pauses of 0.5, 1, 2 ... 20 ms in one round */

static const enum kind node_kinds[] = { GRANTS_LOW, HELD_BY_A, ERROR, SILENT };
static const int lates[] = { 0, 1, 2, FOREVER };

/* A scene in which a node has not received the release of the handoff token for the first `late` requests. */
struct handover {
	struct scene s;
	int late[NODES_MAX];
	bool asked[NODES_MAX];
	bool early[NODES_MAX]; /* its last reply was that the token still holds the lock */
	int agains;
	int64_t again_at, pause;
};

/* The expected step.  Until the deadline an early node may still grant the lock. */
static enum attempt_step
expected(const struct handover *h)
{
	const struct scene *s = &h->s;
	const int yes = replies(s, GRANTS_LOW), a = replies(s, HELD_BY_A);
	int open = 0, early = 0, most;

	for (int i = 0; i < s->nodes; i++) {
		open += s->now < START + ROUND && !s->replied[i];
		early += s->now >= START + ROUND && h->early[i];
	}
	most = a > early ? a : early;
	if (majority(s, yes))
		return ATTEMPT_GRANTED;
	if (majority(s, most))
		return ATTEMPT_HELD;
	if (!majority(s, yes + a + early + open))
		return ATTEMPT_NO_QUORUM;
	if (majority(s, yes + a + early) && !majority(s, yes + open) && !majority(s, most + open))
		return ATTEMPT_SPLIT;
	return open > 0 ? ATTEMPT_WAIT : ATTEMPT_NO_QUORUM;
}

static void
answer_one(struct handover *h, int node)
{
	struct attempt_answer early = { .vote = VOTE_NO, .holder = { .token = HANDOFF, .left_ms = 77 } };

	h->asked[node] = false;
	h->early[node] = h->late[node] > 0;
	if (!h->early[node]) {
		reply(&h->s, node);
		return;
	}
	h->late[node] -= h->late[node] < FOREVER;
	attempt_answer(&h->s.attempt, node, &early);
	each(!attempt_perhaps_granted(&h->s.attempt, node), "node %d was early, but perhaps granted the lock", node);
}

/* The request is repeated to all early nodes and to no other, after growing pauses. */
static void
ask_again(struct handover *h)
{
	each(h->agains == 0 || h->s.now - h->again_at >= h->pause, "repeated too soon");
	for (int i = 0; i < h->s.nodes; i++)
		each(h->s.attempt.early[i] == h->early[i], "node %d is early", i);
	attempt_repeated(&h->s.attempt);
	for (int i = 0; i < h->s.nodes; i++) {
		each(!h->early[i] || attempt_perhaps_granted(&h->s.attempt, i), "node %d certainly did not grant it",
		    i);
		h->asked[i] = h->early[i];
		h->early[i] = false;
	}
	h->pause = h->agains > 0 ? h->s.now - h->again_at : 500;
	h->again_at = h->s.now;
	h->agains++;
	each(h->agains <= AGAIN_MOST, "repeated %d times", h->agains);
}

static enum attempt_step
next(struct handover *h)
{
	const enum attempt_step step = attempt_next(&h->s.attempt, h->s.now);
	const enum attempt_step right = expected(h);
	int early = 0;

	for (int i = 0; i < h->s.nodes; i++)
		early += h->early[i];
	if (step == ATTEMPT_AGAIN)
		each(right == ATTEMPT_WAIT && early > 0, "repeats the request to %d nodes though %d is certain", early,
		    (int)right);
	else
		each(step == right, "step %d, not %d", (int)step, (int)right);
	if (step == ATTEMPT_GRANTED)
		check_granted(&h->s);
	return step;
}

/* The nodes reply; then time passes.  Returns the last step. */
static enum attempt_step
play(struct handover *h)
{
	struct scene *s = &h->s;
	enum attempt_step step = ATTEMPT_WAIT;
	int i, answers;

	while (step == ATTEMPT_WAIT) {
		for (i = 0, answers = 0; i < s->nodes && step == ATTEMPT_WAIT; i++) {
			if (!h->asked[s->order[i]] || s->kind[s->order[i]] == SILENT)
				continue;
			answer_one(h, s->order[i]);
			answers++;
			step = next(h);
		}
		if (step == ATTEMPT_WAIT && answers == 0) {
			each(wakes_at(&s->attempt) > s->now, "wakes at once, without a reason");
			each(wakes_at(&s->attempt) <= START + ROUND, "sleeps too long");
			s->now = wakes_at(&s->attempt);
			step = next(h);
		}
		if (step == ATTEMPT_AGAIN) {
			ask_again(h);
			step = ATTEMPT_WAIT;
		}
	}
	return step;
}

static void
start(struct handover *h, const char *handoff)
{
	struct attempt_terms terms = { .nodes = h->s.nodes,
		.ttl_us = TTL,
		.node_timeout_us = ROUND,
		.handoff = handoff };

	memset(h->s.replied, 0, sizeof(h->s.replied));
	h->s.now = START + 5;
	h->agains = 0;
	for (int i = 0; i < h->s.nodes; i++) {
		h->asked[i] = true;
		h->early[i] = false;
	}
	attempt_start(&h->s.attempt, &terms, START);
}

/* Every kind of node, every number of early replies, every order. */
static void
test_all(int nodes)
{
	static const int orders[] = { 1, 1, 2, 6 };
	const int64_t kinds = (int64_t)COUNT(node_kinds), cases = kinds * (int64_t)COUNT(lates);
	struct handover h = { .s = { .nodes = nodes } };
	int64_t scene, number, order;
	int i;

	for (scene = 0; scene < power(cases, nodes); scene++) {
		for (order = 0; order < orders[nodes]; order++) {
			set_order(&h.s, order);
			for (i = 0, number = scene; i < nodes; i++, number /= cases) {
				h.s.kind[i] = node_kinds[number % kinds];
				h.late[i] = lates[number % cases / kinds];
			}
			start(&h, HANDOFF);
			(void)play(&h);
		}
	}
	each_ok("every handoff with %d nodes", nodes);
}

/* The request is repeated only if the handoff token holds the lock and is not released yet. */
TEST(other_token)
{
	static const struct {
		const char *handoff;
		bool handover;
		enum attempt_step step;
	} cases[] = { { HANDOFF, false, ATTEMPT_WAIT }, { HANDOFF, true, ATTEMPT_HELD }, { "X", false, ATTEMPT_HELD },
		{ "", false, ATTEMPT_HELD }, { NULL, false, ATTEMPT_HELD } };
	struct attempt_answer answer = { .vote = VOTE_NO, .holder = { .token = HANDOFF } };
	struct handover h = { .s = { .nodes = 1 } };

	for (size_t i = 0; i < COUNT(cases); i++) {
		start(&h, cases[i].handoff);
		answer.holder.state = cases[i].handover ? LOCK_HANDOVER : LOCK_HELD;
		attempt_answer(&h.s.attempt, 0, &answer);
		is_int(attempt_next(&h.s.attempt, h.s.now), cases[i].step, "handoff token %s, held by %s%s",
		    cases[i].handoff != NULL ? cases[i].handoff : "(none)", HANDOFF,
		    cases[i].handover ? ", released" : "");
	}
	start(&h, HANDOFF);
	h.late[0] = FOREVER;
	is_int(play(&h), ATTEMPT_HELD, "the release never arrives: the lock is held");
	ok(attempt_holder(&h.s.attempt) != NULL && strcmp(attempt_holder(&h.s.attempt)->token, HANDOFF) == 0,
	    "the message names that holder");
	each_ok("every step on the way is right");
}

/* While the fence is raised the request is not repeated, and only the end of the round is due. */
TEST(raise_beside_early)
{
	struct attempt_answer early = { .vote = VOTE_NO, .holder = { .token = HANDOFF } };
	struct attempt_answer yes = { .vote = VOTE_YES, .fence = LOW };
	struct handover h = { .s = { .nodes = 3 } };
	struct attempt *a = &h.s.attempt;

	start(&h, HANDOFF);
	attempt_answer(a, 2, &early);
	is_int(attempt_next(a, h.s.now), ATTEMPT_WAIT, "a node is early");
	ok(wakes_at(a) < a->deadline_us, "the request will be repeated");
	attempt_answer(a, 0, &yes);
	yes.fence = HIGH;
	attempt_answer(a, 1, &yes);
	is_int(attempt_next(a, h.s.now), ATTEMPT_RAISE, "a majority has granted it with two fences");
	is_int(attempt_next(a, h.s.now), ATTEMPT_WAIT, "it waits for the fence to be raised");
	is_int(wakes_at(a), a->deadline_us, "it sleeps until the end of the round");
}

TEST(all_replies)
{
	for (int nodes = 1; nodes <= 3; nodes++)
		test_all(nodes);
}
