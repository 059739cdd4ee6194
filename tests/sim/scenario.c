/* SPDX-License-Identifier: MIT */
#include "plan.h"

#include <stdio.h>
#include <string.h>

#include "lock/lease.h"

/* A schedule without faults, in which all clients wait without a timeout. */
static void
begin(struct plan *p, int servers, int clients, int turns, int64_t ttl_ms)
{
	memset(p, 0, sizeof(*p));
	p->servers = servers;
	p->clients = clients;
	p->turns = turns;
	p->ttl_ms = ttl_ms;
	p->round_ms = lease_node_timeout_ms(ttl_ms);
	p->net.delay_us = 200;
	for (int c = 0; c < clients; c++) {
		p->clock[c].offset_us = 1000 * MS;
		for (int t = 0; t < turns; t++)
			p->turn[c][t] = (struct turn){ .hold_us = 5 * MS, .wait_us = -1 };
	}
}

/* The command ends before a distant node has replied to the renewal.  The release must reach that node, too. */
static void
interrupted_renewal(struct plan *p)
{
	begin(p, 3, 2, 1, 1500);
	p->net.far_us[0] = 20 * MS;
	p->turn[0][0].hold_us = 515 * MS;
	p->turn[1][0].pause_us = 100 * MS;
}

/* Half of the nodes are handed over, the other half is free.  A client in no queue finds the handoff token. */
static void
split_hand_over(struct plan *p)
{
	begin(p, 2, 2, 2, 1500);
	p->net.delay_us = 2800;
}

/* A kept lock ends earlier on two of three nodes.  A waiter at the third node must not stay there. */
static void
kept_not_everywhere(struct plan *p)
{
	begin(p, 3, 2, 2, 400);
	p->turn[0][0].keep_ms = 250;
	p->turn[0][1].pause_us = 1 * MS;
	p->turn[0][1].hold_us = 2 * MS;
	p->turn[1][0].pause_us = 40 * MS;
	p->net.delay_us = 60;
	p->server_drift[0] = -40;
	p->server_drift[1] = p->server_drift[2] = 40;
	p->server_offset_us[0] = 590;
}

/* The outer hold ends before a node has received the inner one.  The lock isn't free. */
static void
outer_ends_first(struct plan *p)
{
	begin(p, 3, 1, 1, 400);
	p->turn[0][0] = (struct turn){ .by_token = true, .nested = true, .outer_first = true, .hold_us = 30 * MS };
	p->net.delay_us = 1800;
}

/* If BLPOP is refused there must be no handoff: it would keep the lock for the window without a waiter. */
static void
refused_queue(struct plan *p)
{
	begin(p, 1, 2, 1, 600);
	p->refuses = true;
	p->round_ms = 2000;
	p->turn[0][0].hold_us = p->turn[1][0].hold_us = 200 * MS;
}

/*
 * Client 1 takes the lock and ends dlock before node 0, which sent it the handoff token, has accepted its new
 * connection.  The request must reach that node, where client 2 has come to wait: otherwise the released token is left
 * there, and client 2 is not woken.
 */
static void
queue_node_reconnects(struct plan *p)
{
	begin(p, 3, 3, 1, 1500);
	p->net.delay_us = 5 * MS;
	p->net.idle_us = 500 * MS;
	p->turn[0][0].hold_us = 1300 * MS;
	p->turn[1][0] = (struct turn){ .by_token = true, .pause_us = 50 * MS, .hold_us = 50 * MS, .wait_us = -1 };
	p->turn[2][0].pause_us = 1320 * MS;
}

/* The command has ended before dlock waits for it.  That is no signal to the next dlock. */
static void
short_command(struct plan *p)
{
	begin(p, 1, 1, 2, 1500);
	p->clock[0].preempt = 5;
	p->clock[0].preempt_us = 1 * MS;
	p->turn[0][0].hold_us = p->turn[0][1].hold_us = MS / 10;
}

/*
 * A reader's request to enter is late, so that it ends its hold before the node has received it.  The set of holds, which
 * then has this hold only, does not say that the first reader has left.
 */
static void
late_entrance(struct plan *p)
{
	begin(p, 1, 4, 3, 3000);
	p->shares = true;
	p->net.slow_per_mille = 40;
	p->net.slow_us = 600 * MS;
	p->round_ms = 50;
	for (int c = 0; c < 4; c++) {
		for (int t = 0; t < 3; t++)
			p->turn[c][t] = (struct turn){ .shared = true,
				.pause_us = 5 * MS,
				.hold_us = c == 0 ? 900 * MS : 5 * MS,
				.wait_us = -1 };
	}
}

/*
 * A reader fails to enter, and takes its hold back while a distant node has not replied.  Nothing waits for that node after
 * that, but the release of the lock that the reader gets next must reach it, too.
 */
static void
marked_by_entrance(struct plan *p)
{
	begin(p, 3, 2, 1, 1565);
	p->shares = true;
	p->net.far_us[0] = 4500;
	p->turn[0][0] = (struct turn){ .shared = true, .hold_us = 3 * MS };
	p->turn[1][0] = (struct turn){ .shared = true, .pause_us = MS / 2, .hold_us = 1120 * MS, .wait_us = -1 };
}

/*
 * The nodes that reply first have two fences: that of the group, and one of another century, which no node records.  The
 * distant one has a third, since its clock is ahead.  A reader enters all the same.
 */
static void
spoiled_fence(struct plan *p)
{
	begin(p, 3, 2, 1, 1500);
	p->shares = true;
	p->net.far_us[0] = 4 * MS;
	p->server_offset_us[0] = 2400000 * MS;
	p->turn[0][0] = (struct turn){ .shared = true, .hold_us = 40000 * MS };
	p->turn[1][0] = (struct turn){ .shared = true, .pause_us = 100 * MS, .hold_us = 5 * MS, .wait_us = -1 };
	p->fault[p->faults++] = (struct fault){ .kind = FAULT_SPOIL, .at_us = 50 * MS, .server = 1 };
}

static const struct scenario {
	const char *name;
	void (*make)(struct plan *);
	int times;
} scenarios[] = {
	{ "interrupted-renewal", interrupted_renewal, 20 },
	{ "kept-not-everywhere", kept_not_everywhere, 300 },
	{ "late-entrance", late_entrance, 300 },
	{ "marked-by-entrance", marked_by_entrance, 1000 },
	{ "outer-ends-first", outer_ends_first, 1000 },
	{ "queue-node-reconnects", queue_node_reconnects, 300 },
	{ "refused-queue", refused_queue, 100 },
	{ "short-command", short_command, 100 },
	{ "spoiled-fence", spoiled_fence, 30 },
	{ "split-hand-over", split_hand_over, 300 },
};

int
scenario_make(const char *name, struct plan *p)
{
	for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++) {
		if (strcmp(scenarios[i].name, name) != 0)
			continue;
		if (p != NULL)
			scenarios[i].make(p);
		return scenarios[i].times;
	}
	return 0;
}

int
scenario_list(void)
{
	for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++)
		(void)puts(scenarios[i].name);
	return 0;
}
