#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# dlock status over several nodes: what a majority agrees on, and what each node says.

load ../lib/quorum

@test "held everywhere" {
    take "$key" --ttl 60s --label backup
    status_is '.state == "held" and .label == "backup" and .token_hint == $token[:4]'
    json_is '(.nodes | length) == 5 and ([.nodes[].state] | unique) == ["held"] and ([.nodes[].error] | unique) == [null]'
    json_is "[.nodes[].node] == [$(for name in $(node_names 5); do printf '"%s",' "$(node "$name")"; done | sed 's/,$//')]"
    works status "$key"
    [[ ${lines[1]} =~ ^"$key"\ +held\ .*\ 5/5$ ]] || fail "expected 5/5"
}

@test "held on a majority: held, and the state of each other node" {
    redis_stop n5
    take "$key" --ttl 60s
    redis_start n5
    redis_freeze n4
    within 5000 works status --node-timeout 2s --json "$key"
    json_is '.state == "held" and [.nodes[].state] == ["held", "held", "held", "unknown", "free"]'
    json_is '.nodes[3].error | contains("no answer in time")'
    json_is '.nodes[4].error == null'
    works status --node-timeout 2s "$key"
    [[ ${lines[1]} == *' 3/5' ]] || fail "expected 3/5"
    gives 0 status --node-timeout 2s -v "$key"
    [[ $stderr == *"$(node n3): held"* && $stderr == *"$(node n5): free"* && $stderr == *"$(node n4): unknown: no answer"* ]] ||
        fail "expected each node's state"
    redis_stop n5
    works status --node-timeout 2s --json "$key"
    json_is '.nodes[4].error | contains("Redis running")'
}

@test "--all: a lock that a minority holds is free, and says what each node has" {
    works run "$key" -- true
    rcli n5 set "$key" "$OTHER_TOKEN" px 20000
    works status --json --all "$key"
    json_is '.state == "free" and .last.outcome == "ran" and [.nodes[].state] == ["free", "free", "free", "free", "foreign"]'
}

@test "status shows "contended" if no token has a majority" {
    split_votes
    status_is '.state == "contended" and .ttl_ms == 0 and .owner == null and .label == null and .token_hint == null'
    json_is '[.nodes[].state] == ["foreign", "foreign", "foreign", "foreign", "free"]'
    gives 0 status "$key"
    [[ ${lines[1]} =~ ^"$key"\ +contended\  ]] || fail "expected contended"
}

@test "no quorum: 69, though the few nodes that reply agree" {
    take "$key" --ttl 60s
    redis_stop n1 n2
    redis_freeze n3
    within 4500 refuses 69 "no quorum: 2 of 5 nodes answered, 3 are needed" status --node-timeout 2s --json "$key"
    refuses 69 "no quorum" status --node-timeout 2s "$key"
    gives 69 status --node-timeout 2s
}

@test "all locks, and those of a pattern, if a majority has them" {
    take "$key-one" --ttl 60s
    take "$key-two" --ttl 60s
    redis_stop n1 n2
    nodes_restore
    take "$key-three" --ttl 60s
    for how in '' "$key-*"; do
        gives 0 status --json ${how:+"$how"}
        [ "$(jq -r .key <<<"$output" | grep "^$key-" | sort | tr '\n' ' ')" = "$key-one $key-three $key-two " ] ||
            fail "expected three locks"
    done
}

@test "status changes nothing anywhere" {
    take "$key" --ttl 60s
    rcli n1 del "$key"
    rcli n2 set "$key-2" "$OTHER_TOKEN" px 20000
    gives 0 status "$key" "$key-2" "$key-3"
    is_free "$key" n1
    [ "$(holders "$key-2" 5)" -eq 1 ]
    [ "$(holders "$key-3" 5)$(holders "{$key-3}:dlock" 5)" = 00 ]
}
