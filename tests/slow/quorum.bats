#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# A crowd of contenders on five nodes for minutes, while nodes are stopped and restarted at random
# and holders are killed: they keep each other out, get on, and their fences increase.

load ../lib/quorum
load ../lib/crowd

# crowd SECONDS COUNT ARG...: contenders in the background until then; they end with $crowd.
crowd() {
    local end=$((SECONDS + $1)) count=$2
    local options=("${@:3}")
    visit() { exec "$DLOCK" run --wait 20s "${options[@]}" "$key" -- sh -c "$resource"; }
    contend "$count" '[ "$SECONDS" -lt "$end" ]' visit : </dev/null >/dev/null 2>&1 3>&- 4>&- &
    crowd=$!
}

# ends_well MINIMUM
ends_well() {
    wait "$crowd" || true
    no_overlap
    [ "$(visits)" -ge "$1" ] || fail "$(visits) visits"
    [ "$(sort -u ran | wc -l)" -eq "$(visits)" ] || fail "a fence was given out twice"
    wait_until "free_everywhere '$key' 5"
}

@test "a minute with nodes that are stopped at random" {
    end=$((SECONDS + 60))
    crowd 60 4 --ttl 2s --node-timeout 200ms
    while [ "$SECONDS" -lt "$end" ]; do
        one=n$((RANDOM % 5 + 1))
        two=n$((RANDOM % 5 + 1))
        redis_freeze "$one" "$two"
        sleep "0.$((RANDOM % 9))"
        redis_thaw "$one" "$two"
        sleep "0.$((RANDOM % 3))"
    done
    ends_well 100
}

@test "a minute with a majority that is stopped at random" {
    end=$((SECONDS + 60))
    crowd 60 4 --ttl 2s --node-timeout 200ms
    while [ "$SECONDS" -lt "$end" ]; do
        for name in n1 n2 n3; do redis_freeze "$name"; done
        sleep "0.$((RANDOM % 9))"
        for name in n1 n2 n3; do redis_thaw "$name"; done
        sleep "1.$((RANDOM % 9))"
    done
    ends_well 20
}

@test "a minute with nodes that restart empty at random, guarded" {
    # A server tells its uptime in seconds; no lease is longer than the guard.
    end=$((SECONDS + 60))
    crowd 60 4 --ttl 1s --node-timeout 200ms --restart-guard 1s
    while [ "$SECONDS" -lt "$end" ]; do
        name=n$((RANDOM % 5 + 1))
        restart_empty "$name"
        sleep "2.$((RANDOM % 9))"
    done
    ends_well 50
}

@test "rolling restarts for a minute do not end a run" {
    end=$((SECONDS + 60))
    start_holding "$key" --ttl 900ms 'while [ ! -e stop ]; do sleep 0.2; done; exit 3'
    token=$(rcli n1 get "$key")
    while [ "$SECONDS" -lt "$end" ]; do
        for name in $(node_names 5); do
            restart_empty "$name"
            wait_until "[ \"\$(rcli $name get '$key')\" = '$token' ]"
        done
    done
    alive "$command_pid"
    stops 3
    wait_until "free_everywhere '$key' 5"
}
