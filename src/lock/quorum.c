/* SPDX-License-Identifier: MIT */
#include "lock/quorum.h"

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

int
quorum_side(const struct ballot *b, int node)
{
	int i, n = 0;

	for (i = 0; i < b->nodes; i++)
		n += b->vote[node] == VOTE_NO && b->vote[i] == VOTE_NO && b->side[i] == b->side[node];
	return n;
}

enum verdict
quorum_judge(const struct ballot *b)
{
	const int majority = quorum_majority(b->nodes);
	const int yes = quorum_count(b, VOTE_YES), voted = yes + quorum_count(b, VOTE_NO);
	int i, same, no = 0; /* on the largest side */
	int open = 0;	     /* nodes that may still vote */
	int awaited = 0;     /* those of them that are not unresponsive */

	for (i = 0; i < b->nodes; i++) {
		if (b->vote[i] == VOTE_PENDING && !b->closed) {
			open++;
			awaited += !b->unresponsive[i];
		}
		same = quorum_side(b, i);
		no = same > no ? same : no;
	}
	if (yes >= majority)
		return VERDICT_CARRIED;
	if (no >= majority)
		return VERDICT_REFUSED;
	if (voted + open < majority)
		return VERDICT_NO_QUORUM;
	if (voted >= majority && (awaited == 0 || (yes + open < majority && no + open < majority)))
		return VERDICT_SPLIT;
	return VERDICT_OPEN;
}
