/* SPDX-License-Identifier: MIT */
#include "redis/info.h"

#include "tap.h"

static const char redis[] = "# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\n"
			    "run_id:5dbf0eb86e4f4a4c9a20fd7f0a0f7c5a5dbf0eb8\r\nuptime_in_seconds:86401\r\n\r\n"
			    "# Clients\r\nconnected_clients:17\r\nmaxclients:10000\r\n"
			    "# Memory\r\nused_memory:1000\r\nused_memory_human:1K\r\nmaxmemory:2000\r\n"
			    "maxmemory_human:2K\r\nmaxmemory_policy:volatile-lru\r\n"
			    "# Persistence\r\naof_enabled:1\r\n# Stats\r\nevicted_keys:5\r\n"
			    "# Replication\r\nrole:master\r\nconnected_slaves:2\r\n";

static void
test_redis(void)
{
	struct node_facts f;

	info_forget(&f);
	info_read(redis, &f);
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
test_others(void)
{
	struct node_facts f;

	info_forget(&f);
	info_read("# Server\r\nredis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.0.1\r\n", &f);
	ok(strcmp(f.software, "Valkey") == 0 && strcmp(f.version, "8.0.1") == 0, "Valkey by its own version");
	info_forget(&f);
	info_read("redis_version:6.2.0\nredis_mode:sentinel", &f);
	is_str(f.role, "sentinel", "a Sentinel has no other role");
	info_forget(&f);
	info_read("", &f);
	ok(f.version[0] == '\0' && f.role[0] == '\0' && f.uptime_s == FACT_UNKNOWN && f.aof == FACT_UNKNOWN,
	    "an empty reply: everything is unknown");
	info_forget(&f);
	info_read("xrole:master\r\nuptime_in_seconds:-5\r\nmaxmemory:12x\r\nrole\r\n", &f);
	ok(f.role[0] == '\0' && f.uptime_s == FACT_UNKNOWN && f.maxmemory == FACT_UNKNOWN,
	    "junk: everything is unknown");
}

static void
test_configuration(void)
{
	static const char *const values[] = { "everysec", "3600 1 300 100", "5", "300", "200", "1" };
	struct node_facts f;
	size_t i;

	info_forget(&f);
	for (i = 0; info_parameter(i) != NULL; i++)
		info_set(i, values[i], &f);
	is_int((int64_t)i, (int64_t)COUNT(values), "the number of parameters");
	ok(strcmp(f.fsync, "everysec") == 0 && f.snapshots == 1 && f.idle_timeout_s == 5 && f.keepalive_s == 300 &&
		f.maxclients == 200 && f.min_replicas == 1,
	    "each has its place");
	info_set(1, "", &f);
	ok(f.snapshots == 0, "an empty value of save: no snapshots");
	info_set(4, "77", &f);
	ok(f.maxclients == 200, "the value of INFO stays");
}

int
main(void)
{
	test_redis();
	test_others();
	test_configuration();
	return tap_end();
}
