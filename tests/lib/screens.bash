# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154
#
# Locks, waiters and histories of other hosts, as dlock stores them; for tests of what is shown of them.

# lock KEY OWNER LABEL SECONDS [MS]: a lock that has been held for so long; its lease ends after MS.
lock() {
    local since=$((($(date +%s) - $4) * 1000))
    rcli a eval 'redis.call("set", KEYS[1], ARGV[1], "px", ARGV[2])
        redis.call("hset", KEYS[2], "token", ARGV[1], "ttl", 30000, "node", 1, unpack(ARGV, 3))' 2 "$1" "{$1}:dlock" \
        "$OTHER_TOKEN" "${5:-24500}" owner "$2" label "$3" since "$since" fence "${since}437" >/dev/null
}

# waiter KEY TOKEN OWNER LABEL SECONDS: somebody who has waited for so long.
waiter() {
    local now
    now=$(date +%s)
    rcli a zadd "{$1}:dlock:waiting" "$((now + 600))000" "$2 $((now - $5))500 ${#3} ${#4} $3$4" >/dev/null
}

# past KEY END OUTCOME STATUS SECONDS WAITED_MS OWNER LABEL [BY]: an entry of the history; END is a time of day.
past() {
    local end start token success
    success=$(date -d '2026-11-20 03:15:00' +%s)
    end=$(date -d "2026-11-20 $2" +%s)
    start=$((end - $5))
    token=$(printf '%022d' "$start")
    rcli a lpush "{$1}:dlock:history" \
        "$token ${end}000 $3 $4 ${success}000 - - ${start}000 $6 ${start}437211 ${#7} ${#8} $7$8${9-}" >/dev/null
}
