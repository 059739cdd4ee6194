/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_SIM_PLAN_H
#define DLOCK_SIM_PLAN_H
#include "kernel.h"
#include "net.h"

/*
 * A schedule: everything that a seed decides in advance.  What is decided during the run (such as the delay of each
 * message) comes from `chance`.
 */
enum {
	TURNS = 3,
	FAULTS = 8,
	LOCKS = 4 /* the exclusive lock, and the slots from 1 */
};

enum fault_kind {
	FAULT_FREEZE,  /* a server hangs for a while */
	FAULT_CUT,     /* all connections of a server are closed */
	FAULT_RESTART, /* a server is killed and restarts with its data */
	FAULT_LOSE,    /* the same, without its data */
	FAULT_STALE,   /* the same, with older data, which may include a handoff token */
	FAULT_SPOIL,   /* the fence of a server is set to a date in a different century */
	FAULT_MUTE,    /* the replies of a server are delayed */
	FAULT_PART,    /* a client and a server can't reach each other */
	FAULT_ISOLATE, /* a client can't reach any server */
	FAULT_CRASH,   /* a client is killed */
	FAULT_VANISH,  /* the host of a client fails without closing its connections */
	FAULT_STOP,    /* a client is stopped; its own timer continues it */
	FAULT_SLEEP,   /* the host of a client is suspended */
	FAULT_SIGNAL,  /* a client gets a signal to end */
	FAULT_KINDS
};

struct fault {
	enum fault_kind kind;
	int64_t at_us, length_us;
	int server, client;
};

/* One task of a client: dlock run, or acquire, renew and release by a script. */
struct turn {
	bool by_token;
	bool nested, outer_first; /* with by_token: enter again, and leave the outer hold first */
	bool broken;		  /* with nested: the lock is not released but broken, with both holds */
	int64_t pause_us;	  /* pause before this turn */
	int64_t hold_us;
	int64_t wait_us; /* 0: try once; -1: no timeout */
	int64_t keep_ms; /* --min-hold: the lock is kept this long after the end */
	int64_t term_us; /* how long a command takes to end after a signal */
	int slots;	 /* it takes one of so many slots; 0: the lock itself */
	int max_waiters; /* it waits only beside fewer; 0: beside any number */
	bool shared;	 /* with other readers */
	bool replace;	 /* --replace: the holder is asked to end */
	bool asks;	 /* nothing but this: break --ask, of whoever is inside */
};

struct plan {
	uint64_t chance;
	int servers, clients, turns;
	int64_t ttl_ms, round_ms;
	bool guarded; /* --restart-guard, the default with several nodes */
	int slots;    /* the most that a turn asks for */
	bool shares;  /* some turns are those of readers */
	bool refuses; /* all servers refuse BLPOP, as if an ACL or a proxy forbids it */
	struct net_plan net;
	int64_t server_offset_us[SERVERS];
	int server_drift[SERVERS];
	struct clock_plan clock[PROCESSES];
	struct turn turn[PROCESSES][TURNS];
	int faults;
	struct fault fault[FAULTS];
};

void plan_make(struct plan *, uint64_t seed);

/* Is it a schedule without faults and without slow messages? */
bool plan_is_calm(const struct plan *);

/* The usual delay of a message to the most distant node. */
int64_t plan_delay_us(const struct plan *);

/* Does a server lose its data, or its latest data? */
bool plan_loses_data(const struct plan *);

/* Does this server get a fence of a different century? */
bool plan_spoils(const struct plan *, int server);

/*
 * Reduce a failing plan, step by step, as long as it still fails.  `fails` runs a plan.
 */
void plan_shrink(struct plan *, bool (*fails)(const struct plan *));

/* Print it in readable form. */
void plan_print(const struct plan *);

/*
 * Handwritten schedules.  Each of them once showed that dlock broke a rule.  The schedule of a seed changes with dlock;
 * these don't change.
 */

/* Fill in the plan (if not NULL) of that name.  Returns how many times to run it; 0: there is none of that name. */
int scenario_make(const char *name, struct plan *);

/* Print the names, one per line. */
int scenario_list(void);

#endif
