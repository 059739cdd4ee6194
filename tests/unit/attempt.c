/* SPDX-License-Identifier: MIT */
#include "lock/attempt.h"

#include "tap.h"

#define MS INT64_C(1000)
#define START (1000000 * MS)
#define TTL (1000 * MS)
#define ROUND (100 * MS)
#define VALID_UNTIL (START + TTL - TTL / 100 - 2 * MS)

enum {
	LOW = 500, /* fences */
	HIGH = 700
};

/* What a node does with the acquire request. */
enum kind {
	GRANTS_LOW,
	GRANTS_HIGH,
	HELD_BY_A,
	HELD_BY_B,
	ERROR,
	HARMLESS,
	SILENT,
	KINDS
};

/* A scene: what the nodes do, in which order and when they are heard; and what has happened so far. */
struct scene {
	int nodes;
	enum kind kind[NODES_MAX];
	bool unresponsive[NODES_MAX];
	int order[NODES_MAX];
	enum vote raise[NODES_MAX]; /* the answer to the raising; VOTE_PENDING: none */
	int64_t answers_at;
	int64_t raises_at;
	bool mixed; /* late answers come in between the raises */

	struct attempt attempt;
	int64_t now;
	bool told[NODES_MAX];
	int64_t record[NODES_MAX]; /* the fence that a node has stored */
};

/* -- What must come of it --------------------------------------------------- */

static bool
majority(const struct scene *s, int n)
{
	return 2 * n > s->nodes;
}

static bool
granted(const struct scene *s, int node)
{
	return s->told[node] && (s->kind[node] == GRANTS_LOW || s->kind[node] == GRANTS_HIGH);
}

static int
heard(const struct scene *s, enum kind kind)
{
	int i, n = 0;

	for (i = 0; i < s->nodes; i++)
		n += s->told[i] && s->kind[i] == kind;
	return n;
}

static int
recorded(const struct scene *s, int64_t fence)
{
	int i, n = 0;

	for (i = 0; i < s->nodes; i++)
		n += granted(s, i) && s->record[i] >= fence;
	return n;
}

/* How many may still answer; none when the time is over, or when only suspects could and a majority has voted. */
static int
open_nodes(const struct scene *s, int voted)
{
	int i, n = 0, awaited = 0;

	for (i = 0; i < s->nodes; i++) {
		n += !s->told[i];
		awaited += !s->told[i] && !s->unresponsive[i];
	}
	if (s->now >= START + ROUND || (awaited == 0 && majority(s, voted)))
		return 0;
	return n;
}

static enum attempt_step
expected(const struct scene *s)
{
	const int low = heard(s, GRANTS_LOW), high = heard(s, GRANTS_HIGH);
	const int a = heard(s, HELD_BY_A), b = heard(s, HELD_BY_B);
	const int yes = low + high, most = a > b ? a : b, open = open_nodes(s, yes + a + b);
	/* What could come of it yet; those who have not answered may name new holders or fail. */
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
check_granted(const struct scene *s)
{
	const int64_t fence = s->attempt.fence;
	int i, yes = 0, smaller = 0;

	for (i = 0; i < s->nodes; i++) {
		yes += granted(s, i);
		smaller += granted(s, i) && (s->kind[i] == GRANTS_LOW ? LOW : HIGH) <= fence;
	}
	each(majority(s, yes), "granted by %d of %d", yes, s->nodes);
	each(s->now < s->attempt.valid_until_us, "granted when validity had ended");
	each(majority(s, smaller), "fence %" PRId64 " is smaller than what the majority knows", fence);
	each(majority(s, recorded(s, fence)), "fence %" PRId64 " is recorded on %d of %d", fence, recorded(s, fence),
	    s->nodes);
}

static void
check_perhaps(const struct scene *s)
{
	int i;

	for (i = 0; i < s->nodes; i++) {
		const bool surely_not = s->kind[i] == HELD_BY_A || s->kind[i] == HELD_BY_B || s->kind[i] == HARMLESS;

		each(attempt_perhaps_granted(&s->attempt, i) == !(s->told[i] && surely_not), "node %d of kind %d", i,
		    (int)s->kind[i]);
	}
}

static void
check_holder(const struct scene *s)
{
	const int a = heard(s, HELD_BY_A), b = heard(s, HELD_BY_B);
	const struct holder *holder = attempt_holder(&s->attempt);

	if (!each((holder == NULL) == (a + b == 0), "%d and %d name a holder", a, b) || holder == NULL)
		return;
	each(strcmp(holder->token, "A") == 0 ? a >= b : b >= a, "%d say A, %d say B, it says %s", a, b, holder->token);
	each(holder->left_ms == 77, "not the holder's facts");
}

/* -- Playing it ------------------------------------------------------------- */

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
tell(struct scene *s, int node)
{
	struct attempt_answer answer = { .vote = VOTE_FAULT };

	switch (s->kind[node]) {
	case GRANTS_LOW:
	case GRANTS_HIGH:
		answer.vote = VOTE_YES;
		answer.fence = s->record[node] = s->kind[node] == GRANTS_LOW ? LOW : HIGH;
		break;
	case HELD_BY_A:
	case HELD_BY_B:
		answer.vote = VOTE_NO;
		answer.holder.token[0] = s->kind[node] == HELD_BY_A ? 'A' : 'B';
		answer.holder.left_ms = 77;
		break;
	case HARMLESS:
		answer.harmless = true;
		break;
	case SILENT:
		return;
	case ERROR:
	case KINDS:
		break;
	}
	s->told[node] = true;
	attempt_answer(&s->attempt, node, &answer);
}

static void
start(struct scene *s)
{
	struct attempt_terms terms = { .nodes = s->nodes, .ttl_us = TTL, .round_us = ROUND };

	memcpy(terms.unresponsive, s->unresponsive, sizeof(terms.unresponsive));
	memset(s->told, 0, sizeof(s->told));
	memset(s->record, 0, sizeof(s->record));
	s->now = s->answers_at;
	attempt_start(&s->attempt, &terms, START);
	each(s->attempt.valid_until_us == VALID_UNTIL && s->attempt.deadline_us == START + ROUND, "wrong times");
	each(attempt_holder(&s->attempt) == NULL, "a holder before any answer");
}

/* The acquire requests: decided as early as it is certain, and rightly. */
static enum attempt_step
play_answers(struct scene *s)
{
	enum attempt_step step = ATTEMPT_WAIT;
	int i;

	for (i = 0; i <= s->nodes && step == ATTEMPT_WAIT; i++) {
		if (i > 0)
			tell(s, s->order[i - 1]);
		if (s->now >= START + ROUND && i < s->nodes)
			continue; /* too late to be asked before all have answered */
		step = next(s);
		each(step == expected(s), "after %d answers: step %d, not %d", i, (int)step, (int)expected(s));
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
	attempt_raised(&s->attempt, node, s->raise[node]);
	if (s->raise[node] == VOTE_YES)
		s->record[node] = s->attempt.fence;
	each(!attempt_lags(&s->attempt, node), "node %d lags when it has answered", node);
}

/* The second round, to the nodes with a smaller fence. */
static enum attempt_step
play_raises(struct scene *s)
{
	const int64_t fence = s->attempt.fence;
	enum attempt_step step = ATTEMPT_WAIT;
	int i, node, pending = 0;

	for (i = 0; i < s->nodes; i++) {
		each(attempt_lags(&s->attempt, i) == (granted(s, i) && s->record[i] < fence), "node %d lags", i);
		pending += attempt_lags(&s->attempt, i);
	}
	s->now = s->raises_at > s->now ? s->raises_at : s->now;
	for (i = 0; i < s->nodes && step == ATTEMPT_WAIT; i++) {
		node = s->order[i];
		if (s->mixed && !s->told[node])
			tell(s, node);
		if (!attempt_lags(&s->attempt, node) || s->raise[node] == VOTE_PENDING)
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

/* -- All scenes, and many --------------------------------------------------- */

static const int64_t instants[] = { START, START + ROUND - 1, START + ROUND, VALID_UNTIL - 1, VALID_UNTIL,
	VALID_UNTIL + TTL };
static const enum vote raise_votes[] = { VOTE_YES, VOTE_NO, VOTE_FAULT, VOTE_PENDING };

/* The permutation of that number. */
static void
set_order(struct scene *s, int64_t number)
{
	int i, j, node;

	for (i = 0; i < s->nodes; i++) {
		j = (int)(number % (i + 1));
		number /= i + 1;
		node = s->order[j];
		s->order[j] = i;
		if (j < i)
			s->order[i] = node;
	}
}

static int64_t
power(int64_t base, int exponent)
{
	return exponent == 0 ? 1 : base * power(base, exponent - 1);
}

static void
set_kinds(struct scene *s, int64_t number)
{
	int i;

	for (i = 0; i < s->nodes; i++, number /= KINDS)
		s->kind[i] = (enum kind)(number % KINDS);
}

static void
set_raises(struct scene *s, int64_t number)
{
	int i;

	for (i = 0; i < s->nodes; i++, number /= 4)
		s->raise[i] = raise_votes[number % 4];
}

/* Every kind of node, in every order, with every outcome of the raising, and at every instant. */
static void
test_all(int nodes)
{
	static const int orders[] = { 1, 1, 2, 6 };
	struct scene s = { .nodes = nodes };
	int64_t kinds, order, raises;
	size_t instant;

	for (kinds = 0; kinds < power(KINDS, nodes); kinds++) {
		set_kinds(&s, kinds);
		for (order = 0; order < orders[nodes]; order++) {
			set_order(&s, order);
			s.answers_at = s.raises_at = START + 5;
			for (raises = 0; raises < power(4, nodes); raises++) {
				set_raises(&s, raises);
				s.mixed = (raises & 1) != 0 && (order & 1) != 0;
				play(&s);
			}
			s.mixed = false;
			set_raises(&s, 0);
			for (instant = 0; instant < COUNT(instants); instant++) {
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
	int i;

	set_order(s, below(INT64_MAX));
	set_raises(s, below(4) == 0 ? 0 : below(INT64_C(1) << 30));
	s->answers_at = below(4) == 0 ? instants[below(COUNT(instants))] : START + 5;
	s->raises_at = below(4) == 0 ? instants[below(COUNT(instants))] : START + 6;
	s->mixed = below(2) == 0;
	for (i = 0; i < s->nodes; i++)
		s->unresponsive[i] = below(3) == 0;
}

static void
test_larger(int nodes)
{
	struct scene s = { .nodes = nodes };
	int64_t kinds;

	for (kinds = 0; kinds < power(KINDS, nodes); kinds++) {
		set_kinds(&s, kinds);
		randomize(&s);
		play(&s);
	}
	each_ok("every kind of %d nodes in some order", nodes);
}

static void
test_largest(void)
{
	struct scene s = { .nodes = NODES_MAX };
	int i, j;

	for (i = 0; i < 5000; i++) {
		s.nodes = 6 + (int)below(NODES_MAX - 5);
		for (j = 0; j < s.nodes; j++)
			s.kind[j] = (enum kind)below(below(2) == 0 ? 2 : KINDS);
		randomize(&s);
		play(&s);
	}
	each_ok("some attempts with up to %d nodes", NODES_MAX);
}

/* -- A baton ---------------------------------------------------------------- */

#define BATON "T"
#define FOREVER 99
#define AGAIN_MOST 12 /* 0.5, 1, 2 ... 20 ms fit so often into a round */

static const enum kind baton_kinds[] = { GRANTS_LOW, HELD_BY_A, ERROR, SILENT };
static const int lates[] = { 0, 1, 2, FOREVER };

/* A scene in which nodes say that the baton's release has not come to them, for so many times before they do their kind. */
struct handover {
	struct scene s;
	int late[NODES_MAX];
	bool asked[NODES_MAX];
	bool early[NODES_MAX]; /* its last answer was that */
	int agains;
	int64_t again_at, pause;
};

/* What is certain of an attempt in which the early ones are open as long as there is time. */
static enum attempt_step
expected_of_baton(const struct handover *h)
{
	const struct scene *s = &h->s;
	const int yes = heard(s, GRANTS_LOW), a = heard(s, HELD_BY_A);
	int i, open = 0, early = 0, most;

	for (i = 0; i < s->nodes; i++) {
		open += s->now < START + ROUND && !s->told[i];
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
	struct attempt_answer early = { .vote = VOTE_NO, .holder = { .token = BATON, .left_ms = 77 } };

	h->asked[node] = false;
	h->early[node] = h->late[node] > 0;
	if (!h->early[node]) {
		tell(&h->s, node);
		return;
	}
	h->late[node] -= h->late[node] < FOREVER;
	attempt_answer(&h->s.attempt, node, &early);
	each(!attempt_perhaps_granted(&h->s.attempt, node), "node %d that was early perhaps granted it", node);
}

/* The early ones are asked again, all of them and nobody else, after pauses that grow. */
static void
ask_again(struct handover *h)
{
	int i;

	each(h->agains == 0 || h->s.now - h->again_at >= h->pause, "asked again too soon");
	for (i = 0; i < h->s.nodes; i++)
		each(attempt_early(&h->s.attempt, i) == h->early[i], "node %d is early", i);
	attempt_asked_again(&h->s.attempt);
	for (i = 0; i < h->s.nodes; i++) {
		each(!h->early[i] || attempt_perhaps_granted(&h->s.attempt, i), "node %d surely didn't grant it", i);
		h->asked[i] = h->early[i];
		h->early[i] = false;
	}
	h->pause = h->agains > 0 ? h->s.now - h->again_at : 500;
	h->again_at = h->s.now;
	h->agains++;
	each(h->agains <= AGAIN_MOST, "asked again %d times", h->agains);
}

static enum attempt_step
next_of_baton(struct handover *h)
{
	const enum attempt_step step = attempt_next(&h->s.attempt, h->s.now);
	const enum attempt_step right = expected_of_baton(h);
	int i, early = 0;

	for (i = 0; i < h->s.nodes; i++)
		early += h->early[i];
	if (step == ATTEMPT_AGAIN)
		each(right == ATTEMPT_WAIT && early > 0, "asks %d again where %d is certain", early, (int)right);
	else
		each(step == right, "step %d, not %d", (int)step, (int)right);
	if (step == ATTEMPT_GRANTED)
		check_granted(&h->s);
	return step;
}

/* Whoever was asked answers; then time passes.  The last step. */
static enum attempt_step
play_baton(struct handover *h)
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
			step = next_of_baton(h);
		}
		if (step == ATTEMPT_WAIT && answers == 0) {
			each(attempt_wake_us(&s->attempt) > s->now, "wakes at once, for nothing");
			each(attempt_wake_us(&s->attempt) <= START + ROUND, "sleeps too long");
			s->now = attempt_wake_us(&s->attempt);
			step = next_of_baton(h);
		}
		if (step == ATTEMPT_AGAIN) {
			ask_again(h);
			step = ATTEMPT_WAIT;
		}
	}
	return step;
}

static void
start_baton(struct handover *h, const char *handoff)
{
	struct attempt_terms terms = { .nodes = h->s.nodes, .ttl_us = TTL, .round_us = ROUND, .handoff = handoff };
	int i;

	memset(h->s.told, 0, sizeof(h->s.told));
	h->s.now = START + 5;
	h->agains = 0;
	for (i = 0; i < h->s.nodes; i++) {
		h->asked[i] = true;
		h->early[i] = false;
	}
	attempt_start(&h->s.attempt, &terms, START);
}

/* Every kind of node, early for every number of times, in every order. */
static void
test_batons(int nodes)
{
	static const int orders[] = { 1, 1, 2, 6 };
	const int64_t kinds = (int64_t)COUNT(baton_kinds), cases = kinds * (int64_t)COUNT(lates);
	struct handover h = { .s = { .nodes = nodes } };
	int64_t scene, number, order;
	int i;

	for (scene = 0; scene < power(cases, nodes); scene++) {
		for (order = 0; order < orders[nodes]; order++) {
			set_order(&h.s, order);
			for (i = 0, number = scene; i < nodes; i++, number /= cases) {
				h.s.kind[i] = baton_kinds[number % kinds];
				h.late[i] = lates[number % cases / kinds];
			}
			start_baton(&h, BATON);
			(void)play_baton(&h);
		}
	}
	each_ok("every hand-over with %d nodes", nodes);
}

/* Only the token of the baton, not yet released, is worth asking again. */
static void
test_no_baton(void)
{
	static const struct {
		const char *handoff;
		bool handover;
		enum attempt_step step;
	} cases[] = { { BATON, false, ATTEMPT_WAIT }, { BATON, true, ATTEMPT_HELD }, { "X", false, ATTEMPT_HELD },
		{ "", false, ATTEMPT_HELD }, { NULL, false, ATTEMPT_HELD } };
	struct attempt_answer answer = { .vote = VOTE_NO, .holder = { .token = BATON } };
	struct handover h = { .s = { .nodes = 1 } };
	size_t i;

	for (i = 0; i < COUNT(cases); i++) {
		start_baton(&h, cases[i].handoff);
		answer.holder.handover = cases[i].handover;
		attempt_answer(&h.s.attempt, 0, &answer);
		is_int(attempt_next(&h.s.attempt, h.s.now), cases[i].step, "baton %s, held by %s%s",
		    cases[i].handoff != NULL ? cases[i].handoff : "(none)", BATON,
		    cases[i].handover ? ", released" : "");
	}
	start_baton(&h, BATON);
	h.late[0] = FOREVER;
	is_int(play_baton(&h), ATTEMPT_HELD, "a release that never comes: it is the holder's");
	ok(attempt_holder(&h.s.attempt) != NULL && strcmp(attempt_holder(&h.s.attempt)->token, BATON) == 0,
	    "and the message names that holder");
	each_ok("and all as it should be on the way");
}

/* While the fence is raised nobody is asked again, and nothing is due but the end of the round. */
static void
test_raise_beside_early(void)
{
	struct attempt_answer early = { .vote = VOTE_NO, .holder = { .token = BATON } };
	struct attempt_answer yes = { .vote = VOTE_YES, .fence = LOW };
	struct handover h = { .s = { .nodes = 3 } };
	struct attempt *a = &h.s.attempt;

	start_baton(&h, BATON);
	attempt_answer(a, 2, &early);
	is_int(attempt_next(a, h.s.now), ATTEMPT_WAIT, "a node is early");
	ok(attempt_wake_us(a) < a->deadline_us, "it will be asked again");
	attempt_answer(a, 0, &yes);
	yes.fence = HIGH;
	attempt_answer(a, 1, &yes);
	is_int(attempt_next(a, h.s.now), ATTEMPT_RAISE, "a majority has granted it with two fences");
	is_int(attempt_next(a, h.s.now), ATTEMPT_WAIT, "it waits for the fence to be raised");
	is_int(attempt_wake_us(a), a->deadline_us, "until the end of the round, without a look before");
}

/* -- What the manual says --------------------------------------------------- */

static const struct {
	const char *nodes; /* l, h grant; a, b held; e error, u surely not granted, . silent */
	enum attempt_step step;
} table[] = {
	{ "l", ATTEMPT_GRANTED },
	{ "a", ATTEMPT_HELD },
	{ "e", ATTEMPT_NO_QUORUM },
	{ ".", ATTEMPT_NO_QUORUM },
	{ "lla", ATTEMPT_GRANTED },
	{ "hh.", ATTEMPT_GRANTED },
	{ "lh.", ATTEMPT_RAISE },
	{ "laa", ATTEMPT_HELD },
	{ "lab", ATTEMPT_SPLIT },
	{ "la.", ATTEMPT_SPLIT },
	{ "l..", ATTEMPT_NO_QUORUM },
	{ "leu", ATTEMPT_NO_QUORUM },
	{ "aeu", ATTEMPT_NO_QUORUM },
	{ "lllhh", ATTEMPT_GRANTED }, /* the majority that counted had the same fence */
	{ "lhlhl", ATTEMPT_RAISE },
	{ "llaab", ATTEMPT_SPLIT },
	{ "aaabb", ATTEMPT_HELD },
};

static void
test_table(void)
{
	static const char letters[] = "lhabeu.";
	struct scene s;
	size_t i;
	int j;

	for (i = 0; i < COUNT(table); i++) {
		memset(&s, 0, sizeof(s));
		s.nodes = (int)strlen(table[i].nodes);
		s.answers_at = START + 5;
		for (j = 0; j < s.nodes; j++) {
			s.kind[j] = (enum kind)(strchr(letters, table[i].nodes[j]) - letters);
			s.order[j] = j;
		}
		start(&s);
		is_int(play_answers(&s), table[i].step, "%s", table[i].nodes);
	}
	each_ok("and all as it should be on the way");
}

/* A frozen node that was silent before does not hold up contenders. */
static void
test_suspect(void)
{
	struct scene s = { .nodes = 3,
		.kind = { GRANTS_LOW, HELD_BY_A, SILENT },
		.order = { 0, 1, 2 },
		.answers_at = START };

	s.unresponsive[2] = true;
	start(&s);
	tell(&s, 0);
	is_int(next(&s), ATTEMPT_WAIT, "one vote of three, and a unresponsive: wait");
	tell(&s, 1);
	is_int(next(&s), ATTEMPT_SPLIT, "two votes of three, and a unresponsive: split");
	ok(attempt_perhaps_granted(&s.attempt, 2), "the unresponsive must be told to undo");
	each_ok("and all as it should be on the way");
}

/* -- A grant that comes while the fence is raised ----------------------------- */

/*
 * One that brings the very fence is as good as a node that recorded it.  One with a greater fence is not: somebody else's
 * may lie between the two that was given out before.
 */
static void
test_late_grant(int64_t late, enum attempt_step expected)
{
	const struct attempt_terms terms = { .nodes = 3, .ttl_us = TTL, .round_us = ROUND };
	struct attempt_answer answer = { .vote = VOTE_YES };
	struct attempt a;
	int i;

	attempt_start(&a, &terms, START);
	for (i = 0; i < 2; i++) {
		answer.fence = i == 0 ? LOW : HIGH;
		attempt_answer(&a, i, &answer);
	}
	is_int(attempt_next(&a, START + 1), ATTEMPT_RAISE, "two grants with two fences");
	answer.fence = late;
	attempt_answer(&a, 2, &answer);
	is_int(attempt_next(&a, START + 2), expected, "a late grant with fence %" PRId64, late);
	attempt_raised(&a, 0, VOTE_YES);
	is_int(attempt_next(&a, START + 3), ATTEMPT_GRANTED, "the other node has recorded it");
	is_int(a.fence, HIGH, "the fence is still the same");
}

/* -- A fence that nodes refuse to record ------------------------------------- */

static void
grant(struct attempt *a, int node, int64_t fence)
{
	const struct attempt_answer answer = { .vote = VOTE_YES, .fence = fence };

	attempt_answer(a, node, &answer);
}

/* The first node tells a fence that is too far ahead, the second one refuses it. */
static void
begin_too_far(struct attempt *a, int nodes)
{
	const struct attempt_terms terms = { .nodes = nodes, .ttl_us = TTL, .round_us = ROUND };

	attempt_start(a, &terms, START);
	grant(a, 0, HIGH);
	grant(a, 1, LOW);
	if (nodes == 5)
		grant(a, 2, LOW);
	is_int(attempt_next(a, START + 1), ATTEMPT_RAISE, "a fence that stands alone is to be raised");
	attempt_refused_fence(a, 1);
}

static void
test_too_far(void)
{
	struct attempt a;

	begin_too_far(&a, 3);
	is_int(attempt_next(&a, START + 2), ATTEMPT_WAIT, "it is refused: who told it doesn't count, the third may");
	ok(attempt_barred(&a, 0) && !attempt_barred(&a, 1), "the node that told it is known");
	grant(&a, 2, LOW);
	is_int(attempt_next(&a, START + 3), ATTEMPT_GRANTED, "the two others are a majority");
	is_int(a.fence, LOW, "by their fence");
	ok(attempt_perhaps_granted(&a, 0), "the first one may hold our token");

	begin_too_far(&a, 3);
	grant(&a, 2, LOW + 1);
	is_int(attempt_next(&a, START + 2), ATTEMPT_RAISE, "the two others differ: their larger one is raised");
	is_int(a.fence, LOW + 1, "that of the third");
	ok(attempt_lags(&a, 1) && !attempt_lags(&a, 0) && !attempt_lags(&a, 2), "on the second");
	attempt_raised(&a, 1, VOTE_YES);
	is_int(attempt_next(&a, START + 3), ATTEMPT_GRANTED, "and then it is granted");
	is_int(a.fence, LOW + 1, "by that fence");
}

static void
test_too_far_fails(void)
{
	struct attempt a;

	begin_too_far(&a, 3);
	is_int(attempt_next(&a, START + ROUND), ATTEMPT_NO_QUORUM, "without the one that told it there is no majority");
	ok(attempt_barred(&a, 0), "and it is known why");

	begin_too_far(&a, 5);
	is_int(attempt_next(&a, START + 2), ATTEMPT_WAIT, "refused by one of five: others may record it");
	attempt_raised(&a, 2, VOTE_YES);
	is_int(attempt_next(&a, START + 2), ATTEMPT_WAIT, "two have it, and more can't: who told it doesn't count");
	ok(attempt_barred(&a, 0), "though one has recorded it");
	grant(&a, 3, LOW);
	is_int(attempt_next(&a, START + 3), ATTEMPT_GRANTED, "three of five agree without it");
	is_int(a.fence, LOW, "by their fence");
}

int
main(void)
{
	int nodes;

	test_table();
	test_suspect();
	for (nodes = 1; nodes <= 3; nodes++)
		test_all(nodes);
	for (nodes = 1; nodes <= 3; nodes++)
		test_batons(nodes);
	test_no_baton();
	test_raise_beside_early();
	test_late_grant(LOW, ATTEMPT_WAIT);
	test_late_grant(HIGH, ATTEMPT_GRANTED);
	test_late_grant(HIGH + 1, ATTEMPT_WAIT);
	test_too_far();
	test_too_far_fails();
	test_larger(4);
	test_larger(5);
	test_largest();
	return tap_end();
}
