/* SPDX-License-Identifier: MIT */
#include "redis/doctor.h"

#include "tap.h"
#include "zk/doctor.h"

static const struct findings terms = { .ttl_ms = 30000, .node_timeout_ms = 2000 };
static struct findings r;
static struct finding *const found = r.found;
static struct err err;

/* Judge these nodes; returns the number of findings. */
static size_t
judge(const struct findings *with, const struct facts *f, int nodes)
{
	r = *with;
	r.nodes = nodes;
	facts_judge(f, &r);
	return r.count;
}

/* A node with which all is well. */
static struct facts
healthy(const char *name)
{
	struct facts f = { .probed = { .name = name, .up = true, .rtt_us = 200 },
		.offset_us = -1500,
		.clock_known = true };

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
finding_of(const char *check)
{
	size_t i;

	for (i = 0; i < r.count; i++) {
		if (strcmp(found[i].check, check) == 0)
			return &found[i];
	}
	return NULL;
}

/* The last nodes that were judged have that finding. */
static void
finds(const char *check, enum grade grade, const char *words)
{
	const struct finding *finding = finding_of(check);

	if (!ok(finding != NULL, "%s: %s", check, words))
		return;
	is_int(finding->grade, grade, "%s: %s", check, finding->what);
	ok(strstr(finding->what, words) != NULL, "says %s: %s", words, finding->what);
	ok((finding->advice[0] != '\0') == (grade != GRADE_OK), "advice where there is something to do: %s",
	    finding->advice);
}

static void
check_one(const struct facts *f, const struct findings *t, const char *check, enum grade grade, const char *words)
{
	(void)judge(t, f, 1);
	finds(check, grade, words);
}

static void
test_healthy(void)
{
	const struct facts f = healthy("a");
	const size_t count = judge(&terms, &f, 1);
	size_t i;

	for (i = 0; i < count; i++)
		each(found[i].grade == GRADE_OK && found[i].advice[0] == '\0', "%s: %s", found[i].check, found[i].what);
	each_ok("all is well with a healthy node");
	is_int((int64_t)count, 12, "there are 12 checks");
	is_int(facts_outcome(&f, &r, &err), ST_OK, "the outcome of all findings is OK");
}

#define WITH(change, ...)                           \
	do {                                        \
		struct facts f = healthy("a");      \
		change;                             \
		check_one(&f, &terms, __VA_ARGS__); \
	} while (0)

#define SET(member, text) (void)snprintf(f.member, sizeof(f.member), "%s", text)

static void
test_one(void)
{
	WITH(f.probed.rtt_us = 300, "answer", GRADE_OK, "in 0.30ms, less than 0.01% of the lease of 30s");
	WITH(f.probed.rtt_us = 300000, "answer", GRADE_OK, "in 300ms, 1.00% of the lease");
	WITH(f.probed.rtt_us = 600000, "answer", GRADE_WARN, "2.00%");
	WITH(f.probed.rtt_us = 2000000, "answer", GRADE_FAIL, "6.67%");
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
	WITH((f.probed.trial = ST_NO_QUORUM, SET(probed.trial_err.text, "its memory is full")), "lock", GRADE_FAIL,
	    "memory");
	WITH((f.probed.trial = ST_DENIED, SET(probed.trial_err.text, "NOPERM")), "lock", GRADE_FAIL, "NOPERM");
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
	struct findings guarded = terms;
	struct facts f = healthy("a");

	f.aof = 0;
	guarded.restart_guard_ms = 29999;
	check_one(&f, &guarded, "persistence", GRADE_WARN, "snapshot");
	ok(strstr(finding_of("persistence")->advice, "--restart-guard 30s") != NULL,
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
	struct findings confirmed = terms;
	struct facts f = healthy("a");

	(void)judge(&terms, &f, 1);
	is_int((int64_t)(finding_of("failover") == NULL), 1, "a server that nothing takes the place of has none");
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
	struct facts f[5];
	int i;

	for (i = 0; i < nodes; i++) {
		f[i] = healthy(names[i]);
		if (letters[i] == 'w')
			f[i].replicas = 1;
		if (letters[i] == 'd' || letters[i] == 'r')
			f[i].probed.up = false;
		f[i].probed.denied = letters[i] == 'r';
		if (letters[i] == 't' || letters[i] == 'f')
			f[i].probed.trial = letters[i] == 't' ? ST_DENIED : ST_NO_QUORUM;
		if (letters[i] == '=')
			(void)snprintf(f[i].run_id, sizeof(f[i].run_id), "id-a");
	}
	(void)judge(&terms, f, nodes);
	return facts_outcome(f, &r, &err);
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
	struct facts f[3] = { healthy("a"), healthy("b"), healthy("c") };

	(void)judge(&terms, f, 3);
	ok(finding_of("servers")->grade == GRADE_OK && finding_of("clocks")->grade == GRADE_OK, "three nodes");
	ok(finding_of("nodes")->node == NULL, "a finding about all nodes names no node");
	f[1].offset_us = 2000000;
	(void)judge(&terms, f, 3);
	ok(finding_of("clocks")->grade == GRADE_WARN, "clocks: %s", finding_of("clocks")->what);
	f[1].probed.up = false;
	(void)judge(&terms, f, 3);
	ok(finding_of("clocks")->grade == GRADE_OK, "a node that is down has no clock");
	f[2].run_id[0] = '\0';
	(void)judge(&terms, f, 3);
	ok(finding_of("servers")->grade == GRADE_WARN && finding_of("servers")->advice[0] != '\0', "not known: %s",
	    finding_of("servers")->what);
	memcpy(f[2].run_id, f[0].run_id, sizeof(f[0].run_id));
	(void)judge(&terms, f, 3);
	ok(finding_of("servers")->grade == GRADE_FAIL &&
		strcmp(finding_of("servers")->what, "a and c are the same server") == 0,
	    "twins: %s", finding_of("servers")->what);
	(void)judge(&terms, f, 2);
	ok(finding_of("nodes")->grade == GRADE_WARN, "an even number: %s", finding_of("nodes")->what);
}

static void
test_unconfigured(void)
{
	struct findings named = terms;
	struct facts f = healthy("a");

	named.configured = true;
	f.probed.up = false;
	SET(probed.reason.text, "connection refused");
	(void)judge(&named, &f, 1);
	ok(strstr(finding_of("answer")->advice, "check the address") != NULL, "a node that was named");
	(void)judge(&terms, &f, 1);
	ok(strstr(finding_of("answer")->advice, "no node is configured") != NULL, "the default does not answer");
	f.probed.up = true;
	f.probed.local = "loopback";
	(void)judge(&terms, &f, 1);
	ok(strstr(finding_of("reach")->advice, "no node is configured") != NULL, "it answers");
}

static void
test_most(void)
{
	struct facts f[NODES_MAX];
	int i;

	for (i = 0; i < NODES_MAX; i++)
		f[i] = healthy("a");
	(void)judge(&terms, f, NODES_MAX);
	ok(r.count <= FINDINGS_MAX, "all findings of the most nodes fit: %zu", r.count);
}

/* -- Advice ----------------------------------------------------------------- */

/* Change one fact, the nth: each that a check reads, to each value that it distinguishes.  False: there are no more. */
static bool
change(int nth, struct facts *f)
{
	static const struct {
		size_t offset;
		int64_t value;
	} numbers[] = {
#define FACT(member, value) { offsetof(struct facts, member), value }
		FACT(probed.rtt_us, 600000), FACT(probed.rtt_us, 2000000), FACT(offset_us, -1000000),
		FACT(offset_us, INT64_C(7200000000)), FACT(uptime_s, FACT_UNKNOWN), FACT(uptime_s, 1),
		FACT(aof, FACT_UNKNOWN), FACT(aof, 0), FACT(snapshots, 0), FACT(maxmemory, FACT_UNKNOWN),
		FACT(maxmemory, 1000), FACT(used_memory, 950), FACT(evicted, 7), FACT(replicas, FACT_UNKNOWN),
		FACT(replicas, 1), FACT(clients, FACT_UNKNOWN), FACT(clients, 9990), FACT(maxclients, FACT_UNKNOWN),
		FACT(idle_timeout_s, FACT_UNKNOWN), FACT(idle_timeout_s, 5), FACT(keepalive_s, FACT_UNKNOWN),
		FACT(keepalive_s, 0), FACT(min_replicas, FACT_UNKNOWN), FACT(min_replicas, 1)
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
		f->probed.up = false;
	else if (nth == first_other + 3) {
		f->probed.up = false;
		f->probed.denied = true;
	} else if (nth == first_other + 4)
		f->probed.trial = ST_NO_QUORUM;
	else if (nth == first_other + 5)
		f->probed.trial = ST_DENIED;
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
	static const struct findings settings[] = { { .ttl_ms = 30000, .node_timeout_ms = 2000 },
		{ .ttl_ms = 30000, .node_timeout_ms = 2000, .restart_guard_ms = 30000 },
		{ .ttl_ms = 30000, .node_timeout_ms = 2000, .replicas = 1 } };
	int first, second, problems = 0;
	size_t i;

	for (i = 0; i < COUNT(settings); i++) {
		struct facts f[3] = { healthy("a"), healthy("b"), healthy("c") };

		for (first = 0; change(first, &f[0]); first++) {
			for (second = 0; change(second, &f[0]); second++) {
				check_advice(judge(&settings[i], f, 1), &problems);
				check_advice(judge(&settings[i], f, 2), &problems);
				check_advice(judge(&settings[i], f, 3), &problems);
				f[0] = healthy("a");
				(void)change(first, &f[0]);
				(void)change(second, &f[1]);
				check_advice(judge(&settings[i], f, 3), &problems);
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
		struct facts f = healthy("a");

		f.probed.trial = ST_NO_QUORUM;
		SET(probed.trial_err.text, table[i].refusal);
		(void)judge(&terms, &f, 1);
		ok(strncmp(finding_of("lock")->advice, table[i].advice, strlen(table[i].advice)) == 0, "%s: %s",
		    table[i].refusal, finding_of("lock")->advice);
		f.probed.up = false;
		SET(probed.reason.text, table[i].refusal);
		(void)judge(&terms, &f, 1);
		ok(strncmp(finding_of("answer")->advice, table[i].advice, strlen(table[i].advice)) == 0, "%s: %s",
		    table[i].refusal, finding_of("answer")->advice);
	}
}

/* -- INFO ------------------------------------------------------------------- */

static const char info[] = "# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\n"
			   "run_id:5dbf0eb86e4f4a4c9a20fd7f0a0f7c5a5dbf0eb8\r\nuptime_in_seconds:86401\r\n\r\n"
			   "# Clients\r\nconnected_clients:17\r\nmaxclients:10000\r\n"
			   "# Memory\r\nused_memory:1000\r\nused_memory_human:1K\r\nmaxmemory:2000\r\n"
			   "maxmemory_human:2K\r\nmaxmemory_policy:volatile-lru\r\n"
			   "# Persistence\r\naof_enabled:1\r\n# Stats\r\nevicted_keys:5\r\n"
			   "# Replication\r\nrole:master\r\nconnected_slaves:2\r\n";

static void
test_info(void)
{
	struct facts f;

	facts_forget(&f);
	facts_read_info(&f, info);
	is_str(f.software, "Redis", "the software");
	is_str(f.version, "7.0.15", "its version");
	is_str(f.run_id, "5dbf0eb86e4f4a4c9a20fd7f0a0f7c5a5dbf0eb8", "the run_id");
	is_str(f.role, "master", "the role");
	is_str(f.policy, "volatile-lru", "the policy");
	ok(f.uptime_s == 86401 && f.aof == 1 && f.evicted == 5 && f.replicas == 2, "numbers");
	ok(f.maxmemory == 2000 && f.used_memory == 1000, "memory");
	ok(f.clients == 17 && f.maxclients == 10000, "clients");
	ok(f.idle_timeout_s == FACT_UNKNOWN && f.snapshots == FACT_UNKNOWN && f.fsync[0] == '\0',
	    "the configuration stays unknown");
}

static void
test_info_of_others(void)
{
	struct facts f;

	facts_forget(&f);
	facts_read_info(&f, "# Server\r\nredis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.0.1\r\n");
	ok(strcmp(f.software, "Valkey") == 0 && strcmp(f.version, "8.0.1") == 0, "Valkey by its own version");
	facts_forget(&f);
	facts_read_info(&f, "redis_version:6.2.0\nredis_mode:sentinel");
	is_str(f.role, "sentinel", "a Sentinel has no other role");
	facts_forget(&f);
	facts_read_info(&f, "");
	ok(f.version[0] == '\0' && f.role[0] == '\0' && f.uptime_s == FACT_UNKNOWN && f.aof == FACT_UNKNOWN,
	    "an empty reply: everything is unknown");
	facts_forget(&f);
	facts_read_info(&f, "xrole:master\r\nuptime_in_seconds:-5\r\nmaxmemory:12x\r\nrole\r\n");
	ok(f.role[0] == '\0' && f.uptime_s == FACT_UNKNOWN && f.maxmemory == FACT_UNKNOWN,
	    "junk: everything is unknown");
}

static void
test_configuration(void)
{
	static const char *const values[] = { "everysec", "3600 1 300 100", "5", "300", "200", "1" };
	struct facts f;
	size_t i;

	facts_forget(&f);
	for (i = 0; facts_parameter(i) != NULL; i++)
		facts_set_parameter(&f, i, values[i]);
	is_int((int64_t)i, (int64_t)COUNT(values), "the number of parameters");
	ok(strcmp(f.fsync, "everysec") == 0 && f.snapshots == 1 && f.idle_timeout_s == 5 && f.keepalive_s == 300 &&
		f.maxclients == 200 && f.min_replicas == 1,
	    "each has its place");
	facts_set_parameter(&f, 1, "");
	ok(f.snapshots == 0, "an empty value of save: no snapshots");
	facts_set_parameter(&f, 4, "77");
	ok(f.maxclients == 200, "the value of INFO stays");
}

/* -- ZooKeeper -------------------------------------------------------------- */

static struct zk_facts
healthy_server(const char *name)
{
	struct zk_facts f = { .probed = { .name = name, .up = true, .rtt_us = 200 },
		.version = "3.8.4",
		.role = "leader",
		.ttl_least_ms = 4000,
		.ttl_most_ms = 40000,
		.members = 3 };

	if (strcmp(name, "a") != 0)
		memcpy(f.role, "follower", sizeof("follower"));
	return f;
}

#define SERVERS_WITH(change, ...)                                                                                \
	do {                                                                                                     \
		struct zk_facts f[3] = { healthy_server("a"), healthy_server("b"), healthy_server("c") };        \
		size_t k;                                                                                        \
		change;                                                                                          \
		r = terms;                                                                                       \
		r.nodes = 3;                                                                                     \
		zk_judge(f, &r);                                                                                 \
		finds(__VA_ARGS__);                                                                              \
		for (k = 0; k < r.count; k++)                                                                    \
			each((found[k].advice[0] != '\0') == (found[k].grade != GRADE_OK), "%s", found[k].what); \
	} while (0)
#define EACH(member, value) (f[0].member = f[1].member = f[2].member = (value))

static void
test_zookeeper(void)
{
	SERVERS_WITH((void)f, "answer", GRADE_OK, "in 0.20ms");
	SERVERS_WITH((void)f, "lock", GRADE_OK, "acquired, renewed and released");
	SERVERS_WITH((void)f, "ensemble", GRADE_OK, "3 servers vote, of which 2 must answer");
	SERVERS_WITH((void)f, "version", GRADE_OK, "ZooKeeper 3.8.4");
	SERVERS_WITH((void)f, "leader", GRADE_OK, "a");
	SERVERS_WITH((void)f, "leases", GRADE_OK, "from 4s to 40s");
	SERVERS_WITH(f[0].version[0] = '\0', "version", GRADE_WARN, "unknown");
	SERVERS_WITH(f[0].role[0] = '\0', "role", GRADE_WARN, "unknown");
	SERVERS_WITH(memcpy(f[0].role, "standalone", 11), "role", GRADE_WARN, "standalone");
	SERVERS_WITH(f[0].ttl_least_ms = 30001, "leases", GRADE_WARN, "to 40s");
	SERVERS_WITH(f[0].ttl_most_ms = 29999, "leases", GRADE_WARN, "from 4s");
	SERVERS_WITH(EACH(members, -1), "ensemble", GRADE_WARN, "unknown");
	SERVERS_WITH(EACH(members, 0), "ensemble", GRADE_WARN, "one server");
	SERVERS_WITH(EACH(members, 1), "ensemble", GRADE_WARN, "one server");
	SERVERS_WITH(EACH(members, 4), "ensemble", GRADE_WARN, "4 servers vote, of which 3");
	SERVERS_WITH(EACH(members, 7), "ensemble", GRADE_WARN, "7 servers vote, and the URL has 3");
	SERVERS_WITH(EACH(members, 5), "ensemble", GRADE_OK, "5 servers vote");
	SERVERS_WITH(f[2].stranger = true, "ensemble", GRADE_WARN, "c does not know a session that a made");
	SERVERS_WITH(f[1].unguarded = true, "acl", GRADE_WARN, "everybody may make the node");
	SERVERS_WITH(f[0].probed.trial = ST_DENIED, "lock", GRADE_FAIL, "");
	SERVERS_WITH((EACH(probed.up, false), f[0].role[0] = 'x', memcpy(f[1].role, "looking", 8)), "leader",
	    GRADE_FAIL, "there is none");
	SERVERS_WITH(f[0].probed.up = false, "answer", GRADE_FAIL, "");
	each_ok("each problem has a line of advice");
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
	test_unconfigured();
	test_most();
	test_advice();
	test_refusals();
	test_info();
	test_info_of_others();
	test_configuration();
	test_zookeeper();
	return tap_end();
}
