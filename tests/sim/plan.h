/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_SIM_PLAN_H
#define DLOCK_SIM_PLAN_H
#include <stdbool.h>
#include <stdint.h>

#include "kernel.h"
#include "net.h"

/*
 * A schedule: what a seed decides beforehand.  What it decides on the way (how long each message takes, say) comes from
 * `chance`.
 */
enum {
	TURNS = 3,
	FAULTS = 8
};

enum fault_kind {
	FAULT_FREEZE,  /* a server does nothing for a while */
	FAULT_CUT,     /* all connections of a server end */
	FAULT_RESTART, /* a server is killed and comes back with its data */
	FAULT_LOSE,    /* the same, without its data */
	FAULT_STALE,   /* the same, with the data of some time before, with a baton if there was one */
	FAULT_SPOIL,   /* a server has got a fence of another century */
	FAULT_MUTE,    /* a server's answers are held up */
	FAULT_PART,    /* a client and a server don't hear each other */
	FAULT_ISOLATE, /* a client hears no server */
	FAULT_CRASH,   /* a client is killed */
	FAULT_VANISH,  /* a client's host is gone without a word */
	FAULT_STOP,    /* a client is stopped; a timer of its own continues it */
	FAULT_SLEEP,   /* a client's host sleeps */
	FAULT_SIGNAL,  /* a client is told to end */
	FAULT_KINDS
};

struct fault {
	enum fault_kind kind;
	int64_t at_us, length_us;
	int server, client;
};

/* What a client does: dlock run, or acquire, renew and release by a script. */
struct turn {
	bool by_token;
	bool nested, outer_first; /* by a token: it enters again, and leaves the outer hold first */
	int64_t pause_us;	  /* before it */
	int64_t hold_us;
	int64_t wait_us; /* 0: it tries once; -1: without end */
	int64_t keep_ms; /* --min-hold, from the end on */
	int64_t term_us; /* how long a command needs to end when it is told to */
};

struct plan {
	uint64_t chance;
	int servers, clients, turns;
	int64_t ttl_ms, round_ms;
	bool guarded; /* --restart-guard, over several nodes the default */
	bool refuses; /* no server takes a BLPOP, as where an ACL or a proxy forbids it */
	struct net_plan net;
	int64_t server_offset_us[SERVERS];
	int server_drift[SERVERS];
	struct clock_plan clock[PROCESSES];
	struct turn turn[PROCESSES][TURNS];
	int faults;
	struct fault fault[FAULTS];
};

void plan_make(struct plan *, uint64_t seed);

/* Nothing goes wrong, and nothing takes unusually long. */
bool plan_is_calm(const struct plan *);

/* What a message usually takes to the node that is furthest away. */
int64_t plan_delay_us(const struct plan *);

/* Some server loses its data, or what it got last. */
bool plan_loses_data(const struct plan *);

/* This server has got a fence of another century. */
bool plan_spoils(const struct plan *, int server);

/*
 * Make a plan that fails smaller, step by step, as long as it fails.  `fails` runs a plan.
 */
void plan_shrink(struct plan *, bool (*fails)(const struct plan *));

/* Print it for people. */
void plan_print(const struct plan *);

#endif
