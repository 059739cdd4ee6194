/* SPDX-License-Identifier: MIT */
/* Reduces a failing schedule. */
#include <string.h>

#include "plan.h"

/* Each reduced plan gets different random numbers during the run, so it is tried this many times. */
#define RETRIES 12

static bool (*still_fails)(const struct plan *);

/* If the smaller plan fails, with any rule, it replaces the plan. */
static bool
adopt(struct plan *p, struct plan *smaller)
{
	const uint64_t chance = smaller->chance;

	if (memcmp(p, smaller, sizeof(*p)) == 0)
		return false;
	for (int i = 0; i < RETRIES; i++) {
		smaller->chance = chance + (uint64_t)i;
		if (still_fails(smaller)) {
			*p = *smaller;
			return true;
		}
	}
	return false;
}

static bool
drop_a_fault(struct plan *p)
{
	struct plan q;

	for (int i = 0; i < p->faults; i++) {
		q = *p;
		q.faults--;
		memmove(q.fault + i, q.fault + i + 1, (size_t)(q.faults - i) * sizeof(q.fault[0]));
		memset(&q.fault[q.faults], 0, sizeof(q.fault[0]));
		if (adopt(p, &q))
			return true;
	}
	return false;
}

static bool
drop_a_client(struct plan *p)
{
	struct plan q;

	for (int c = 0; c < p->clients && p->clients > 1; c++) {
		q = *p;
		q.clients--;
		memmove(q.turn + c, q.turn + c + 1, (size_t)(q.clients - c) * sizeof(q.turn[0]));
		memmove(q.clock + c, q.clock + c + 1, (size_t)(q.clients - c) * sizeof(q.clock[0]));
		for (int i = 0; i < q.faults; i++) {
			if (q.fault[i].client >= c && q.fault[i].client > 0)
				q.fault[i].client--;
		}
		if (adopt(p, &q))
			return true;
	}
	return false;
}

static bool
drop_servers(struct plan *p)
{
	struct plan q = *p;

	if (p->servers == 1)
		return false;
	q.servers -= q.servers == 2 ? 1 : 2;
	for (int i = 0; i < q.faults; i++)
		q.fault[i].server %= q.servers;
	return adopt(p, &q);
}

static bool
drop_a_slot(struct plan *p)
{
	struct plan q = *p;

	q.slots -= q.slots > 0;
	for (int c = 0; c < q.clients; c++) {
		for (int t = 0; t < q.turns; t++)
			q.turn[c][t].slots = q.turn[c][t].slots > q.slots ? q.slots : q.turn[c][t].slots;
	}
	return adopt(p, &q);
}

/* One turn of each client fewer, only simple ones, as many slots in each, no readers, a network without peculiarities, good clocks. */
static bool
simplify(struct plan *p)
{
	struct plan q[6] = { *p, *p, *p, *p, *p, *p };

	q[0].turns -= q[0].turns > 1;
	for (int c = 0; c < p->clients; c++) {
		for (int t = 0; t < p->turns; t++) {
			q[1].turn[c][t].max_waiters = 0;
			q[1].turn[c][t].by_token = q[1].turn[c][t].nested = q[1].turn[c][t].broken = false;
			q[4].turn[c][t].slots = p->slots;
			q[5].turn[c][t].shared = q[5].shares = false;
		}
	}
	q[2].net = (struct net_plan){ .delay_us = p->net.delay_us };
	memset(q[3].server_drift, 0, sizeof(q[3].server_drift));
	memset(q[3].server_offset_us, 0, sizeof(q[3].server_offset_us));
	for (int i = 0; i < PROCESSES; i++)
		q[3].clock[i] = (struct clock_plan){ .offset_us = p->clock[i].offset_us };
	return adopt(p, &q[0]) || adopt(p, &q[1]) || adopt(p, &q[2]) || adopt(p, &q[3]) || adopt(p, &q[4]) ||
	    adopt(p, &q[5]);
}

void
plan_shrink(struct plan *p, bool (*fails)(const struct plan *))
{
	still_fails = fails;
	while (drop_a_fault(p) || drop_a_client(p) || drop_servers(p) || drop_a_slot(p) || simplify(p))
		;
}
