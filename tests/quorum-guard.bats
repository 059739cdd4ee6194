#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# --restart-guard: a node that started a short while ago may have forgotten a lock, so it grants
# nothing until every lease that it may have known is over.

# shellcheck disable=SC2016,SC2030,SC2031,SC2094,SC2154
bats_require_minimum_version 1.5.0
load lib/quorum

setup_file() { nodes_start 5; }
teardown_file() { redis_stop_all; }
setup() {
    test_begin
    nodes_mend
    use 3
}
teardown() { test_end; }

# up NODE: for how many seconds.
up() { rcli "$1" info server | sed -n 's/^uptime_in_seconds:\([0-9]*\).*/\1/p'; }

@test "fresh nodes grant nothing; the message names node and time" {
    try acquire --restart-guard 10m "$key"
    exits 69
    local refusal='/n[123]/s: it started [0-9a-z.]+ ago and grants nothing for (9m|10m)[0-9a-z.]* more \(--restart-guard\)'
    complains "$refusal.*$refusal" # the third one need not be waited for
    wait_until "free_everywhere '$key' 3"
    DLOCK_RESTART_GUARD=10m try run "$key" -- touch ran
    exits 69
    complains restart-guard
    [ ! -e ran ]
}

@test "it is off unless asked for" {
    try acquire "$key"
    succeeds
    try acquire --restart-guard 0 "$key-2"
    succeeds
}

@test "the option goes before the environment, and a duration it must be" {
    DLOCK_RESTART_GUARD=10m try acquire --restart-guard 0 "$key"
    succeeds
    DLOCK_RESTART_GUARD=soon try acquire "$key-2"
    fails 64 soon
    try acquire --restart-guard -1s "$key-2"
    fails 64
}

@test "the guard is over: granted" {
    wait_until "[ \$(up n1) -ge 3 ] && [ \$(up n2) -ge 3 ] && [ \$(up n3) -ge 3 ]"
    try acquire --restart-guard 2s "$key"
    succeeds
    wait_until "held_everywhere '$key' 3 '$output'"
}

@test "one fresh node of three: the others grant" {
    wait_until "[ \$(up n2) -ge 3 ] && [ \$(up n3) -ge 3 ]"
    # Again where a busy machine let the guard of that node run out.
    local again=1
    while [ "$again" -eq 1 ]; do
        redis_stop n1
        redis_start n1
        try acquire --restart-guard 2s -v "$key"
        exits 0
        if [ "$(up n1)" -lt 2 ]; then
            again=0
        else
            dlock release "$key" "$output"
        fi
    done
    is_free "$key" n1
    wait_until "held '$key' n2 && held '$key' n3"
}

@test "one node: the guard holds there as well" {
    use 1
    try acquire --restart-guard 10m "$key"
    fails 69 "$(node n1): it started"
    is_free "$key" n1
}

@test "who waits gets the lock when the guard is over" {
    redis_stop n1
    redis_stop n2
    redis_start n1
    redis_start n2
    within 20000 try acquire --restart-guard 2s --wait 15s "$key"
    succeeds
    [ "$(up n1)" -ge 2 ] || tell "granted after $(up n1) s"
}

@test "who does not wait long enough is told why" {
    redis_stop n1
    redis_stop n2
    redis_start n1
    redis_start n2
    try acquire --restart-guard 10m --wait 500ms "$key"
    exits 69
    complains restart-guard
}

@test "healing is exempt" {
    wait_until "[ \$(up n2) -ge 3 ] && [ \$(up n3) -ge 3 ]"
    start_holding "$key" --ttl 1500ms -k 100ms --restart-guard 2s 'while [ ! -e stop ]; do sleep 0.1; done'
    token=$(rcli n3 get "$key")
    redis_stop n1
    redis_start n1
    wait_until "[ \"\$(rcli n1 get '$key')\" = '$token' ]"
    touch stop
    finish
    exits 0
}

@test "renew, release and status are exempt" {
    take "$key"
    export DLOCK_RESTART_GUARD=10m
    try renew "$key" "$token"
    succeeds
    try status "$key"
    succeeds
    try acquire "$key"
    fails 75 "held by"
    try release "$key" "$token"
    succeeds
}

@test "a lock that a majority forgot is not granted twice" {
    wait_until "[ \$(up n1) -ge 3 ] && [ \$(up n2) -ge 3 ] && [ \$(up n3) -ge 3 ]"
    take "$key" --ttl 30s --restart-guard 2s
    # Five nodes would keep it; of three a majority restarts, and with it the lock is gone.
    redis_stop n1
    redis_stop n2
    redis_start n1
    redis_start n2
    try acquire --restart-guard 30s "$key"
    exits 69
    complains restart-guard
    wait_until "free '$key' n1 && free '$key' n2"
    [ "$(rcli n3 get "$key")" = "$token" ]
    # Without the guard it is: that is what it is for.
    try acquire "$key"
    succeeds
}
