/* SPDX-License-Identifier: MIT */
#include "cli/checks.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/findings.h"

#define OLDEST_MAJOR 5		       /* the scripts read the clock (TIME) before they write */
#define CLOCK_WARN_US INT64_C(1000000) /* NTP easily keeps clocks closer than this */
#define FENCE_REACH_US \
	INT64_C(1800000000) /* a node accepts a candidate for a fence that is at most this far from its clock */
#define CLIENTS_LEAST 64    /* minimum number of free connections; a waiter uses two */

/* -- One node --------------------------------------------------------------- */

static void
judge_version(struct findings *r, const struct node_facts *f)
{
	if (f->version[0] == '\0')
		finding_add(r, GRADE_WARN, "allow INFO to this user", "unknown");
	else if (strcmp(f->software, "Redis") == 0 && strtol(f->version, NULL, 10) < OLDEST_MAJOR)
		finding_add(r, GRADE_FAIL, "dlock needs Redis 5 or later", "%s %s", f->software, f->version);
	else
		finding_add(r, GRADE_OK, "", "%s %s", f->software, f->version);
}

static void
judge_role(struct findings *r, const struct node_facts *f)
{
	if (f->role[0] == '\0')
		finding_add(r, GRADE_WARN, "allow INFO to this user", "unknown");
	else if (strcmp(f->role, "master") == 0)
		finding_add(r, GRADE_OK, "", "primary");
	else
		finding_add(r, GRADE_FAIL, "it grants no locks: use the primary instead",
		    strcmp(f->role, "slave") == 0 ? "a replica" : "a %s", f->role);
}

/* Does a restart lose locks?  *what describes the persistence settings. */
static bool
forgets(const struct node_facts *f, const char **what)
{
	if (f->aof == FACT_UNKNOWN)
		*what = "unknown";
	else if (f->aof == 0 && f->snapshots == 0)
		*what = "AOF and snapshots are off: a restart forgets every lock";
	else if (f->aof == 0)
		*what = "AOF is off: a restart forgets every lock since the last snapshot";
	else if (f->fsync[0] == '\0')
		*what = "AOF is on, appendfsync unknown";
	else if (strcmp(f->fsync, "always") == 0)
		*what = "AOF is on, appendfsync always";
	else if (strcmp(f->fsync, "no") == 0)
		*what = "AOF is on, appendfsync no: a crash of the host forgets the locks of about half a minute";
	else
		*what = "AOF is on, appendfsync everysec: a crash forgets the locks of the last second";
	return strcmp(f->fsync, "always") != 0 || f->aof != 1;
}

static void
judge_persistence(struct findings *r, const struct node_facts *f)
{
	const int64_t guard = r->terms->restart_guard_ms;
	char advice[200], text[32];
	const char *what;

	(void)finding_show_ms(r->terms->ttl_ms, text, sizeof(text));
	(void)snprintf(advice, sizeof(advice),
	    "with --restart-guard %s, or the longest lease in use if that is longer, a node that has just started "
	    "grants nothing until older locks have ended",
	    text);
	if (!forgets(f, &what))
		finding_add(r, GRADE_OK, "", "%s", what);
	else if (f->aof == FACT_UNKNOWN)
		finding_add(r, GRADE_WARN, "allow INFO to this user", "%s", what);
	else if (guard >= r->terms->ttl_ms && f->uptime_s != FACT_UNKNOWN)
		finding_add(r, GRADE_OK, "", "%s; --restart-guard covers this", what);
	else
		finding_add(r, GRADE_WARN, advice, "%s", what);
}

static void
judge_memory(struct findings *r, const struct node_facts *f)
{
	const bool evicts = f->policy[0] != '\0' && strcmp(f->policy, "noeviction") != 0;
	char so_far[64] = "";

	if (f->maxmemory == FACT_UNKNOWN || f->policy[0] == '\0')
		finding_add(r, GRADE_WARN, "allow INFO to this user", "unknown");
	else if (f->maxmemory == 0)
		finding_add(r, GRADE_OK, "", "no maxmemory, nothing is evicted");
	else if (evicts) {
		if (f->evicted > 0)
			(void)snprintf(so_far, sizeof(so_far), " (%" PRId64 " keys so far)", f->evicted);
		finding_add(r, GRADE_WARN, "set maxmemory-policy noeviction, or use a separate Redis server for locks",
		    "maxmemory-policy %s: locks are evicted when memory is short%s", f->policy, so_far);
	} else if (f->used_memory >= f->maxmemory - f->maxmemory / 10)
		finding_add(r, GRADE_WARN, "raise maxmemory: a full server grants no locks",
		    "noeviction, %.0f%% of maxmemory is used", 100.0 * (double)f->used_memory / (double)f->maxmemory);
	else
		finding_add(r, GRADE_OK, "", "maxmemory-policy noeviction");
}

static void
judge_clock(struct findings *r, const struct node_facts *f)
{
	const int64_t off = f->offset_us < 0 ? -f->offset_us : f->offset_us;
	const char *advice = "";
	char text[32];

	if (!f->clock_known) {
		finding_add(r, GRADE_WARN, "allow TIME to this user", "unknown");
		return;
	}
	if (off >= FENCE_REACH_US)
		advice = "set the clocks by NTP: fences from this host may not be the time of day";
	else if (off >= CLOCK_WARN_US)
		advice = "set the clocks by NTP: after a loss of data, fences grow only as far as clocks agree";
	finding_add(r, off >= CLOCK_WARN_US ? GRADE_WARN : GRADE_OK, advice, "%s %s this host's",
	    finding_show_us(off, text, sizeof(text)), f->offset_us < 0 ? "behind" : "ahead of");
}

static void
judge_uptime(struct findings *r, const struct node_facts *f)
{
	char text[32];

	if (f->uptime_s == FACT_UNKNOWN)
		finding_add(r, GRADE_WARN, "allow INFO to this user",
		    r->terms->restart_guard_ms > 0 ? "unknown: --restart-guard cannot apply to this node" : "unknown");
	else if (f->uptime_s * 1000 < r->terms->ttl_ms)
		finding_add(r, GRADE_WARN, "older locks may still be in use: wait until the longest lease has ended",
		    "it started %s ago", finding_show_ms(f->uptime_s * 1000, text, sizeof(text)));
	else
		finding_add(r, GRADE_OK, "", "%s", finding_show_ms(f->uptime_s * 1000, text, sizeof(text)));
}

static void
judge_replicas(struct findings *r, const struct node_facts *f)
{
	if (f->replicas == FACT_UNKNOWN)
		finding_add(r, GRADE_WARN, "allow INFO to this user", "unknown");
	else if (f->replicas == 0)
		finding_add(r, GRADE_OK, "", "none");
	else
		finding_add(r, GRADE_WARN,
		    "a failover forgets the newest locks; independent nodes without failover do not",
		    "%" PRId64 " connected", f->replicas);
}

/*
 * A client that is cut off from the sentinels together with the old primary doesn't learn about the new one.  Its
 * writes count as long as the old primary accepts them.
 */
static void
judge_failover(struct findings *r, const struct node_facts *f)
{
	if (!f->fails_over)
		return;
	if (r->terms->replicas > 0)
		finding_add(r, GRADE_OK, "", "locks must be confirmed by replicas (--replicas %d)", r->terms->replicas);
	else if (f->min_replicas == FACT_UNKNOWN)
		finding_add(r, GRADE_WARN, "allow CONFIG GET to this user, or give --replicas",
		    "min-replicas-to-write is unknown");
	else if (f->min_replicas == 0)
		finding_add(r, GRADE_WARN,
		    "use --replicas with the number of all replicas in every dlock, or set min-replicas-to-write to it",
		    "the primary accepts writes without replicas (min-replicas-to-write 0): when it is cut off from the "
		    "sentinels, it keeps a lock that the next primary grants to another");
	else
		finding_add(r, GRADE_OK, "", "min-replicas-to-write %" PRId64, f->min_replicas);
}

static void
judge_clients(struct findings *r, const struct node_facts *f)
{
	const int64_t left = f->maxclients - f->clients;

	if (f->clients == FACT_UNKNOWN || f->maxclients == FACT_UNKNOWN)
		finding_add(r, GRADE_WARN, "allow INFO and CONFIG GET to this user", "unknown");
	else if (left < CLIENTS_LEAST || left < f->maxclients / 10)
		finding_add(r, GRADE_WARN,
		    "raise maxclients: each dlock that holds a lock or waits uses one or two connections",
		    "%" PRId64 " of %" PRId64 " connections are in use", f->clients, f->maxclients);
	else
		finding_add(r, GRADE_OK, "", "%" PRId64 " of %" PRId64 " connections are in use", f->clients,
		    f->maxclients);
}

static void
judge_idling(struct findings *r, const struct node_facts *f)
{
	const int64_t rest_s = r->terms->ttl_ms / 3000;

	if (f->idle_timeout_s == FACT_UNKNOWN || f->keepalive_s == FACT_UNKNOWN)
		finding_add(r, GRADE_WARN, "allow CONFIG GET to this user", "timeout and tcp-keepalive are unknown");
	else if (f->idle_timeout_s > 0 && f->idle_timeout_s <= rest_s)
		finding_add(r, GRADE_WARN,
		    "set timeout to 0 or to more than a third of the lease: each renewal must reconnect",
		    "idle connections are closed after %" PRId64 "s", f->idle_timeout_s);
	else if (f->keepalive_s == 0)
		finding_add(r, GRADE_WARN, "set tcp-keepalive 300: a waiter whose host has vanished is never detected",
		    "tcp-keepalive is off");
	else
		finding_add(r, GRADE_OK, "", "timeout %" PRId64 ", tcp-keepalive %" PRId64, f->idle_timeout_s,
		    f->keepalive_s);
}

static const struct check checks[] = { { "answer", finding_answer }, { "reach", finding_reach },
	{ "lock", finding_trial }, { "version", judge_version }, { "role", judge_role },
	{ "persistence", judge_persistence }, { "memory", judge_memory }, { "clock", judge_clock },
	{ "uptime", judge_uptime }, { "replicas", judge_replicas }, { "failover", judge_failover },
	{ "clients", judge_clients }, { "idling", judge_idling } };

/* -- All nodes together ----------------------------------------------------- */

/* Find the first pair of nodes that are the same server. */
static bool
find_duplicates(const struct node_facts *f, int nodes, int *a, int *b)
{
	for (*a = 0; *a < nodes; ++*a) {
		for (*b = *a + 1; *b < nodes; ++*b) {
			if (f[*a].run_id[0] != '\0' && strcmp(f[*a].run_id, f[*b].run_id) == 0)
				return true;
		}
	}
	return false;
}

/* Have all nodes that are up reported their run_id? */
static bool
all_named(const struct node_facts *f, int nodes)
{
	int i;

	for (i = 0; i < nodes; i++) {
		if (f[i].up && f[i].run_id[0] == '\0')
			return false;
	}
	return true;
}

static void
judge_number(struct findings *r, int nodes)
{
	const int majority = quorum_majority(nodes);

	r->check = "nodes";
	if (nodes == 1)
		finding_add(r, GRADE_OK, "", "1: no lock is granted while it is unreachable");
	else if (nodes % 2 == 0)
		finding_add(r, GRADE_WARN, "use one more or one less: an even number tolerates no more failures",
		    "%d, of which %d must answer", nodes, majority);
	else
		finding_add(r, GRADE_OK, "", "%d, of which %d must answer", nodes, majority);
}

static void
judge_servers(struct findings *r, const struct node_facts *f, int nodes)
{
	int a, b;

	r->check = "servers";
	if (find_duplicates(f, nodes, &a, &b))
		finding_add(r, GRADE_FAIL, "a quorum needs independent nodes: give each server once",
		    "%s and %s are the same server", f[a].name, f[b].name);
	else if (nodes > 1 && all_named(f, nodes))
		finding_add(r, GRADE_OK, "", "no two nodes report the same server");
	else if (nodes > 1)
		finding_add(r, GRADE_WARN, "allow INFO to this user", "not all nodes report which server they are");
}

static void
judge_spread(struct findings *r, const struct node_facts *f, int nodes)
{
	int64_t least = INT64_MAX, most = INT64_MIN;
	int i, known = 0;
	char text[32];

	for (i = 0; i < nodes; i++) {
		if (!f[i].up || !f[i].clock_known)
			continue;
		known++;
		least = f[i].offset_us < least ? f[i].offset_us : least;
		most = f[i].offset_us > most ? f[i].offset_us : most;
	}
	r->check = "clocks";
	if (known < 2)
		return;
	finding_add(r, most - least >= CLOCK_WARN_US ? GRADE_WARN : GRADE_OK,
	    most - least >= CLOCK_WARN_US ? "set the nodes' clocks by NTP" : "", "%s between the nodes",
	    finding_show_us(most - least, text, sizeof(text)));
}

size_t
checks_judge(const struct checks_terms *terms, const struct node_facts *f, int nodes,
    struct finding found[FINDINGS_MAX])
{
	struct findings r = { .terms = terms, .next = found };
	int i;

	for (i = 0; i < nodes; i++)
		finding_judge(&r, &f[i], checks, sizeof(checks) / sizeof(checks[0]));
	r.node = NULL;
	judge_number(&r, nodes);
	judge_servers(&r, f, nodes);
	judge_spread(&r, f, nodes);
	finding_tls(&r);
	return (size_t)(r.next - found);
}

enum status
checks_outcome(const struct node_facts *f, int nodes, const struct finding *found, size_t count, struct err *err)
{
	const int majority = quorum_majority(nodes);
	int i, a, b, fit = 0, denied = 0;
	size_t k;

	for (i = 0; i < nodes; i++) {
		fit += f[i].up && f[i].trial == ST_OK;
		denied += f[i].denied || (f[i].up && f[i].trial == ST_DENIED);
	}
	if (fit < majority)
		return err_set(err, denied > nodes - majority ? ST_DENIED : ST_NO_QUORUM,
		    "cannot keep locks: %d of %d nodes %s fit, %d %s needed", fit, nodes, fit == 1 ? "is" : "are",
		    majority, majority == 1 ? "is" : "are");
	if (find_duplicates(f, nodes, &a, &b))
		return err_set(err, ST_NO_QUORUM, "cannot keep locks: two nodes are the same server");
	for (k = 0; k < count; k++) {
		if (found[k].grade != GRADE_OK)
			return ST_NO;
	}
	return ST_OK;
}
