/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_BENCH_SCRIPTS_H
#define DLOCK_BENCH_SCRIPTS_H
/*
 * Scripts that bench/load measures and dlock does not have: that of redis-py, and the shortest ones that store as
 * much as a lock has to.  The latter show a limit; nobody is to use them.  They have no history, no queue, no re-entry
 * and no restart guard, and tell a caller that is refused nothing.
 *
 * KEYS are KEY and its metadata key; ARGV is TOKEN, and to acquire TOKEN TTL_MS OWNER LABEL.
 */

/* redis-py's Lock.LUA_RELEASE_SCRIPT */
#define REDIS_PY_RELEASE                             \
	"local token = redis.call('get', KEYS[1])\n" \
	"if not token or token ~= ARGV[1] then\n"    \
	"    return 0\n"                             \
	"end\n"                                      \
	"redis.call('del', KEYS[1])\n"               \
	"return 1\n"

/* The lock and a counter as its fence. */
#define FENCE_ACQUIRE                                                                          \
	"if not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return {0} end " \
	"return {1, redis.call('INCR', KEYS[2])}"
#define FENCE_RELEASE                                                 \
	"if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end " \
	"return redis.call('DEL', KEYS[1])"

/* A fence that grows with the time and with what was stored, so that the metadata may expire. */
#define NEXT_FENCE                                 \
	"local time = redis.call('TIME') "         \
	"local now = time[1] * 1000000 + time[2] " \
	"fence = math.max((tonumber(fence) or 0) + 1, now) "

/* What correctness and `dlock status` need, as dlock stores it: a token that was released acquires nothing any more. */
#define LEAST_ACQUIRE                                                                                                        \
	"local gone, fence = unpack(redis.call('HMGET', KEYS[2], 'gone', 'fence')) "                                         \
	"if gone == ARGV[1] or not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return {0} end " NEXT_FENCE \
	"redis.call('HSET', KEYS[2], 'token', ARGV[1], 'owner', ARGV[3], 'label', ARGV[4], 'ttl', ARGV[2], "                 \
	"'node', '1', 'since', string.format('%.0f', now / 1000), 'fence', string.format('%.0f', fence)) "                   \
	"redis.call('PEXPIRE', KEYS[2], ARGV[2] + 3600000) return {1, fence}"
#define LEAST_RELEASE                                                 \
	"if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end " \
	"redis.call('HSET', KEYS[2], 'gone', ARGV[1]) return redis.call('DEL', KEYS[1])"

/* The same in one string, which is written together with its expiry. */
#define PACKED_ACQUIRE                                                                                     \
	"local old = redis.call('GET', KEYS[2]) or '' "                                                    \
	"local fence, last = string.match(old, '^(%d+) (%S+)') "                                           \
	"if last == ARGV[1] and string.sub(old, -5) == ' gone' or "                                        \
	"not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return {0} end " NEXT_FENCE     \
	"redis.call('SET', KEYS[2], string.format('%.0f %s %s 1 %.0f %d %s %s', fence, ARGV[1], ARGV[2], " \
	"now / 1000, #ARGV[3], ARGV[3], ARGV[4]), 'PX', ARGV[2] + 3600000) return {1, fence}"
#define PACKED_RELEASE                                                \
	"if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end " \
	"redis.call('APPEND', KEYS[2], ' gone') return redis.call('DEL', KEYS[1])"

#endif
