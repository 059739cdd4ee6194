/* SPDX-License-Identifier: MIT */
#include "cli/checks.h"

#include "tap.h"

static const struct checks_terms terms = { .ttl_ms = 30000, .node_timeout_ms = 2000 };
static struct finding found[FINDINGS_MAX];
static struct err err;

/* A node with which all is well. */
static struct node_facts
healthy(const char *name)
{
	struct node_facts f = { .name = name, .up = true, .rtt_us = 200, .offset_us = -1500, .clock_known = true };

	(void)snprintf(f.software, sizeof(f.software), "Redis");
	(void)snprintf(f.version, sizeof(f.version), "7.0.15");
	(void)snprintf(f.run_id, sizeof(f.run_id), "id-%s", name);
	(void)snprintf(f.role, sizeof(f.role), "master");
	(void)snprintf(f.fsync, sizeof(f.fsync), "always");
	(void)snprintf(f.policy, sizeof(f.policy), "noeviction");
	f.uptime_s = 100000;
	f.aof = 1;
	f.snapshots = 1;
	f.maxclients = 10000;
	f.clients = 3;
	f.keepalive_s = 300;
	return f;
}

/* The first finding of a check; NULL if there is none. */
static const struct finding *
finding_of(const char *check, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++) {
		if (strcmp(found[i].check, check) == 0)
			return &found[i];
	}
	return NULL;
}

static void
check_one(const struct node_facts *f, const struct checks_terms *t, const char *check, enum grade grade,
    const char *words)
{
	const size_t count = checks_judge(t, f, 1, found);
	const struct finding *finding = finding_of(check, count);

	if (!ok(finding != NULL, "%s: %s", check, words))
		return;
	is_int(finding->grade, grade, "%s: %s", check, finding->what);
	ok(strstr(finding->what, words) != NULL, "says %s: %s", words, finding->what);
	ok((finding->advice[0] != '\0') == (grade != GRADE_OK), "advice where there is something to do: %s",
	    finding->advice);
}

static void
test_healthy(void)
{
	const struct node_facts f = healthy("a");
	const size_t count = checks_judge(&terms, &f, 1, found);
	size_t i;

	for (i = 0; i < count; i++)
		each(found[i].grade == GRADE_OK && found[i].advice[0] == '\0', "%s: %s", found[i].check, found[i].what);
	each_ok("all is well with a healthy node");
	is_int((int64_t)count, 12, "there are 12 checks");
	is_int(checks_outcome(&f, 1, found, count, &err), ST_OK, "the outcome of all findings is OK");
}

#define WITH(change, ...)                           \
	do {                                        \
		struct node_facts f = healthy("a"); \
		change;                             \
		check_one(&f, &terms, __VA_ARGS__); \
	} while (0)

#define SET(member, text) (void)snprintf(f.member, sizeof(f.member), "%s", text)

static void
test_one(void)
{
	WITH(f.rtt_us = 300, "answer", GRADE_OK, "in 0.30ms, less than 0.01% of the lease of 30s");
	WITH(f.rtt_us = 300000, "answer", GRADE_OK, "in 300ms, 1.00% of the lease");
	WITH(f.rtt_us = 600000, "answer", GRADE_WARN, "2.00%");
	WITH(f.rtt_us = 2000000, "answer", GRADE_FAIL, "6.67%");
	WITH(SET(version, "4.0.9"), "version", GRADE_FAIL, "Redis 4.0.9");
	WITH(SET(version, "5.0.0"), "version", GRADE_OK, "Redis 5.0.0");
	WITH(SET(version, ""), "version", GRADE_WARN, "unknown");
	WITH(SET(role, "slave"), "role", GRADE_FAIL, "a replica");
	WITH(SET(role, "sentinel"), "role", GRADE_FAIL, "a sentinel");
	WITH(SET(role, ""), "role", GRADE_WARN, "unknown");
	WITH(f.uptime_s = 29, "uptime", GRADE_WARN, "it started 29s ago");
	WITH(f.uptime_s = 30, "uptime", GRADE_OK, "30s");
	WITH(f.uptime_s = FACT_UNKNOWN, "uptime", GRADE_WARN, "unknown");
	WITH(f.replicas = 1, "replicas", GRADE_WARN, "1 connected");
	WITH(f.replicas = FACT_UNKNOWN, "replicas", GRADE_WARN, "unknown");
	WITH(f.clients = 9000, "clients", GRADE_OK, "9000 of 10000");
	WITH(f.clients = 9001, "clients", GRADE_WARN, "9001 of 10000");
	WITH((f.clients = 40, f.maxclients = 100), "clients", GRADE_WARN, "40 of 100");
	WITH(f.maxclients = FACT_UNKNOWN, "clients", GRADE_WARN, "unknown");
	WITH(f.idle_timeout_s = 10, "idling", GRADE_WARN, "closed after 10s");
	WITH(f.idle_timeout_s = 11, "idling", GRADE_OK, "timeout 11");
	WITH(f.keepalive_s = 0, "idling", GRADE_WARN, "tcp-keepalive is off");
	WITH(f.keepalive_s = FACT_UNKNOWN, "idling", GRADE_WARN, "unknown");
	WITH((f.trial = ST_NO_QUORUM, SET(trial_err.text, "its memory is full")), "lock", GRADE_FAIL, "memory");
	WITH((f.trial = ST_DENIED, SET(trial_err.text, "NOPERM")), "lock", GRADE_FAIL, "NOPERM");
}

static void
test_memory(void)
{
	WITH(SET(policy, "allkeys-lru"), "memory", GRADE_OK, "no maxmemory");
	WITH((f.maxmemory = 1000, f.used_memory = 899), "memory", GRADE_OK, "noeviction");
	WITH((f.maxmemory = 1000, f.used_memory = 950), "memory", GRADE_WARN, "95%");
	WITH((f.maxmemory = 1000, SET(policy, "volatile-ttl")), "memory", GRADE_WARN, "volatile-ttl");
	WITH((f.maxmemory = 1000, f.evicted = 7, SET(policy, "allkeys-lru")), "memory", GRADE_WARN, "7 keys so far");
	WITH(f.maxmemory = FACT_UNKNOWN, "memory", GRADE_WARN, "unknown");
}

static void
test_clock(void)
{
	WITH(f.offset_us = 250, "clock", GRADE_OK, "0.25ms ahead of this host's");
	WITH(f.offset_us = -999999, "clock", GRADE_OK, "behind this host's");
	WITH(f.offset_us = -1000000, "clock", GRADE_WARN, "1.0s behind");
	WITH(f.offset_us = INT64_C(7200000000), "clock", GRADE_WARN, "2h00m ahead of");
	WITH(f.clock_known = false, "clock", GRADE_WARN, "unknown");
}

static void
test_persistence(void)
{
	WITH(f.aof = 0, "persistence", GRADE_WARN, "since the last snapshot");
	WITH((f.aof = 0, f.snapshots = 0), "persistence", GRADE_WARN, "forgets every lock");
	WITH(SET(fsync, "everysec"), "persistence", GRADE_WARN, "last second");
	WITH(SET(fsync, "no"), "persistence", GRADE_WARN, "half a minute");
	WITH(SET(fsync, ""), "persistence", GRADE_WARN, "unknown");
	WITH(f.aof = FACT_UNKNOWN, "persistence", GRADE_WARN, "unknown");
	WITH(f.aof = 1, "persistence", GRADE_OK, "always");
}

static void
test_guard(void)
{
	struct checks_terms guarded = terms;
	struct node_facts f = healthy("a");

	f.aof = 0;
	guarded.restart_guard_ms = 29999;
	check_one(&f, &guarded, "persistence", GRADE_WARN, "snapshot");
	ok(strstr(finding_of("persistence", 12)->advice, "--restart-guard 30s") != NULL,
	    "the advice names a guard that is long enough");
	guarded.restart_guard_ms = 30000;
	check_one(&f, &guarded, "persistence", GRADE_OK, "--restart-guard covers this");
	f.uptime_s = FACT_UNKNOWN;
	check_one(&f, &guarded, "persistence", GRADE_WARN, "snapshot");
	check_one(&f, &guarded, "uptime", GRADE_WARN, "cannot apply");
}

static void
test_failover(void)
{
	struct checks_terms confirmed = terms;
	struct node_facts f = healthy("a");

	is_int((int64_t)(finding_of("failover", checks_judge(&terms, &f, 1, found)) == NULL), 1,
	    "a server that nothing takes the place of has none");
	f.fails_over = true;
	check_one(&f, &terms, "failover", GRADE_WARN, "min-replicas-to-write 0");
	f.min_replicas = FACT_UNKNOWN;
	check_one(&f, &terms, "failover", GRADE_WARN, "min-replicas-to-write is unknown");
	f.min_replicas = 1;
	check_one(&f, &terms, "failover", GRADE_OK, "min-replicas-to-write 1");
	f.min_replicas = 0;
	confirmed.replicas = 2;
	check_one(&f, &confirmed, "failover", GRADE_OK, "--replicas 2");
}

/* -- Several nodes ---------------------------------------------------------- */

/* Each node is a letter: '.' well, 'w' with a warning, 'd' down, 'r' refusing us, 't' refusing a lock, 'f' keeping none. */
static enum status
outcome(const char *letters)
{
	static const char *const names[] = { "a", "b", "c", "d", "e" };
	const int nodes = (int)strlen(letters);
	struct node_facts f[5];
	size_t count;
	int i;

	for (i = 0; i < nodes; i++) {
		f[i] = healthy(names[i]);
		if (letters[i] == 'w')
			f[i].replicas = 1;
		if (letters[i] == 'd' || letters[i] == 'r')
			f[i].up = false;
		f[i].denied = letters[i] == 'r';
		if (letters[i] == 't' || letters[i] == 'f')
			f[i].trial = letters[i] == 't' ? ST_DENIED : ST_NO_QUORUM;
		if (letters[i] == '=')
			(void)snprintf(f[i].run_id, sizeof(f[i].run_id), "id-a");
	}
	count = checks_judge(&terms, f, nodes, found);
	return checks_outcome(f, nodes, found, count, &err);
}

static void
test_outcomes(void)
{
	static const struct {
		const char *nodes;
		enum status outcome;
	} table[] = {
		{ ".", ST_OK },
		{ "w", ST_NO },
		{ "d", ST_NO_QUORUM },
		{ "f", ST_NO_QUORUM },
		{ "r", ST_DENIED },
		{ "t", ST_DENIED },
		{ "..", ST_NO },
		{ "...", ST_OK },
		{ "..d", ST_NO },
		{ "..r", ST_NO },
		{ ".dd", ST_NO_QUORUM },
		{ ".df", ST_NO_QUORUM },
		{ ".rd", ST_NO_QUORUM },
		{ ".rt", ST_DENIED },
		{ "rrr", ST_DENIED },
		{ "..=", ST_NO_QUORUM },
		{ ".....", ST_OK },
		{ "..wdd", ST_NO },
		{ "..ddd", ST_NO_QUORUM },
		{ "..rrd", ST_NO_QUORUM },
		{ "..rrr", ST_DENIED },
	};
	size_t i;

	for (i = 0; i < COUNT(table); i++)
		is_int(outcome(table[i].nodes), table[i].outcome, "%s", table[i].nodes);
}

static void
test_several(void)
{
	struct node_facts f[3] = { healthy("a"), healthy("b"), healthy("c") };
	size_t count = checks_judge(&terms, f, 3, found);

	ok(finding_of("servers", count)->grade == GRADE_OK && finding_of("clocks", count)->grade == GRADE_OK,
	    "three nodes");
	ok(finding_of("nodes", count)->node == NULL, "a finding about all nodes names no node");
	f[1].offset_us = 2000000;
	count = checks_judge(&terms, f, 3, found);
	ok(finding_of("clocks", count)->grade == GRADE_WARN, "clocks: %s", finding_of("clocks", count)->what);
	f[1].up = false;
	count = checks_judge(&terms, f, 3, found);
	ok(finding_of("clocks", count)->grade == GRADE_OK, "a node that is down has no clock");
	f[2].run_id[0] = '\0';
	count = checks_judge(&terms, f, 3, found);
	ok(finding_of("servers", count)->grade == GRADE_WARN && finding_of("servers", count)->advice[0] != '\0',
	    "not known: %s", finding_of("servers", count)->what);
	memcpy(f[2].run_id, f[0].run_id, sizeof(f[0].run_id));
	count = checks_judge(&terms, f, 3, found);
	ok(finding_of("servers", count)->grade == GRADE_FAIL &&
		strcmp(finding_of("servers", count)->what, "a and c are the same server") == 0,
	    "twins: %s", finding_of("servers", count)->what);
	count = checks_judge(&terms, f, 2, found);
	ok(finding_of("nodes", count)->grade == GRADE_WARN, "an even number: %s", finding_of("nodes", count)->what);
}

static void
test_most(void)
{
	struct node_facts f[NODES_MAX];
	size_t count;
	int i;

	for (i = 0; i < NODES_MAX; i++)
		f[i] = healthy("a");
	count = checks_judge(&terms, f, NODES_MAX, found);
	ok(count <= FINDINGS_MAX, "all findings of the most nodes fit: %zu", count);
}

/* -- Advice ----------------------------------------------------------------- */

/* Change one fact, the nth: each that a check reads, to each value that it distinguishes.  False: there are no more. */
static bool
change(int nth, struct node_facts *f)
{
	static const struct {
		size_t offset;
		int64_t value;
	} numbers[] = {
#define FACT(member, value) { offsetof(struct node_facts, member), value }
		FACT(rtt_us, 600000), FACT(rtt_us, 2000000), FACT(offset_us, -1000000),
		FACT(offset_us, INT64_C(7200000000)), FACT(uptime_s, FACT_UNKNOWN), FACT(uptime_s, 1),
		FACT(aof, FACT_UNKNOWN), FACT(aof, 0), FACT(snapshots, 0), FACT(maxmemory, FACT_UNKNOWN),
		FACT(maxmemory, 1000), FACT(used_memory, 950), FACT(evicted, 7), FACT(replicas, FACT_UNKNOWN),
		FACT(replicas, 1), FACT(clients, FACT_UNKNOWN), FACT(clients, 9990), FACT(maxclients, FACT_UNKNOWN),
		FACT(idle_timeout_s, FACT_UNKNOWN), FACT(idle_timeout_s, 5), FACT(keepalive_s, FACT_UNKNOWN),
		FACT(keepalive_s, 0), FACT(min_replicas, FACT_UNKNOWN), FACT(min_replicas, 1), FACT(members, 0),
		FACT(members, 1), FACT(members, 2), FACT(members, 7), FACT(members, FACT_UNKNOWN),
		FACT(ttl_least_ms, 60000)
	};
	static const struct {
		size_t offset;
		const char *text;
	} texts[] = { FACT(version, ""), FACT(version, "4.0.9"), FACT(role, ""), FACT(role, "slave"),
		FACT(role, "sentinel"), FACT(role, "standalone"), FACT(role, "leader"), FACT(fsync, ""),
		FACT(fsync, "no"), FACT(fsync, "everysec"), FACT(policy, ""), FACT(policy, "allkeys-lru"),
		FACT(run_id, ""), FACT(run_id, "id-twin") };
	const int first_text = COUNT(numbers), first_other = first_text + (int)COUNT(texts);

	if (nth < first_text)
		memcpy((char *)f + numbers[nth].offset, &numbers[nth].value, sizeof(numbers[nth].value));
	else if (nth < first_other)
		memcpy((char *)f + texts[nth - first_text].offset, texts[nth - first_text].text,
		    strlen(texts[nth - first_text].text) + 1);
	else if (nth == first_other)
		f->clock_known = false;
	else if (nth == first_other + 1)
		f->fails_over = true;
	else if (nth == first_other + 2)
		f->up = false;
	else if (nth == first_other + 3) {
		f->up = false;
		f->denied = true;
	} else if (nth == first_other + 4)
		f->trial = ST_NO_QUORUM;
	else if (nth == first_other + 5)
		f->trial = ST_DENIED;
	else
		return false;
	return true;
}

/* Does each finding that is not OK have advice, and no other? */
static void
check_advice(size_t count, int *problems)
{
	size_t i;

	for (i = 0; i < count; i++) {
		each((found[i].advice[0] != '\0') == (found[i].grade != GRADE_OK), "%s: %s: advice '%s'",
		    found[i].check, found[i].what, found[i].advice);
		each(strchr(found[i].advice, '\n') == NULL, "a line: %s", found[i].advice);
		*problems += found[i].grade != GRADE_OK;
	}
}

/* Two changes at a time, of one node and of three, with each setting that a check reads. */
static void
test_advice(void)
{
	static const struct checks_terms settings[] = { { .ttl_ms = 30000, .node_timeout_ms = 2000 },
		{ .ttl_ms = 30000, .node_timeout_ms = 2000, .restart_guard_ms = 30000 },
		{ .ttl_ms = 30000, .node_timeout_ms = 2000, .replicas = 1 } };
	int first, second, problems = 0;
	size_t i;

	for (i = 0; i < COUNT(settings); i++) {
		struct node_facts f[3] = { healthy("a"), healthy("b"), healthy("c") };

		for (first = 0; change(first, &f[0]); first++) {
			for (second = 0; change(second, &f[0]); second++) {
				check_advice(checks_judge(&settings[i], f, 1, found), &problems);
				check_advice(checks_judge(&settings[i], f, 2, found), &problems);
				check_advice(checks_judge(&settings[i], f, 3, found), &problems);
				check_advice(checks_judge_zk(&settings[i], f, 1, found), &problems);
				f[1] = f[2] = f[0];
				check_advice(checks_judge_zk(&settings[i], f, 3, found), &problems);
				f[0] = healthy("a");
				f[1] = healthy("b");
				f[2] = healthy("c");
				(void)change(first, &f[0]);
				(void)change(second, &f[1]);
				check_advice(checks_judge(&settings[i], f, 3, found), &problems);
				f[1] = healthy("b");
			}
			f[0] = healthy("a");
		}
	}
	each(problems > 10000, "%d problems", problems);
	each_ok("each problem has a line of advice");
}

/* What a server answers, and what to do: for a test lock, and for a node that is not up. */
static void
test_refusals(void)
{
	static const struct {
		const char *refusal, *advice;
	} table[] = { { "its memory is full (maxmemory)", "raise maxmemory" },
		{ "it started 5s ago and grants nothing for another 25s (--restart-guard)", "wait until then" },
		{ "it has no EVAL, which dlock needs; see rename-command in redis.conf", "remove rename-command EVAL" },
		{ "it has no INFO, which --restart-guard needs; use --restart-guard 0", "allow INFO" },
		{ "it has too many clients (maxclients)", "raise maxclients" },
		{ "its Cluster is down: slots have no primary", "repair the Cluster" },
		{ "the key's slot is moving to another server of the Cluster", "wait until the slot" },
		{ "it is busy with a script that takes too long", "wait for the script" },
		{ "it is a read-only replica; name the primary", "use the primary" },
		{ "it is still loading its data", "wait until the server" },
		{ "it refuses writes: it can't save to its disk", "free space" },
		{ "its grant came too late", "use a longer --ttl" } };
	size_t i;

	for (i = 0; i < COUNT(table); i++) {
		struct node_facts f = healthy("a");

		f.trial = ST_NO_QUORUM;
		SET(trial_err.text, table[i].refusal);
		(void)checks_judge(&terms, &f, 1, found);
		ok(strncmp(finding_of("lock", 2)->advice, table[i].advice, strlen(table[i].advice)) == 0, "%s: %s",
		    table[i].refusal, finding_of("lock", 2)->advice);
		f.up = false;
		SET(reason.text, table[i].refusal);
		(void)checks_judge(&terms, &f, 1, found);
		ok(strncmp(finding_of("answer", 1)->advice, table[i].advice, strlen(table[i].advice)) == 0, "%s: %s",
		    table[i].refusal, finding_of("answer", 1)->advice);
	}
}

int
main(void)
{
	test_healthy();
	test_one();
	test_memory();
	test_clock();
	test_persistence();
	test_guard();
	test_failover();
	test_outcomes();
	test_several();
	test_most();
	test_advice();
	test_refusals();
	return tap_end();
}
