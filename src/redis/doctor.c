/* SPDX-License-Identifier: MIT */
#include "redis/doctor.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "redis/operations.h"

#define LATEST_S ((int64_t)1 << 42)
#define OLDEST_MAJOR 5		       /* the scripts read the clock (TIME) before they write */
#define CLOCK_WARN_US INT64_C(1000000) /* NTP easily keeps clocks closer than this */
#define FENCE_REACH_US \
	INT64_C(1800000000) /* a node accepts a candidate for a fence that is at most this far from its clock */
#define UNKNOWN INT64_C(-1)
#define NOT_REPORTED "the server does not report it"
#define ALLOW_INFO "allow INFO to this user"
#define ALLOW_CONFIG "allow CONFIG GET to this user"
#define CLIENTS_LEAST 64 /* minimum number of free connections; a waiter uses two */

/* -- INFO and CONFIG -------------------------------------------------------- */

#define MOST (1LL << 50)

/* Of CONFIG. */
static const char *const parameters[] = { "appendfsync", "save", "timeout", "tcp-keepalive", "maxclients",
	"min-replicas-to-write" };

void
doctor_add(struct facts *f, const char *lines, size_t most)
{
	const size_t length = strlen(f->text);

	(void)snprintf(f->text + length, sizeof(f->text) - length, "%.*s\n", (int)most, lines);
}

/* The value of a line "NAME:value"; "" if there is none. */
static const char *
fact(const struct facts *f, const char *name, char value[FACT_SIZE])
{
	const size_t length = strlen(name);
	const char *line = f->text;

	value[0] = '\0';
	while (line != NULL && !(strncmp(line, name, length) == 0 && line[length] == ':')) {
		line = strchr(line, '\n');
		line = line != NULL ? line + 1 : NULL;
	}
	if (line != NULL)
		(void)snprintf(value, FACT_SIZE, "%.*s", (int)strcspn(line + length + 1, "\r\n"), line + length + 1);
	return value;
}

static bool
fact_is(const struct facts *f, const char *name, const char *expected)
{
	char value[FACT_SIZE];

	return strcmp(fact(f, name, value), expected) == 0;
}

static int64_t
number(const struct facts *f, const char *name)
{
	char value[FACT_SIZE], *end;
	const long long n = strtoll(fact(f, name, value), &end, 10);

	if (value[0] < '0' || value[0] > '9' || *end != '\0')
		return UNKNOWN;
	return n < MOST ? n : MOST; /* safe for arithmetic */
}

/* -- One node --------------------------------------------------------------- */

/* Begin a check.  False: the fields of INFO that it needs are unknown, and that is all to be said. */
static bool
begin(struct findings *r, const char *check, bool known)
{
	r->check = check;
	if (!known)
		finding_add(r, GRADE_UNKNOWN, ALLOW_INFO, NOT_REPORTED);
	return known;
}

static void
judge_kind(struct findings *r, const struct facts *f)
{
	char version[FACT_SIZE], role[FACT_SIZE];
	/* Compatible servers report a Redis version as well as their own. */
	const char *const kind = fact(f, "valkey_version", version)[0] != '\0' ? "Valkey"
	    : fact(f, "dragonfly_version", version)[0] != '\0'		       ? "Dragonfly"
									       : "Redis";

	if (begin(r, "version", !fact_is(f, "redis_version", "")))
		finding_add(r,
		    kind[0] == 'R' && strtol(fact(f, "redis_version", version), NULL, 10) < OLDEST_MAJOR ? GRADE_FAIL
													 : GRADE_OK,
		    "dlock needs Redis 5 or later", "%s %s", kind, version);
	(void)fact(f, fact_is(f, "redis_mode", "sentinel") ? "redis_mode" : "role", role);
	if (!begin(r, "role", role[0] != '\0'))
		return;
	if (strcmp(role, "master") == 0)
		finding_add(r, GRADE_OK, "", "primary");
	else
		finding_add(r, GRADE_FAIL, "it grants no locks: use the primary instead",
		    strcmp(role, "slave") == 0 ? "a replica" : "a %s", role);
}

/* Does a restart lose locks? */
static void
judge_persistence(struct findings *r, const struct facts *f)
{
	const bool aof = number(f, "aof_enabled") != 0, always = aof && fact_is(f, "appendfsync", "always");
	const bool covered = !always && r->restart_guard_ms >= r->ttl_ms && number(f, "uptime_in_seconds") != UNKNOWN;
	const bool unknown = aof && !covered && fact_is(f, "appendfsync", "");
	const bool no_save = strstr(f->text, "\nsave:") != NULL && fact_is(f, "save", "");
	const char *what = "AOF is on, appendfsync everysec: a crash forgets the locks of the last second";
	char advice[200], ttl[32];

	if (!begin(r, "persistence", number(f, "aof_enabled") != UNKNOWN))
		return;
	if (!aof)
		what = no_save ? "AOF and snapshots are off: a restart forgets every lock"
			       : "AOF is off: a restart forgets every lock since the last snapshot";
	else if (always)
		what = "AOF is on, appendfsync always";
	else if (unknown)
		what = "AOF is on, the server does not report appendfsync";
	else if (fact_is(f, "appendfsync", "no"))
		what = "AOF is on, appendfsync no: a crash of the host forgets the locks of about half a minute";
	(void)snprintf(advice, sizeof(advice),
	    "with --restart-guard %s, or the longest lease in use if that is longer, a node that has just started "
	    "grants nothing until older locks have ended",
	    finding_show_ms(r->ttl_ms, ttl, sizeof(ttl)));
	finding_add(r,
	    always || covered ? GRADE_OK
		: unknown     ? GRADE_UNKNOWN
			      : GRADE_WARN,
	    advice, "%s%s", what, covered ? "; --restart-guard covers this" : "");
}

static void
judge_memory(struct findings *r, const struct facts *f)
{
	const int64_t most = number(f, "maxmemory"), used = number(f, "used_memory"),
		      evicted = number(f, "evicted_keys");
	char policy[FACT_SIZE], so_far[64] = "";

	if (!begin(r, "memory", fact(f, "maxmemory_policy", policy)[0] != '\0' && most != UNKNOWN))
		return;
	if (most == 0)
		finding_add(r, GRADE_OK, "", "no maxmemory, nothing is evicted");
	else if (strcmp(policy, "noeviction") != 0) {
		if (evicted > 0)
			(void)snprintf(so_far, sizeof(so_far), " (%" PRId64 " keys so far)", evicted);
		finding_add(r, GRADE_WARN, "set maxmemory-policy noeviction, or use a separate Redis server for locks",
		    "maxmemory-policy %s: locks are evicted when memory is short%s", policy, so_far);
	} else if (used >= most - most / 10)
		finding_add(r, GRADE_WARN, "raise maxmemory: a full server grants no locks",
		    "noeviction, %.0f%% of maxmemory is used", 100.0 * (double)used / (double)most);
	else
		finding_add(r, GRADE_OK, "", "maxmemory-policy noeviction");
}

static void
judge_times(struct findings *r, const struct facts *f)
{
	const int64_t off = f->offset_us < 0 ? -f->offset_us : f->offset_us;
	const int64_t uptime_s = number(f, "uptime_in_seconds");
	const bool young = uptime_s * 1000 < r->ttl_ms;
	char text[32];

	r->check = "clock";
	if (!f->clock_known)
		finding_add(r, GRADE_UNKNOWN, "allow TIME to this user", NOT_REPORTED);
	else
		finding_add(r, off >= CLOCK_WARN_US ? GRADE_WARN : GRADE_OK,
		    off >= FENCE_REACH_US
			? "set the clocks by NTP: fences from this host may not be the time of day"
			: "set the clocks by NTP: after a loss of data, fences grow only as far as clocks agree",
		    "%s %s this host's", finding_show_us(off, text, sizeof(text)),
		    f->offset_us < 0 ? "behind" : "ahead of");
	r->check = "uptime";
	if (uptime_s == UNKNOWN)
		finding_add(r, r->restart_guard_ms > 0 ? GRADE_WARN : GRADE_UNKNOWN, ALLOW_INFO,
		    r->restart_guard_ms > 0 ? NOT_REPORTED ": --restart-guard cannot apply to this node"
					    : NOT_REPORTED);
	else
		finding_add(r, young ? GRADE_WARN : GRADE_OK,
		    "older locks may still be in use: wait until the longest lease has ended",
		    young ? "it started %s ago" : "%s", finding_show_ms(uptime_s * 1000, text, sizeof(text)));
}

static void
judge_failover(struct findings *r, const struct facts *f)
{
	const int64_t replicas = number(f, "connected_slaves"), least = number(f, "min-replicas-to-write");

	if (begin(r, "replicas", replicas != UNKNOWN)) {
		if (replicas == 0)
			finding_add(r, GRADE_OK, "", "none");
		else
			finding_add(r, GRADE_WARN,
			    "a failover forgets the newest locks; independent nodes without failover do not",
			    "%" PRId64 " connected", replicas);
	}
	/*
	 * A client that is cut off from the sentinels together with the old primary doesn't learn about the new one.
	 * Its writes count as long as the old primary accepts them.
	 */
	r->check = "failover";
	if (!f->fails_over)
		return;
	if (r->replicas > 0)
		finding_add(r, GRADE_OK, "", "locks must be confirmed by replicas (--replicas %d)", r->replicas);
	else if (least == UNKNOWN)
		finding_add(r, GRADE_UNKNOWN, ALLOW_CONFIG ", or give --replicas",
		    "the server does not report min-replicas-to-write");
	else if (least == 0)
		finding_add(r, GRADE_WARN,
		    "use --replicas with the number of all replicas in every dlock, or set min-replicas-to-write to it",
		    "the primary accepts writes without replicas (min-replicas-to-write 0): when it is cut off from the "
		    "sentinels, it keeps a lock that the next primary grants to another");
	else
		finding_add(r, GRADE_OK, "", "min-replicas-to-write %" PRId64, least);
}

static void
judge_connections(struct findings *r, const struct facts *f)
{
	const int64_t clients = number(f, "connected_clients"), most = number(f, "maxclients"), left = most - clients;
	const int64_t idle_s = number(f, "timeout"), keepalive_s = number(f, "tcp-keepalive");

	r->check = "clients";
	if (clients == UNKNOWN || most == UNKNOWN)
		finding_add(r, GRADE_UNKNOWN, "allow INFO and CONFIG GET to this user", NOT_REPORTED);
	else
		finding_add(r, left < CLIENTS_LEAST || left < most / 10 ? GRADE_WARN : GRADE_OK,
		    "raise maxclients: each dlock that holds a lock or waits uses one or two connections",
		    "%" PRId64 " of %" PRId64 " connections are in use", clients, most);
	r->check = "idling";
	if (idle_s == UNKNOWN || keepalive_s == UNKNOWN)
		finding_add(r, GRADE_UNKNOWN, ALLOW_CONFIG, "the server does not report timeout and tcp-keepalive");
	else if (idle_s > 0 && idle_s <= r->ttl_ms / 3000)
		finding_add(r, GRADE_WARN,
		    "set timeout to 0 or to more than a third of the lease: each renewal must reconnect",
		    "idle connections are closed after %" PRId64 "s", idle_s);
	else if (keepalive_s == 0)
		finding_add(r, GRADE_WARN, "set tcp-keepalive 300: a waiter whose host has vanished is never detected",
		    "tcp-keepalive is off");
	else
		finding_add(r, GRADE_OK, "", "timeout %" PRId64 ", tcp-keepalive %" PRId64, idle_s, keepalive_s);
}

static void
judge_node(struct findings *r, const struct facts *f)
{
	finding_answer(r, &f->probed);
	if (!f->probed.up)
		return;
	finding_trial(r, &f->probed);
	judge_kind(r, f);
	judge_persistence(r, f);
	judge_memory(r, f);
	judge_times(r, f);
	judge_failover(r, f);
	judge_connections(r, f);
}

/* -- All nodes together ----------------------------------------------------- */

static const struct remedy remedies[] = { { "maxmemory",
					      "raise maxmemory, or remove keys: a full server grants no locks" },
	{ "--restart-guard)", "wait until then; --restart-guard 0 is correct only where no lock was ever kept" },
	{ "EVAL", "remove rename-command EVAL from redis.conf, or allow it to this user: dlock needs scripts" },
	{ "INFO", "allow INFO to this user, or use --restart-guard 0" },
	{ "maxclients", "raise maxclients, or close connections of other clients" },
	{ "Cluster is down", "repair the Cluster; redis-cli --cluster check says what is wrong with it" },
	{ "slot is moving", "wait until the slot has moved" },
	{ "busy with a script", "wait for the script, or end it by SCRIPT KILL" },
	{ "access to the keys", "use a --prefix that this user may use, or give it the rights that dlock(1) lists" },
	{ "replica", "use the primary instead, or check its replicas" },
	{ "loading", "wait until the server has loaded its data" },
	{ "disk", "free space on its disk, and see its log" }, { "too late", "use a longer --ttl" }, { NULL, NULL } };

/* Find the first pair of nodes that are the same server. */
static bool
find_duplicates(const struct facts *f, int nodes, int *a, int *b)
{
	char id[FACT_SIZE];

	for (*a = 0; *a < nodes; ++*a) {
		(void)fact(&f[*a], "run_id", id);
		for (*b = *a + 1; *b < nodes && id[0] != '\0'; ++*b) {
			if (fact_is(&f[*b], "run_id", id))
				return true;
		}
	}
	return false;
}

void
doctor_judge(const struct facts *f, struct findings *r)
{
	const int nodes = r->nodes, majority = quorum_majority(nodes);
	int64_t least = INT64_MAX, most = INT64_MIN;
	int i, a, b, known = 0;
	bool named = true, apart;
	char text[32];

	r->remedies = remedies;
	for (i = 0; i < nodes; i++)
		judge_node(r, &f[i]);
	r->node = NULL;
	r->check = "nodes";
	if (nodes == 1)
		finding_add(r, GRADE_OK, "", "1: no lock is granted while it is unreachable");
	else
		finding_add(r, nodes % 2 == 0 ? GRADE_WARN : GRADE_OK,
		    "use one more or one less: an even number tolerates no more failures",
		    "%d, of which %d must answer", nodes, majority);
	for (i = 0; i < nodes; i++) {
		named = named && (!f[i].probed.up || !fact_is(&f[i], "run_id", ""));
		if (!f[i].probed.up || !f[i].clock_known)
			continue;
		known++;
		least = f[i].offset_us < least ? f[i].offset_us : least;
		most = f[i].offset_us > most ? f[i].offset_us : most;
	}
	r->check = "servers";
	if (find_duplicates(f, nodes, &a, &b))
		finding_add(r, GRADE_FAIL, "a quorum needs independent nodes: give each server once",
		    "%s and %s are the same server", f[a].probed.name, f[b].probed.name);
	else if (nodes > 1)
		finding_add(r, named ? GRADE_OK : GRADE_UNKNOWN, ALLOW_INFO,
		    named ? "no two nodes report the same server" : "not all nodes report which server they are");
	r->check = "clocks";
	if (known < 2)
		return;
	apart = most - least >= CLOCK_WARN_US;
	finding_add(r, apart ? GRADE_WARN : GRADE_OK, "set the nodes' clocks by NTP", "%s between the nodes",
	    finding_show_us(most - least, text, sizeof(text)));
}

enum status
doctor_outcome(const struct facts *f, const struct findings *r, struct err *err)
{
	const int majority = quorum_majority(r->nodes);
	int i, a, b, fit = 0, denied = 0;

	for (i = 0; i < r->nodes; i++) {
		const struct probed *const p = &f[i].probed;

		fit += p->up && p->trial == ST_OK;
		denied += p->denied || (p->up && p->trial == ST_DENIED);
	}
	if (fit < majority)
		return err_set(err, denied > r->nodes - majority ? ST_DENIED : ST_NO_QUORUM,
		    "cannot keep locks: %d of %d nodes %s fit, %d %s needed", fit, r->nodes, fit == 1 ? "is" : "are",
		    majority, majority == 1 ? "is" : "are");
	if (find_duplicates(f, r->nodes, &a, &b))
		return err_set(err, ST_NO_QUORUM, "cannot keep locks: two nodes are the same server");
	return finding_outcome(r);
}

/* -- Asking ----------------------------------------------------------------- */

enum {
	FIRST, /* TIME, including the set-up of the connection */
	TIMED, /* TIME again, TIMINGS times */
	TIMINGS = 5,
	INFO_STEP = TIMED + TIMINGS, /* INFO */
	PARAMETER,		     /* CONFIG GET, for each parameter */
	END = PARAMETER + sizeof(parameters) / sizeof(parameters[0])
};

/* Every node goes through the same steps, independently of the others, with one pending request at a time. */
struct probing {
	struct nodes *nodes;
	struct waiting waiting; /* its limit is extended by every reply */
	struct node_steps {
		struct probed *probed;
		struct facts *facts; /* NULL: only whether it answers is asked */
		int step;
		bool done;
		int64_t sent_us, sent_wall_us;
	} node[NODES_MAX];
};

static void replied(void *context, int node, const struct result *);

static void
ask(struct probing *e, int node)
{
	struct node_steps *p = &e->node[node];
	struct command request;

	if (p->step < INFO_STEP)
		command_begin(&request, "TIME");
	else if (p->step == INFO_STEP)
		command_begin(&request, "INFO");
	else
		command_begin(&request, "CONFIG GET %s", parameters[p->step - PARAMETER]);
	p->sent_us = clock_now_us();
	p->sent_wall_us = clock_wall_us();
	node_send(e->nodes->node[node], &request, replied, e);
}

/*
 * Note a reply.  Of the round trips of TIME, the first one includes the set-up of the connection; of the others the
 * shortest counts, with its clock offset, which assumes that the server read its clock half way.
 */
static void
note_answer(struct node_steps *p, const struct reply *reply, int64_t now_us)
{
	const int64_t rtt = now_us - p->sent_us;
	const int64_t s = strtoll(reply_text(reply_item(reply, 0)), NULL, 10);
	const int64_t us = strtoll(reply_text(reply_item(reply, 1)), NULL, 10);
	char line[2 * FACT_SIZE];

	if (p->step <= TIMED || (p->step < INFO_STEP && rtt < p->probed->rtt_us)) {
		p->probed->rtt_us = rtt;
		if (p->facts == NULL || p->step == FIRST)
			return;
		p->facts->clock_known = reply_items(reply) == 2 && s >= 0 && s <= LATEST_S && us >= 0 && us < 1000000;
		if (p->facts->clock_known)
			p->facts->offset_us = s * 1000000 + us - (p->sent_wall_us + rtt / 2);
	} else if (p->step == INFO_STEP && reply_kind(reply) == REPLY_TEXT)
		doctor_add(p->facts, reply_text(reply), INFO_MOST);
	else if (p->step > INFO_STEP && reply_items(reply) == 2) {
		(void)snprintf(line, sizeof(line), "%s:%s", parameters[p->step - PARAMETER],
		    reply_text(reply_item(reply, 1)));
		doctor_add(p->facts, line, sizeof(line));
	}
}

static void
replied(void *context, int node, const struct result *d)
{
	struct probing *e = context;
	struct node_steps *p = &e->node[node];
	struct node_error error;

	e->waiting.limit.until_us = clock_add(clock_now_us(), e->nodes->node_timeout_us);
	/* An error for a command that an ACL or a provider forbids only means that metadata is missing. */
	p->probed->up = answer_is_reply(d, &error) ||
	    (d->reply != NULL && (p->step != FIRST || strstr(reply_text(d->reply), "NOPERM") != NULL));
	if (!p->probed->up) {
		p->probed->denied = error.why.kind == DENIED;
		p->probed->reason = error.why.reason;
		p->done = true;
		return;
	}
	p->probed->local = channel_local(node_channel(e->nodes->node[node]));
	note_answer(p, d->reply, clock_now_us());
	p->step++;
	p->done = p->facts == NULL || p->step == END;
	if (!p->done)
		ask(e, node);
}

/* Ask all nodes.  Either array may be NULL, but not both. */
static void
ask_all(struct nodes *nodes, struct probed *probed, struct facts *facts)
{
	struct probing e = { .nodes = nodes };
	struct node_steps *p;
	int i, done;

	e.waiting = (struct waiting){ .nodes = nodes,
		.limit = { clock_add(clock_now_us(), nodes->node_timeout_us), -1 } };
	for (i = 0; i < nodes->count; i++) {
		p = &e.node[i];
		if (facts != NULL) {
			p->facts = &facts[i];
			p->facts->fails_over = node_url(nodes->node[i])->kind == URL_SENTINEL;
		}
		p->probed = facts != NULL ? &facts[i].probed : &probed[i];
		*p->probed = (struct probed){ .name = node_name(nodes->node[i]) };
		ask(&e, i);
	}
	do {
		for (i = done = 0; i < nodes->count; i++)
			done += e.node[i].done;
	} while (nodes_await(&e.waiting, done == nodes->count ? ROUND_OVER : ROUND_OPEN));
	nodes_cancel(nodes, &e);
	for (i = 0; i < nodes->count; i++) {
		if (e.node[i].done)
			continue;
		e.node[i].probed->up = false;
		reason_set(&e.node[i].probed->reason, "%s", node_waits_for(nodes->node[i]));
	}
}

int
redis_probe(struct backend *backend, struct probed *probed)
{
	struct nodes *const nodes = &((struct redis_backend *)backend)->nodes;

	ask_all(nodes, probed, NULL);
	return nodes->count;
}

enum status
redis_doctor(struct backend *backend, struct findings *r, struct err *err)
{
	struct redis_backend *const s = (struct redis_backend *)backend;
	struct facts *const facts = calloc(NODES_MAX, sizeof(*facts));
	enum status status;
	int i;

	if (facts == NULL)
		return err_set(err, ST_SYSTEM, OUT_OF_MEMORY);
	ask_all(&s->nodes, NULL, facts);
	r->nodes = s->nodes.count;
	for (i = 0; i < r->nodes; i++) {
		struct probed *const p = &facts[i].probed;

		if (p->up) /* on this node alone: a majority would hide its failure */
			p->trial = r->try_lock(r->context, i, &p->trial_err);
	}
	doctor_judge(facts, r);
	finding_tls(r, backend->tls);
	status = doctor_outcome(facts, r, err);
	free(facts);
	return status;
}
