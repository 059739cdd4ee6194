#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# Connections that something in between has forgotten, as a firewall that was restarted does: nothing arrives any more,
# in either direction, and nobody says so.  A renewal is retried anyway.  A release has one round only, in which it is
# sent again on a new connection.

# shellcheck disable=SC2016,SC2031,SC2034,SC2154
bats_require_minimum_version 1.5.0
load ../lib/services
load ../lib/quorum

setup_file() {
    redis_start a
    nodes_start 3
}
setup() {
    test_begin
    nodes_restore
}
teardown() {
    local name
    for name in p1 p2 p3; do rm -f "$(server_dir "$name")/rules"; done
}

# ends_well: the run ended with the 5 of its command and without a word.
ends_well() {
    exits 5
    [ -z "$stderr" ] || fail "expected nothing on standard error"
}

@test "a release on a forgotten connection is sent again on a new one" {
    proxy_start p1 a 'hold@2'
    DLOCK_NODES=$(proxy_node p1) try run --node-timeout 5s "$key" -- sh -c 'sleep 0.3; exit 5'
    ends_well
    is_free "$key"
}

@test "releases on forgotten connections to all of three nodes are sent again on new ones" {
    local i nodes=
    for i in 1 2 3; do
        proxy_start "p$i" "n$i" 'hold@2'
        nodes+=" $(proxy_node "p$i")"
    done
    DLOCK_NODES=$nodes try run --restart-guard 0 --node-timeout 5s "$key" -- sh -c 'sleep 0.3; exit 5'
    ends_well
    wait_until "free_everywhere '$key' 3" # a proxy may pass it on later
}
