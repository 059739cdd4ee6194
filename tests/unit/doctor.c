/* SPDX-License-Identifier: MIT */
#include "redis/doctor.h"

#include "tap.h"
#include "zk/backend.h"

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
	doctor_judge(f, &r);
	return r.count;
}

/* Let a line count before what INFO and CONFIG have. */
static void
set(struct facts *f, const char *name, const char *value)
{
	char line[128];
	const int length = snprintf(line, sizeof(line), "%s:%s\r\n", name, value);

	memmove(f->text + length, f->text, strlen(f->text) + 1);
	memcpy(f->text, line, (size_t)length);
}

/* A node with which all is well. */
static struct facts
healthy(const char *name)
{
	static const char info[] = "# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\n"
				   "uptime_in_seconds:100000\r\nmaxclients:10000\r\nconnected_clients:3\r\n"
				   "used_memory:1000\r\nused_memory_human:1K\r\nmaxmemory:0\r\n"
				   "maxmemory_human:0B\r\nmaxmemory_policy:noeviction\r\naof_enabled:1\r\n"
				   "evicted_keys:0\r\nrole:master\r\nconnected_slaves:0\r\n";
	static const char config[] = "appendfsync:always\nsave:3600 1 300 100\ntimeout:0\ntcp-keepalive:300\n"
				     "maxclients:77\nmin-replicas-to-write:0";
	struct facts f = { .probed = { .name = name, .up = true, .rtt_us = 200 },
		.offset_us = -1500,
		.clock_known = true };
	char id[32];

	(void)snprintf(id, sizeof(id), "id-%s", name);
	doctor_add(&f, info, INFO_MOST);
	doctor_add(&f, config, INFO_MOST);
	set(&f, "run_id", id);
	return f;
}

static const struct finding no_finding = { "nobody", "", (enum grade) - 1, "no such finding", "" };

/* The first finding of a check, or no_finding. */
static const struct finding *
finding_of(const char *check)
{
	for (size_t i = 0; i < r.count; i++) {
		if (strcmp(found[i].check, check) == 0)
			return &found[i];
	}
	return &no_finding;
}

/* The last nodes that were judged have that finding. */
static void
finds(const char *check, enum grade grade, const char *words)
{
	const struct finding *finding = finding_of(check);

	if (!ok(finding != &no_finding, "%s: %s", check, words))
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

TEST(healthy)
{
	const struct facts f = healthy("a");
	const size_t count = judge(&terms, &f, 1);

	for (size_t i = 0; i < count; i++)
		each(found[i].grade == GRADE_OK && found[i].advice[0] == '\0', "%s: %s", found[i].check, found[i].what);
	each_ok("all is well with a healthy node");
	is_int((int64_t)count, 12, "there are 12 checks");
	is_int(doctor_outcome(&f, &r, &err), ST_OK, "the outcome of all findings is OK");
}

#define WITH(change, ...)                           \
	do {                                        \
		struct facts f = healthy("a");      \
		change;                             \
		check_one(&f, &terms, __VA_ARGS__); \
	} while (0)

#define SET(member, text) (void)snprintf(f.member, sizeof(f.member), "%s", text)

/* What a managed server does not report is no problem by itself. */
TEST(unknown)
{
	struct facts f = healthy("a");

	set(&f, "maxmemory_policy", "");
	set(&f, "tcp-keepalive", "");
	(void)judge(&terms, &f, 1);
	is_int(doctor_outcome(&f, &r, &err), ST_OK, "the outcome");
	set(&f, "tcp-keepalive", "0");
	(void)judge(&terms, &f, 1);
	is_int(doctor_outcome(&f, &r, &err), ST_NO, "with a warning beside it");
}

TEST(one)
{
	WITH(f.probed.rtt_us = 300, "answer", GRADE_OK, "in 0.30ms, less than 0.01% of the lease of 30s");
	WITH(f.probed.rtt_us = 300000, "answer", GRADE_OK, "in 300ms, 1.00% of the lease");
	WITH(f.probed.rtt_us = 500000, "answer", GRADE_OK, "in 500ms");
	WITH(f.probed.rtt_us = 600000, "answer", GRADE_WARN, "2.00%");
	WITH(f.probed.rtt_us = 2000000, "answer", GRADE_FAIL, "6.67%");
	WITH(set(&f, "redis_version", "4.0.9"), "version", GRADE_FAIL, "Redis 4.0.9");
	WITH(set(&f, "redis_version", "5.0.0"), "version", GRADE_OK, "Redis 5.0.0");
	WITH(set(&f, "redis_version", ""), "version", GRADE_UNKNOWN, "does not report it");
	WITH(set(&f, "role", "slave"), "role", GRADE_FAIL, "a replica");
	WITH(set(&f, "role", "sentinel"), "role", GRADE_FAIL, "a sentinel");
	WITH(set(&f, "redis_mode", "sentinel"), "role", GRADE_FAIL, "a sentinel");
	WITH(set(&f, "role", ""), "role", GRADE_UNKNOWN, "does not report it");
	WITH(set(&f, "uptime_in_seconds", "29"), "uptime", GRADE_WARN, "it started 29s ago");
	WITH(set(&f, "uptime_in_seconds", "30"), "uptime", GRADE_OK, "30s");
	WITH(set(&f, "uptime_in_seconds", "9223372036854775807"), "uptime", GRADE_OK, "d");
	WITH(set(&f, "uptime_in_seconds", "x"), "uptime", GRADE_UNKNOWN, "does not report it");
	WITH(set(&f, "connected_slaves", "1"), "replicas", GRADE_WARN, "1 connected");
	WITH(set(&f, "connected_slaves", "x"), "replicas", GRADE_UNKNOWN, "does not report it");
	WITH(set(&f, "connected_clients", "9000"), "clients", GRADE_OK, "9000 of 10000");
	WITH(set(&f, "connected_clients", "9001"), "clients", GRADE_WARN, "9001 of 10000");
	WITH((set(&f, "connected_clients", "36"), set(&f, "maxclients", "100")), "clients", GRADE_OK, "36 of 100");
	WITH((set(&f, "connected_clients", "37"), set(&f, "maxclients", "100")), "clients", GRADE_WARN, "37 of 100");
	WITH(set(&f, "maxclients", "x"), "clients", GRADE_UNKNOWN, "does not report it");
	WITH(set(&f, "timeout", "10"), "idling", GRADE_WARN, "closed after 10s");
	WITH(set(&f, "timeout", "11"), "idling", GRADE_OK, "timeout 11");
	WITH(set(&f, "tcp-keepalive", "0"), "idling", GRADE_WARN, "tcp-keepalive is off");
	WITH(set(&f, "tcp-keepalive", "x"), "idling", GRADE_UNKNOWN, "does not report timeout");
	WITH((f.probed.trial = ST_NO_QUORUM, SET(probed.trial_err.text, "its memory is full")), "lock", GRADE_FAIL,
	    "memory");
	WITH((f.probed.trial = ST_DENIED, SET(probed.trial_err.text, "NOPERM")), "lock", GRADE_FAIL, "NOPERM");
}

TEST(memory)
{
	WITH(set(&f, "maxmemory_policy", "allkeys-lru"), "memory", GRADE_OK, "no maxmemory");
	WITH((set(&f, "maxmemory", "1000"), set(&f, "used_memory", "899")), "memory", GRADE_OK, "noeviction");
	WITH((set(&f, "maxmemory", "1000"), set(&f, "used_memory", "900")), "memory", GRADE_WARN, "90%");
	WITH((set(&f, "maxmemory", "1000"), set(&f, "maxmemory_policy", "volatile-ttl")), "memory", GRADE_WARN,
	    "volatile-ttl");
	ok(strstr(finding_of("memory")->what, "so far") == NULL, "nothing was evicted so far");
	WITH((set(&f, "maxmemory", "1000"), set(&f, "evicted_keys", "7"), set(&f, "maxmemory_policy", "allkeys-lru")),
	    "memory", GRADE_WARN, "7 keys so far");
	WITH(set(&f, "maxmemory", "x"), "memory", GRADE_UNKNOWN, "does not report it");
}

TEST(clock)
{
	WITH(f.offset_us = 250, "clock", GRADE_OK, "0.25ms ahead of this host's");
	WITH(f.offset_us = -999999, "clock", GRADE_OK, "behind this host's");
	WITH(f.offset_us = -1000000, "clock", GRADE_WARN, "1.0s behind");
	WITH(f.offset_us = INT64_C(-1799999999), "clock", GRADE_WARN, "behind");
	ok(strstr(finding_of("clock")->advice, "after a loss of data") != NULL, "fences are within half an hour");
	WITH(f.offset_us = INT64_C(-1800000000), "clock", GRADE_WARN, "behind");
	ok(strstr(finding_of("clock")->advice, "fences from this host") != NULL, "fences are out of reach");
	WITH(f.offset_us = INT64_C(7200000000), "clock", GRADE_WARN, "2h00m ahead of");
	WITH(f.clock_known = false, "clock", GRADE_UNKNOWN, "does not report it");
}

TEST(persistence)
{
	WITH(set(&f, "aof_enabled", "0"), "persistence", GRADE_WARN, "since the last snapshot");
	WITH((set(&f, "aof_enabled", "0"), set(&f, "save", "")), "persistence", GRADE_WARN,
	    "AOF and snapshots are off");
	WITH((set(&f, "aof_enabled", "0"), strstr(f.text, "\nsave:")[1] = 'x'), "persistence", GRADE_WARN,
	    "last snapshot");
	WITH(set(&f, "appendfsync", "everysec"), "persistence", GRADE_WARN, "last second");
	WITH(set(&f, "appendfsync", "no"), "persistence", GRADE_WARN, "half a minute");
	WITH(set(&f, "appendfsync", ""), "persistence", GRADE_UNKNOWN, "not report appendfsync");
	WITH(set(&f, "aof_enabled", "x"), "persistence", GRADE_UNKNOWN, "does not report it");
	WITH(set(&f, "aof_enabled", "1"), "persistence", GRADE_OK, "always");
}

TEST(guard)
{
	struct findings guarded = terms;
	struct facts f = healthy("a");

	set(&f, "aof_enabled", "0");
	guarded.restart_guard_ms = 29999;
	check_one(&f, &guarded, "persistence", GRADE_WARN, "snapshot");
	ok(strstr(finding_of("persistence")->advice, "--restart-guard 30s") != NULL,
	    "the advice names a guard that is long enough");
	guarded.restart_guard_ms = 30000;
	check_one(&f, &guarded, "persistence", GRADE_OK, "--restart-guard covers this");
	set(&f, "aof_enabled", "1");
	check_one(&f, &guarded, "persistence", GRADE_OK, "always");
	ok(strstr(finding_of("persistence")->what, "covers") == NULL, "there is nothing to cover");
	set(&f, "appendfsync", "");
	check_one(&f, &guarded, "persistence", GRADE_OK, "covers");
	set(&f, "aof_enabled", "0");
	set(&f, "uptime_in_seconds", "x");
	check_one(&f, &guarded, "persistence", GRADE_WARN, "snapshot");
	check_one(&f, &guarded, "uptime", GRADE_WARN, "cannot apply");
}

TEST(failover)
{
	struct findings confirmed = terms;
	struct facts f = healthy("a");

	(void)judge(&terms, &f, 1);
	ok(finding_of("failover") == &no_finding, "a server that nothing takes the place of has none");
	f.fails_over = true;
	check_one(&f, &terms, "failover", GRADE_WARN, "min-replicas-to-write 0");
	set(&f, "min-replicas-to-write", "x");
	check_one(&f, &terms, "failover", GRADE_UNKNOWN, "not report min-replicas-to-write");
	set(&f, "min-replicas-to-write", "1");
	check_one(&f, &terms, "failover", GRADE_OK, "min-replicas-to-write 1");
	set(&f, "min-replicas-to-write", "0");
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

	for (int i = 0; i < nodes; i++) {
		f[i] = healthy(names[i]);
		if (letters[i] == 'w')
			set(&f[i], "connected_slaves", "1");
		if (letters[i] == 'd' || letters[i] == 'r')
			f[i].probed.up = false;
		f[i].probed.denied = letters[i] == 'r';
		if (letters[i] == 't' || letters[i] == 'f')
			f[i].probed.trial = letters[i] == 't' ? ST_DENIED : ST_NO_QUORUM;
		if (letters[i] == '=')
			set(&f[i], "run_id", "id-a");
	}
	(void)judge(&terms, f, nodes);
	return doctor_outcome(f, &r, &err);
}

TEST(outcomes)
{
	static const struct {
		enum status outcome;
		const char *nodes[9];
	} table[] = {
		{ ST_OK, { ".", "...", "....." } },
		{ ST_NO, { "w", "..", "..d", "..r", "..wdd" } },
		{ ST_NO_QUORUM, { "d", "f", ".dd", ".df", ".rd", "..=", "..ddd", "..rrd" } },
		{ ST_DENIED, { "r", "t", ".rt", "rrr", "..rrr" } },
	};

	for (size_t i = 0; i < COUNT(table); i++) {
		for (size_t j = 0; table[i].nodes[j] != NULL; j++)
			is_int(outcome(table[i].nodes[j]), table[i].outcome, "%s", table[i].nodes[j]);
	}
}

TEST(several)
{
	struct facts f[3] = { healthy("a"), healthy("b"), healthy("c") };

	(void)judge(&terms, f, 3);
	ok(finding_of("servers")->grade == GRADE_OK && finding_of("clocks")->grade == GRADE_OK, "three nodes");
	ok(finding_of("nodes")->node == NULL, "a finding about all nodes names no node");
	f[1].offset_us = f[0].offset_us + 1000000;
	(void)judge(&terms, f, 3);
	ok(finding_of("clocks")->grade == GRADE_WARN, "clocks: %s", finding_of("clocks")->what);
	f[1].clock_known = false;
	(void)judge(&terms, f, 3);
	ok(finding_of("clocks")->grade == GRADE_OK, "a clock that is not known");
	f[1].clock_known = true;
	f[1].probed.up = false;
	set(&f[1], "run_id", "");
	(void)judge(&terms, f, 3);
	ok(finding_of("clocks")->grade == GRADE_OK, "a node that is down has no clock");
	ok(finding_of("servers")->grade == GRADE_OK, "nor need it say which server it is");
	set(&f[2], "run_id", "");
	(void)judge(&terms, f, 3);
	ok(finding_of("servers")->grade == GRADE_UNKNOWN && finding_of("servers")->advice[0] != '\0', "not known: %s",
	    finding_of("servers")->what);
	set(&f[2], "run_id", "id-a");
	(void)judge(&terms, f, 3);
	ok(finding_of("servers")->grade == GRADE_FAIL &&
		strcmp(finding_of("servers")->what, "a and c are the same server") == 0,
	    "twins: %s", finding_of("servers")->what);
	(void)judge(&terms, f, 2);
	ok(finding_of("nodes")->grade == GRADE_WARN, "an even number: %s", finding_of("nodes")->what);
}

TEST(unconfigured)
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
	named.ttl_ms = 1500;
	(void)judge(&named, &f, 1);
	ok(strstr(finding_of("answer")->what, "of the lease of 1.5s") != NULL, "%s", finding_of("answer")->what);
	is_str(finding_of("answer")->node, "a", "the node of a finding");
}

TEST(denied)
{
	struct facts f = healthy("a");

	f.probed.trial = ST_DENIED;
	(void)judge(&terms, &f, 1);
	ok(strstr(finding_of("lock")->advice, "the rights that") != NULL, "%s", finding_of("lock")->advice);
}

TEST(tls)
{
	r = terms;
	finding_tls(&r, false);
	ok(r.count == 0, "no word about TLS where none is used");
	finding_tls(&r, true);
	finds("tls", GRADE_OK, "certificates are verified");
	r = terms;
	r.insecure = true;
	finding_tls(&r, true);
	finds("tls", GRADE_WARN, "certificates are not verified");
}

TEST(most)
{
	struct facts f[NODES_MAX];

	for (int i = 0; i < NODES_MAX; i++)
		f[i] = healthy("a");
	(void)judge(&terms, f, NODES_MAX);
	ok(r.count <= FINDINGS_MAX, "all findings of the most nodes fit: %zu", r.count);
}

/* -- Advice ----------------------------------------------------------------- */

/* Change one fact, the nth: each that a check reads, to each value that it distinguishes.  False: there are no more. */
static bool
change(int nth, struct facts *f)
{
	static const char *const lines[][2] = { { "uptime_in_seconds", "" }, { "uptime_in_seconds", "1" },
		{ "aof_enabled", "" }, { "aof_enabled", "0" }, { "save", "" }, { "maxmemory", "" },
		{ "maxmemory", "1000" }, { "used_memory", "950" }, { "evicted_keys", "7" }, { "connected_slaves", "" },
		{ "connected_slaves", "1" }, { "connected_clients", "" }, { "connected_clients", "9990" },
		{ "maxclients", "" }, { "timeout", "" }, { "timeout", "5" }, { "tcp-keepalive", "" },
		{ "tcp-keepalive", "0" }, { "min-replicas-to-write", "" }, { "min-replicas-to-write", "1" },
		{ "redis_version", "" }, { "redis_version", "4.0.9" }, { "role", "" }, { "role", "slave" },
		{ "redis_mode", "sentinel" }, { "appendfsync", "" }, { "appendfsync", "no" },
		{ "appendfsync", "everysec" }, { "maxmemory_policy", "" }, { "maxmemory_policy", "allkeys-lru" },
		{ "run_id", "" }, { "run_id", "id-twin" } };
	static const int64_t times[] = { 600000, 2000000 }, offsets[] = { -1000000, INT64_C(7200000000) };
	const int first_time = COUNT(lines), first_other = first_time + 4;

	if (nth < first_time)
		set(f, lines[nth][0], lines[nth][1]);
	else if (nth < first_time + 2)
		f->probed.rtt_us = times[nth - first_time];
	else if (nth < first_other)
		f->offset_us = offsets[nth - first_time - 2];
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
	for (size_t i = 0; i < count; i++) {
		each((found[i].advice[0] != '\0') == (found[i].grade != GRADE_OK), "%s: %s: advice '%s'",
		    found[i].check, found[i].what, found[i].advice);
		each(strchr(found[i].advice, '\n') == NULL, "a line: %s", found[i].advice);
		*problems += found[i].grade != GRADE_OK;
	}
}

/* Two changes at a time, of one node and of three, with each setting that a check reads. */
TEST(advice)
{
	static const struct findings settings[] = { { .ttl_ms = 30000, .node_timeout_ms = 2000 },
		{ .ttl_ms = 30000, .node_timeout_ms = 2000, .restart_guard_ms = 30000 },
		{ .ttl_ms = 30000, .node_timeout_ms = 2000, .replicas = 1 } };
	int first, second, problems = 0;

	for (size_t i = 0; i < COUNT(settings); i++) {
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
TEST(refusals)
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

	for (size_t i = 0; i < COUNT(table); i++) {
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

TEST(info)
{
	struct facts f = healthy("a");

	f.text[0] = '\0';
	doctor_add(&f, "redis_version:7.2.4\r\nvalkey_version:8.0.1\r\n", INFO_MOST);
	check_one(&f, &terms, "version", GRADE_OK, "Valkey 8.0.1");
	check_one(&f, &terms, "role", GRADE_UNKNOWN, "does not report it");
	f.text[0] = '\0';
	doctor_add(&f, "redis_version:7.4.0\r\ndragonfly_version:df-v1.2\r\n", INFO_MOST);
	check_one(&f, &terms, "version", GRADE_OK, "Dragonfly df-v1.2");
	f.text[0] = '\0';
	doctor_add(&f, "xrole:master\r\nuptime_in_seconds:-5\r\nmaxmemory:12x\r\nrole\r\n", INFO_MOST);
	check_one(&f, &terms, "role", GRADE_UNKNOWN, "does not report it");
	check_one(&f, &terms, "uptime", GRADE_UNKNOWN, "does not report it");
	check_one(&f, &terms, "memory", GRADE_UNKNOWN, "does not report it");
	f.text[0] = '\0';
	doctor_add(&f, "", INFO_MOST);
	check_one(&f, &terms, "version", GRADE_UNKNOWN, "does not report it");
	f = healthy("a");
	check_one(&f, &terms, "clients", GRADE_OK, "3 of 10000"); /* the value of INFO stays */
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
		zk_doctor_judge(f, &r);                                                                          \
		finds(__VA_ARGS__);                                                                              \
		for (k = 0; k < r.count; k++)                                                                    \
			each((found[k].advice[0] != '\0') == (found[k].grade != GRADE_OK), "%s", found[k].what); \
	} while (0)
#define EACH(member, value) (f[0].member = f[1].member = f[2].member = (value))

TEST(zookeeper)
{
	SERVERS_WITH((void)f, "answer", GRADE_OK, "in 0.20ms");
	SERVERS_WITH((void)f, "lock", GRADE_OK, "acquired, renewed and released");
	SERVERS_WITH((void)f, "ensemble", GRADE_OK, "3 servers vote, of which 2 must answer");
	SERVERS_WITH((void)f, "version", GRADE_OK, "ZooKeeper 3.8.4");
	SERVERS_WITH((void)f, "leader", GRADE_OK, "a");
	SERVERS_WITH((void)f, "leases", GRADE_OK, "from 4s to 40s");
	SERVERS_WITH(f[0].version[0] = '\0', "version", GRADE_UNKNOWN, "does not report it");
	SERVERS_WITH(f[0].role[0] = '\0', "role", GRADE_UNKNOWN, "does not report it");
	SERVERS_WITH(memcpy(f[0].role, "standalone", 11), "role", GRADE_WARN, "standalone");
	SERVERS_WITH(f[0].ttl_least_ms = 30001, "leases", GRADE_WARN, "to 40s");
	SERVERS_WITH(f[0].ttl_most_ms = 29999, "leases", GRADE_WARN, "from 4s");
	SERVERS_WITH(EACH(members, -1), "ensemble", GRADE_UNKNOWN, "does not report it");
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
