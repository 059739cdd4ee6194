#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# Shared locks over several nodes.

# shellcheck disable=SC2046,SC2154
load ../lib/shared

at_once=1900 # see queue.bats

# share_on_all COUNT [ARG...]: a first reader, whose lock is on each of so many nodes.
share_on_all() {
    wait_until "share ${*:2} && { held_everywhere '$key' $1 \"\$token\" || { dlock release '$key' \"\$token\"; false; }; }"
}

@test "readers enter on the nodes that are left, and have one fence; one more than a minority down: nobody" {
    local fence
    use 5
    works run --json "$key" -- true
    fence=$(jq .fence <<<"$output")
    share_on_all 5 --ttl 60s
    redis_stop n1 n4
    works run --json --shared "$key" -- true
    [ "$(jq .fence <<<"$output")" -gt "$fence" ]
    [ "$(jq .fence <<<"$output")" = "$(dlock status --json "$key" | jq .fence)" ]
    refuses 75 'shared by 1 reader, ' run "$key" -- true
    redis_stop n2
    gives 69 run --shared "$key" -- true
}

# reader_or_writer I: each fourth is a writer.
reader_or_writer() {
    if (($1 % 4)); then storms --shared "$key" -- sh -c "$read_it"; else storms "$key" -- sh -c "$write_it"; fi
}

@test "16 readers and writers on five nodes, two of which are killed and restarted empty: a writer is alone" {
    storm 16 20 reader_or_writer
    # A fence is of one writer, or of readers of one group.
    awk '{ if ($2 in kind && (kind[$2] == "w" || $1 == "w")) exit 1; kind[$2] = $1 }' ran || fail "$(sort -k 2 ran)"
}

@test "readers behind a writer that gives up enter at once, also those that wait at another node" {
    use 5
    share_on_all 5 --ttl 60s
    : >stay
    writers_wait 1
    readers_wait 2
    kill -TERM "${waiter[0]}"
    within "$at_once" served_are 2 3
    rm stay
    finishes 143 "${waiter[0]}"
    for bg in "${waiter[@]:1}"; do finishes 0 "$bg"; done
}

@test "readers that are served from the queue take the others with them" {
    use 5
    take_on_all 5 --ttl 60s
    : >stay
    readers_wait 8
    works release "$key" "$token"
    within 8000 served_are $(seq 8)
    has_holders 8
    rm stay
    for bg in "${waiter[@]}"; do finishes 0 "$bg"; done
}

@test "nobody enters a lock that the first node hands over already" {
    use 3
    share_on_all 3 --ttl 60s
    rcli n1 hset "{$key}:dlock" gone "$token" >/dev/null
    refuses 75 '' run --shared "$key" -- true
    rcli n1 hdel "{$key}:dlock" gone >/dev/null
    works run --shared "$key" -- true
}

@test "the guard is for entering: a reader renews where its nodes do not tell their uptime any more" {
    use 3
    wait_until "are_up 3 n1 n2 n3" 20
    share_on_all 3 --ttl 3s
    start_holding "$key" --shared --restart-guard 1s --ttl 5s 'until [ -e stop ]; do sleep 0.2; done'
    on_all 3 acl setuser default -info >/dev/null
    is_renewed "$key" n1
    on_all 3 acl setuser default +info >/dev/null
    stops 0
}

@test "a node that restarted empty is healed, but admits no reader under the guard" {
    use 3
    start_holding "$key" --shared --ttl 6s 'sleep 60'
    redis_stop n1
    redis_start n1
    wait_until "held '$key' n1"
    redis_freeze n2
    refuses 69 'grants nothing for another' run --shared --restart-guard 1h --node-timeout 2s "$key" -- true
    works run --shared --restart-guard 0 --node-timeout 2s "$key" -- true
}
