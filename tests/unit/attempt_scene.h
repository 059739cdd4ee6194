/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_TESTS_UNIT_ATTEMPT_SCENE_H
#define DLOCK_TESTS_UNIT_ATTEMPT_SCENE_H
/* An attempt with simulated nodes, for the tests of attempt.c. */
#include "lock/attempt.h"

#include "base/clock.h"
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

/* A scene: what the nodes do, in which order and when they reply; and what has happened so far. */
struct scene {
	int nodes;
	enum kind kind[NODES_MAX];
	bool unresponsive[NODES_MAX];
	int order[NODES_MAX];
	enum vote raise[NODES_MAX]; /* the reply to the raised fence; VOTE_PENDING: none */
	int64_t answers_at;
	int64_t raises_at;
	bool mixed; /* late replies to the acquire request arrive between the replies to the raised fence */

	struct attempt attempt;
	int64_t now;
	bool replied[NODES_MAX];
	int64_t record[NODES_MAX]; /* the fence that a node has stored */
};

/* Does the fence go to this node? */
static inline bool
needs_fence(const struct attempt *a, int node)
{
	return a->raising && a->raises.vote[node] == VOTE_PENDING;
}

/* When whoever waits for replies goes on. */
static inline int64_t
wakes_at(const struct attempt *a)
{
	return clock_sooner(a->again_us, a->deadline_us);
}

/* -- What the nodes have replied -------------------------------------------- */

static inline bool
majority(const struct scene *s, int n)
{
	return 2 * n > s->nodes;
}

static inline bool
granted(const struct scene *s, int node)
{
	return s->replied[node] && (s->kind[node] == GRANTS_LOW || s->kind[node] == GRANTS_HIGH);
}

static inline int
replies(const struct scene *s, enum kind kind)
{
	int n = 0;

	for (int i = 0; i < s->nodes; i++)
		n += s->replied[i] && s->kind[i] == kind;
	return n;
}

static inline int
recorded(const struct scene *s, int64_t fence)
{
	int n = 0;

	for (int i = 0; i < s->nodes; i++)
		n += granted(s, i) && s->record[i] >= fence;
	return n;
}

/* After ATTEMPT_GRANTED: the grant and its fence are right. */
static inline void
check_granted(const struct scene *s)
{
	const int64_t fence = s->attempt.fence;
	int yes = 0, smaller = 0;

	for (int i = 0; i < s->nodes; i++) {
		yes += granted(s, i);
		smaller += granted(s, i) && (s->kind[i] == GRANTS_LOW ? LOW : HIGH) <= fence;
	}
	each(majority(s, yes), "granted by %d of %d", yes, s->nodes);
	each(s->now < s->attempt.valid_until_us, "granted when validity had ended");
	each(majority(s, smaller), "fence %" PRId64 " is smaller than what the majority knows", fence);
	each(majority(s, recorded(s, fence)), "fence %" PRId64 " is recorded on %d of %d", fence, recorded(s, fence),
	    s->nodes);
}

/* The node replies to the acquire request, unless it is silent. */
static inline void
reply(struct scene *s, int node)
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
	s->replied[node] = true;
	attempt_answer(&s->attempt, node, &answer);
}

/* -- Enumerating scenes ----------------------------------------------------- */

static inline int64_t
power(int64_t base, int exponent)
{
	return exponent == 0 ? 1 : base * power(base, exponent - 1);
}

/* The permutation of that number. */
static inline void
set_order(struct scene *s, int64_t number)
{
	int j, node;

	for (int i = 0; i < s->nodes; i++) {
		j = (int)(number % (i + 1));
		number /= i + 1;
		node = s->order[j];
		s->order[j] = i;
		if (j < i)
			s->order[i] = node;
	}
}

#endif
