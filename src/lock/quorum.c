/* SPDX-License-Identifier: MIT */
#include "lock/quorum.h"

struct tally {
	int yes;
	int no; /* on the largest side */
	int voted;
	int open;    /* nodes that may still vote */
	int awaited; /* those of them that are not unresponsive */
};

int
quorum_majority(int nodes)
{
	return nodes / 2 + 1;
}

int
quorum_count(const struct ballot *b, enum vote vote)
{
	int i, n = 0;

	for (i = 0; i < b->nodes; i++)
		n += b->vote[i] == vote;
	return n;
}

static int
count_side(const struct ballot *b, int side)
{
	int i, n = 0;

	for (i = 0; i < b->nodes; i++)
		n += b->vote[i] == VOTE_NO && b->side[i] == side;
	return n;
}

static struct tally
count(const struct ballot *b)
{
	struct tally t = { .yes = quorum_count(b, VOTE_YES) };
	int i, same;

	for (i = 0; i < b->nodes; i++) {
		if (b->vote[i] == VOTE_PENDING && !b->closed) {
			t.open++;
			t.awaited += !b->unresponsive[i];
		}
		if (b->vote[i] == VOTE_NO) {
			same = count_side(b, b->side[i]);
			t.no = same > t.no ? same : t.no;
		}
	}
	t.voted = t.yes + quorum_count(b, VOTE_NO);
	return t;
}

enum verdict
quorum_judge(const struct ballot *b)
{
	const struct tally t = count(b);
	const int majority = quorum_majority(b->nodes);

	if (t.yes >= majority)
		return VERDICT_CARRIED;
	if (t.no >= majority)
		return VERDICT_REFUSED;
	if (t.voted + t.open < majority)
		return VERDICT_NO_QUORUM;
	if (t.awaited == 0 && t.voted >= majority)
		return VERDICT_SPLIT;
	if (t.voted >= majority && t.yes + t.open < majority && t.no + t.open < majority)
		return VERDICT_SPLIT;
	return VERDICT_OPEN;
}
