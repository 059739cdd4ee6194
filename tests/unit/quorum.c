/* SPDX-License-Identifier: MIT */
#include "lock/quorum.h"

#include "tap.h"

enum {
	NODES = 5,    /* all ballots of up to so many nodes are judged */
	SIDES = 3,    /* of those that vote no */
	NEW_SIDE = 9, /* of one who has not voted yet, and may agree with nobody */
	ANY = VERDICT_NO_QUORUM + 1
};

/* All that a node can be: its vote, its side, and whether it was silent last time. */
static const struct kind {
	enum vote vote;
	int side;
	bool unresponsive;
} kinds[] = {
	{ VOTE_PENDING, 0, false },
	{ VOTE_PENDING, 0, true },
	{ VOTE_YES, 0, false },
	{ VOTE_YES, 0, true },
	{ VOTE_NO, 0, false },
	{ VOTE_NO, 1, true },
	{ VOTE_NO, 2, false },
	{ VOTE_FAULT, 0, false },
	{ VOTE_FAULT, 0, true },
};

/* -- The definition --------------------------------------------------------- */

static int
votes(const struct ballot *b, enum vote vote, int side)
{
	int n = 0;

	for (int i = 0; i < b->nodes; i++)
		n += b->vote[i] == vote && (vote != VOTE_NO || b->side[i] == side);
	return n;
}

/* What a ballot means when everybody has voted or never will. */
static enum verdict
outcome(const struct ballot *b)
{
	int side, no = 0;

	if (2 * votes(b, VOTE_YES, 0) > b->nodes)
		return VERDICT_CARRIED;
	for (side = 0; side <= NEW_SIDE; side++) {
		if (2 * votes(b, VOTE_NO, side) > b->nodes)
			return VERDICT_REFUSED;
		no += votes(b, VOTE_NO, side);
	}
	return 2 * (votes(b, VOTE_YES, 0) + no) > b->nodes ? VERDICT_SPLIT : VERDICT_NO_QUORUM;
}

static int
first_pending(const struct ballot *b)
{
	for (int i = 0; i < b->nodes; i++) {
		if (b->vote[i] == VOTE_PENDING)
			return i;
	}
	return -1;
}

/* The one outcome that every completion of the ballot has, OPEN where they differ.  A fault is as good as silence. */
static enum verdict
foregone(struct ballot b)
{
	static const struct kind completions[] = { { VOTE_YES, 0, false }, { VOTE_FAULT, 0, false },
		{ VOTE_NO, 0, false }, { VOTE_NO, 1, false }, { VOTE_NO, 2, false }, { VOTE_NO, NEW_SIDE, false } };
	const int node = first_pending(&b);
	int all = ANY;

	if (node < 0)
		return outcome(&b);
	for (size_t i = 0; i < COUNT(completions); i++) {
		enum verdict verdict;

		b.vote[node] = completions[i].vote;
		b.side[node] = completions[i].side;
		verdict = foregone(b);
		if (verdict == VERDICT_OPEN || (all != ANY && verdict != (enum verdict)all))
			return VERDICT_OPEN;
		all = (int)verdict;
	}
	return (enum verdict)all;
}

/* A majority has voted, and only unresponsive nodes are missing. */
static bool
only_suspects_missing(const struct ballot *b)
{
	int voted = 0;

	for (int i = 0; i < b->nodes; i++) {
		if (b->vote[i] == VOTE_PENDING && !b->unresponsive[i])
			return false;
		voted += b->vote[i] == VOTE_YES || b->vote[i] == VOTE_NO;
	}
	return 2 * voted > b->nodes;
}

static enum verdict
defined(struct ballot b)
{
	const enum verdict certain = b.closed ? outcome(&b) : foregone(b);

	return certain == VERDICT_OPEN && only_suspects_missing(&b) ? outcome(&b) : certain;
}

/* -- All ballots ------------------------------------------------------------ */

static struct ballot
ballot_of(int nodes, unsigned long number, bool closed)
{
	struct ballot b = { .nodes = nodes, .closed = closed };

	for (int i = 0; i < nodes; i++, number /= COUNT(kinds)) {
		const struct kind *k = &kinds[number % COUNT(kinds)];

		b.vote[i] = k->vote;
		b.side[i] = k->side;
		b.unresponsive[i] = k->unresponsive;
	}
	/* What stands behind the nodes is not looked at. */
	b.vote[nodes] = VOTE_YES;
	b.vote[nodes + 1] = VOTE_YES;
	return b;
}

static void
swap(struct ballot *b, int i, int j)
{
	const struct ballot old = *b;

	b->vote[i] = old.vote[j];
	b->vote[j] = old.vote[i];
	b->side[i] = old.side[j];
	b->side[j] = old.side[i];
	b->unresponsive[i] = old.unresponsive[j];
	b->unresponsive[j] = old.unresponsive[i];
}

static void
test_all(int nodes)
{
	unsigned long number, count = 1;
	struct ballot b;
	enum verdict got, wanted;

	for (int i = 0; i < nodes; i++)
		count *= COUNT(kinds);
	for (number = 0; number < count; number++) {
		for (int closed = 0; closed < 2; closed++) {
			b = ballot_of(nodes, number, closed != 0);
			got = quorum_judge(&b);
			wanted = defined(b);
			each(got == wanted, "ballot %lu, closed %d: %d, not %d", number, closed, got, wanted);
			/* Swaps of neighbours make every order. */
			for (int i = 0; i + 1 < nodes; i++) {
				swap(&b, i, i + 1);
				each(quorum_judge(&b) == got, "ballot %lu: the order of %d and the next matters",
				    number, i);
				swap(&b, i, i + 1);
			}
		}
	}
	each_ok("every ballot of %d nodes", nodes);
}

/* Numbers of sides are names: any others, that distinguish the same nodes, mean the same. */
TEST(names_of_sides)
{
	struct ballot b;
	enum verdict got;

	for (int round = 0; round < 5000; round++) {
		b = ballot_of(NODES, (unsigned long)below(9 * 9 * 9 * 9 * 9), below(2) == 0);
		got = quorum_judge(&b);
		for (int i = 0; i < NODES; i++)
			b.side[i] = 1000 - 7 * b.side[i];
		each(quorum_judge(&b) == got, "round %d", round);
	}
	each_ok("sides may have any numbers");
}

/* -- Properties ----------------------------------------------- */

/* Votes as letters: y yes, a b c no by side, - fault, . pending, ? pending and unresponsive. */
static const struct {
	enum verdict verdict;
	bool closed;
	const char *votes[11];
} table[] = {
	{ VERDICT_CARRIED, false, { "y", "yy.", "yyy??", "yyyyyyyy......." } },
	{ VERDICT_REFUSED, false, { "a", "aa." } },
	{ VERDICT_NO_QUORUM, false, { "-", "y-", "--." } },
	{ VERDICT_NO_QUORUM, true, { ".", "y." } },
	{ VERDICT_SPLIT, false, { "ya", "yab", "abc", "ya?", "yyaa?", "yabc.", "yab??" } },
	{ VERDICT_SPLIT, false, { "yyyyyyyaaaaaaa?", "yyyyyyyaaaaaaab" } },
	{ VERDICT_SPLIT, true, { "ya." } },
	{ VERDICT_OPEN, false, { ".", "?", "y.", "ab.", "ya.", "y??", "y?-" } },
	{ VERDICT_OPEN, false, { "yyaa.", "yyab.", "aab..", "abc..", "ya-..", "ya--.", "yyyyyyyaaaaaaa." } },
};

static void
check_votes(const char *votes, bool closed, enum verdict verdict)
{
	static const char verdicts[][10] = { "open", "carried", "refused", "split", "no quorum" };
	struct ballot b = { .nodes = (int)strlen(votes), .closed = closed };

	for (size_t i = 0; votes[i] != '\0'; i++) {
		const char c = votes[i];

		b.unresponsive[i] = c == '?';
		b.vote[i] = c == 'y' ? VOTE_YES : c == '-' ? VOTE_FAULT : c >= 'a' ? VOTE_NO : VOTE_PENDING;
		b.side[i] = c;
	}
	is_str(verdicts[quorum_judge(&b)], verdicts[verdict], "%s%s", votes, closed ? ", the time is over" : "");
}

TEST(table)
{
	for (size_t i = 0; i < COUNT(table); i++) {
		for (size_t j = 0; table[i].votes[j] != NULL; j++)
			check_votes(table[i].votes[j], table[i].closed, table[i].verdict);
	}
}

TEST(majorities)
{
	for (int nodes = 1; nodes <= NODES_MAX; nodes++)
		each(2 * quorum_majority(nodes) > nodes && 2 * (quorum_majority(nodes) - 1) <= nodes, "%d nodes",
		    nodes);
	each_ok("a majority is more than half, and no more than that");
	for (int nodes = 1; nodes <= NODES; nodes++)
		test_all(nodes);
}
