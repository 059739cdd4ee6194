/* SPDX-License-Identifier: MIT */
#include "plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lock/lease.h"

#define FAULTS_UNTIL_US (3000 * MS)

static struct chance from_seed;

static int64_t
roll(int64_t least, int64_t most)
{
	return chance_between(&from_seed, least, most);
}

static bool
one_in(int64_t n)
{
	return chance_one_in(&from_seed, n);
}

/* Data is lost only with a restart guard, and a minority of the servers gets a wrong fence. */
static bool
is_possible(const struct plan *p, enum fault_kind kind)
{
	if (kind == FAULT_LOSE || kind == FAULT_STALE)
		return p->guarded;
	if (kind != FAULT_SPOIL)
		return true;
	for (int i = 0; i < p->servers; i++) {
		if (plan_spoils(p, i))
			return false;
	}
	return p->servers > 2;
}

static void
make_faults(struct plan *p)
{
	static const int64_t lengths_ms[] = { 1, 20, 200, 1000, 4000 };
	enum fault_kind kind;
	struct fault *f;

	p->faults = one_in(3) ? 0 : (int)roll(1, one_in(2) ? 2 : FAULTS);
	for (int i = 0; i < p->faults; i++) {
		f = &p->fault[i];
		f->kind = FAULT_KINDS;
		do {
			kind = (enum fault_kind)roll(0, FAULT_KINDS - 1);
		} while (!is_possible(p, kind));
		f->kind = kind;
		f->at_us = roll(0, one_in(2) ? FAULTS_UNTIL_US / 100 : FAULTS_UNTIL_US);
		f->length_us = roll(1, lengths_ms[roll(0, f->kind == FAULT_STALE ? 2 : 4)] * MS);
		f->server = (int)roll(0, p->servers - 1);
		f->client = (int)roll(0, p->clients - 1);
	}
}

/* The turns of all clients have numbers. */
static struct turn *
turn_of(struct plan *p, int number)
{
	return &p->turn[number / p->turns][number % p->turns];
}

static void
make_turn(const struct plan *p, struct turn *t)
{
	t->by_token = one_in(3);
	t->nested = t->by_token && one_in(2);
	t->outer_first = one_in(2);
	t->pause_us = roll(0, one_in(2) ? 2 * MS : 300 * MS);
	t->hold_us = roll(0, one_in(3) ? 2 * p->ttl_ms * MS : one_in(2) ? p->ttl_ms * MS / 4 : 5 * MS);
	t->wait_us = one_in(4) ? 0 : one_in(3) ? roll(1, 2000) * MS : -1;
	t->keep_ms = one_in(10) ? roll(1, p->ttl_ms) : 0;
	t->term_us = one_in(2) ? roll(0, 2 * MS) : roll(0, p->ttl_ms * MS / 2);
}

static void
make_clocks(struct plan *p)
{
	const bool drift = one_in(3), skew = one_in(3), preempt = one_in(4);

	for (int i = 0; i < p->servers; i++) {
		p->server_offset_us[i] = roll(-50 * MS, 50 * MS);
		p->server_drift[i] = drift ? (int)roll(-40, 40) : 0;
	}
	for (int i = 0; i < p->clients; i++) {
		p->clock[i].offset_us = roll(MS, 1000 * 1000 * MS);
		p->clock[i].drift = drift ? (int)roll(-40, 40) : 0;
		p->clock[i].skew_us = skew ? roll(-7200, 7200) * 1000 * MS : roll(-20 * MS, 20 * MS);
		p->clock[i].preempt = preempt ? (int)roll(20, 400) : 0;
		p->clock[i].preempt_us = roll(1, one_in(2) ? 2 * MS : p->ttl_ms * 1500);
	}
}

static void
make_net(struct plan *p)
{
	p->net.delay_us = one_in(4) ? roll(1 * MS, 5 * MS) : roll(30, 300);
	p->net.slow_per_mille = one_in(3) ? (int)roll(1, 60) : 0;
	p->net.slow_us = p->net.delay_us + roll(10 * MS, 1500 * MS);
	if (one_in(5))
		p->net.far_us[roll(0, p->servers - 1)] = roll(100, 5 * MS);
	p->net.torn_per_mille = one_in(4) ? (int)roll(1, 200) : 0;
}

/* Fewer than clients.  In one schedule of four the turns differ: fewer slots, or the exclusive lock beside them. */
static void
make_slots(struct plan *p)
{
	const bool differ = one_in(4);

	p->slots = one_in(3) ? (int)roll(1, p->clients - 1) : 0;
	for (int i = 0; i < p->clients * p->turns; i++)
		turn_of(p, i)->slots = differ ? (int)roll(0, p->slots) : p->slots;
}

/* In one schedule of four, with turns that differ. */
static void
make_max_waiters(struct plan *p)
{
	const bool any = one_in(4);

	for (int i = 0; i < p->clients * p->turns; i++)
		turn_of(p, i)->max_waiters = any && one_in(2) ? (int)roll(1, p->clients - 1) : 0;
}

/*
 * Readers and writers, where there are no slots.  Sometimes a reader stays for long: who sleeps although the lock is open
 * to it can't wait for its end.
 */
static void
make_readers(struct plan *p)
{
	const int most = one_in(2) ? 2 : 4; /* one turn in so many is a writer's */

	p->shares = p->slots == 0 && one_in(2);
	for (int i = 0; i < p->clients * p->turns && p->shares; i++) {
		turn_of(p, i)->shared = !one_in(most);
		if (turn_of(p, i)->shared)
			turn_of(p, i)->broken = false; /* others use it, too */
	}
	if (p->shares && one_in(4)) {
		p->turn[0][0].shared = true;
		p->turn[0][0].broken = false;
		p->turn[0][0].hold_us = roll(3000, 40000) * MS;
	}
}

/* In one schedule of four without readers, holders are asked to end. */
static void
make_requests(struct plan *p)
{
	const bool some = !p->shares && one_in(4);

	for (int i = 0; i < p->clients * p->turns; i++) {
		turn_of(p, i)->replace = some && one_in(2) && turn_of(p, i)->slots == 0;
		turn_of(p, i)->asks = some && one_in(6);
	}
}

void
plan_make(struct plan *p, uint64_t seed)
{
	static const int servers[] = { 1, 1, 1, 2, 3, 3, 3, 3, 3, 5 };

	memset(p, 0, sizeof(*p));
	from_seed.state = seed;
	p->chance = seed ^ 0x5ca1ab1e;
	p->servers = servers[roll(0, 9)];
	p->clients = (int)roll(2, one_in(2) ? 3 : PROCESSES);
	p->turns = (int)roll(1, one_in(3) ? TURNS : 2);
	p->ttl_ms = one_in(2) ? roll(150, 600) : roll(600, 3000);
	p->round_ms = lease_node_timeout_ms(p->ttl_ms);
	p->guarded = p->servers > 1 ? !one_in(5) : one_in(3);
	make_net(p);
	make_clocks(p);
	for (int i = 0; i < p->clients * p->turns; i++)
		make_turn(p, turn_of(p, i));
	make_faults(p);
	/* Long enough for a first request, and for dlock to detect it (IDLE_US in server.c). */
	p->net.idle_us = one_in(3) ? 110 * MS + 10 * plan_delay_us(p) + roll(0, one_in(2) ? 10 * MS : 900 * MS) : 0;
	p->refuses = one_in(10);
	for (int i = 0; i < p->clients * p->turns; i++)
		turn_of(p, i)->broken = turn_of(p, i)->nested && one_in(3);
	make_slots(p);
	make_max_waiters(p);
	make_readers(p);
	make_requests(p);
}

int64_t
plan_delay_us(const struct plan *p)
{
	int64_t far = 0;

	for (int i = 0; i < p->servers; i++)
		far = p->net.far_us[i] > far ? p->net.far_us[i] : far;
	return p->net.delay_us + far;
}

bool
plan_is_calm(const struct plan *p)
{
	for (int i = 0; i < p->clients; i++) {
		if (p->clock[i].preempt != 0 && p->clock[i].preempt_us > 2 * MS)
			return false;
	}
	/* A round must have time for a first connection and two replies. */
	return p->faults == 0 && p->net.slow_per_mille == 0 && 16 * plan_delay_us(p) < p->round_ms * MS;
}

bool
plan_loses_data(const struct plan *p)
{
	for (int i = 0; i < p->faults; i++) {
		if (p->fault[i].kind == FAULT_LOSE || p->fault[i].kind == FAULT_STALE)
			return true;
	}
	return false;
}

bool
plan_spoils(const struct plan *p, int server)
{
	for (int i = 0; i < p->faults; i++) {
		if (p->fault[i].kind == FAULT_SPOIL && p->fault[i].server == server)
			return true;
	}
	return false;
}

void
plan_print(const struct plan *p)
{
	const struct turn *t;

	printf("%d nodes, %d clients, lease %" PRId64 " ms, node timeout %" PRId64 " ms, messages take about %" PRId64
	       " us%s%s%s\n",
	    p->servers, p->clients, p->ttl_ms, p->round_ms, p->net.delay_us,
	    p->net.slow_per_mille > 0 ? ", some much longer" : "", p->guarded ? ", restart guard" : "",
	    p->refuses ? ", no BLPOP" : "");
	for (int i = 0; i < p->servers; i++) {
		if (p->net.far_us[i] > 0)
			printf("node %d is %" PRId64 " us further away\n", i, p->net.far_us[i]);
	}
	if (p->net.idle_us > 0)
		printf("connections on which nothing moves for %" PRId64 " us are closed\n", p->net.idle_us);
	for (int c = 0; c < p->clients; c++) {
		for (int i = 0; i < p->turns; i++) {
			t = &p->turn[c][i];
			printf("client %d: %s%s for %.3f ms, ", c, t->by_token ? "acquire" : "run",
			    t->nested ? ", entered again," : "", (double)t->hold_us / 1000);
			printf(t->wait_us < 0	  ? "waits"
				: t->wait_us == 0 ? "does not wait"
						  : "waits %.3f ms",
			    (double)t->wait_us / 1000);
			if (t->max_waiters > 0)
				printf(" beside fewer than %d", t->max_waiters);
			if (t->slots > 0)
				printf(", one of %d slots", t->slots);
			if (t->shared)
				printf(", shared");
			if (t->replace)
				printf(", replaces the holder");
			if (t->asks)
				printf(", no, only asks the holder to end");
			if (t->broken)
				printf(", then it is broken");
			if (t->keep_ms > 0)
				printf(", keeps it for %" PRId64 " ms", t->keep_ms);
			putchar('\n');
		}
	}
}
