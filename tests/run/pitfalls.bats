#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# Known pitfalls of locks on Redis, one test each.

load ../lib/lost

@test "a crash between SET and EXPIRE: the key never exists without a TTL" {
    # Look at the key all the time (-1 is a key that lives for ever) while holders are
    # killed at any moment of their lives.
    "$REDIS_CLI" -s "$(node a)" -r -1 pttl "$key" >seen 2>/dev/null 3>&- 4>&- &
    watcher=$!
    wait_for_exec "$watcher"
    for _ in {1..25}; do
        start run --ttl 300ms --wait 1s "$key" -- sleep 0.05
        sleep "0.0$((RANDOM % 9 + 1))"
        kill -KILL "$bg" 2>/dev/null || true
    done
    # On a busy machine none of them may have got so far.
    dlock run -q --wait 20s "$key" -- sh -c 'until grep -qEx "[0-9]+" seen; do sleep 0.1; done'
    wait_until 'grep -qx -- -2 seen'
    kill "$watcher"
    wait "$watcher" || true
    sort -u seen >kinds
    grep -qx -- -2 kinds
    grep -qEx '[0-9]+' kinds
    ! grep -qx -- -1 kinds || fail "the key was seen without a TTL"
    # There is no moment between the two: one command does both.
    rcli a config set notify-keyspace-events KEA
    "$REDIS_CLI" -s "$(node a)" monitor >monitor 3>&- 4>&- &
    monitor=$!
    wait_until 'grep -q OK monitor'
    dlock acquire --ttl 20s "$key-2" >/dev/null
    wait_until "grep -i '\"set\"' monitor | grep -qi '\"$key-2\".*\"px\"'" || fail "no SET with PX: $(cat monitor)"
    kill "$monitor"
    wait "$monitor" || true
}

@test "an owner that continues too late does not delete the next holder's lock" {
    take_for 300 "$key"
    first=$token
    wait_until "free '$key'"
    take "$key" --ttl 20s
    refuses 1 '' release "$key" "$first"
    [ "$(rcli a get "$key")" = "$token" ]
}

@test "check and delete are atomic" {
    # Every reply comes late, so between two commands of a release there is time to take
    # the lock from under it.
    proxy_start late behind
    DLOCK_NODES=$(node behind) take "$key" --ttl 60s
    proxy_rules late delay=0.5
    start release --node "$(proxy_node late)" --node-timeout 5s "$key" "$token"
    wait_until 'proxy_log late | grep -q EVAL'
    wait_until "free '$key' behind"
    rcli behind set "$key" "$OTHER_TOKEN" px 60000
    finishes_well
    [ "$(rcli behind get "$key")" = "$OTHER_TOKEN" ]
    # Only scripts have accessed the key.
    ! proxy_log late | grep -qE '^(GET|DEL|UNLINK|EXPIRE|PEXPIRE|SET|MULTI|WATCH)$' || fail "$(proxy_log late)"
}

@test "the lock of a crashed holder is free after its lease" {
    start_holding "$key" --ttl 8s 'sleep 30'
    kill -KILL "$bg"
    from=$(now_ms)
    left=$(rcli a pttl "$key")
    [ "$left" -gt 0 ]
    refuses 75 '' acquire "$key"
    works acquire --wait 20s "$key"
    [ $(($(now_ms) - from)) -ge $((left - 100)) ] || fail "granted before the lease had ended"
    has_ended "$command_pid"
}

@test "one failed renewal does not end the renewals" {
    proxy_start lossy behind cut@2 cut@4
    DLOCK_NODES=$(proxy_node lossy) works run --ttl 6s "$key" -- sleep 8
    # Taken, renewed three times at least, two of them a second time, released.
    [ "$(proxy_log lossy | grep -c EVAL)" -ge 6 ]
}
