#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# A real Redis Cluster of three masters and three replicas: failovers, and slots that go to and fro
# under a lock.

load ../lib/services

setup_file() {
    redis_start a
    cluster_start c 3 3
}
setup() {
    test_begin
    DLOCK_NODES=redis+cluster://$(places c1 c2 c3 c4 c5 c6)
}

owner() { cluster_owner "$1" c1 c2 c3 c4 c5 c6; }

# replica_of NAME: one that has its data.
replica_of() {
    local name id
    id=$(cluster_id "$1")
    for name in c1 c2 c3 c4 c5 c6; do
        if rcli "$name" cluster nodes | awk -v id="$id" '/myself/ && $3 ~ /slave/ && $4 == id { found = 1 } END { exit !found }'; then
            echo "$name"
            return
        fi
    done
    return 1
}

@test "slots move back and forth under a lock, and the lock is kept" {
    start_holding "$key" -v --ttl 10s 'while [ ! -e stop ]; do sleep 0.2; done'
    token=$(rcli "$(owner "$key")" get "$key")
    for ((i = 0; i < 6; i++)); do
        from=$(owner "$key")
        to=c$((${from#c} % 3 + 1))
        cluster_move "$key" "$from" "$to"
        wait_until "[ \$(rcli $to pttl '$key') -le 8000 ]" 30
        wait_until "[ \$(rcli $to pttl '$key') -gt 8500 ]" 30
        [ "$(rcli "$to" get "$key")" = "$token" ]
    done
    alive "$command_pid"
    stops 0
    is_free "$key" "$to"
}

@test "a wait continues through a manual failover" {
    master=$(owner "$key")
    replica=$(replica_of "$master")
    take "$key" --ttl 1h
    start acquire --wait 120s "$key"
    wait_until "[[ \$(rcli $master info clients) == *blocked_clients:1* ]]"
    rcli "$replica" cluster failover >/dev/null
    wait_until "is_master $replica" 30
    works release "$key" "$token"
    finishes_well
    [ "$(rcli "$replica" get "$key")" = "$output" ]
}

# The last one: a server is gone after it.
@test "a master dies while a command runs: its replica continues the lease" {
    master=$(owner "$key")
    replica=$(replica_of "$master")
    start_holding "$key" -v --ttl 60s 'while [ ! -e stop ]; do sleep 0.2; done'
    token=$(rcli "$master" get "$key")
    wait_until "[ \"\$(rcli $replica -p 0 cluster countkeysinslot \$(rcli $replica cluster keyslot '$key'))\" -ge 1 ]"
    redis_stop "$master"
    wait_until "is_master $replica" 60
    wait_until "[ \"\$(rcli $replica pttl '$key')\" -le 55000 ]" 60
    wait_until "[ \"\$(rcli $replica pttl '$key')\" -gt 57000 ]" 60
    [ "$(rcli "$replica" get "$key")" = "$token" ]
    alive "$command_pid"
    stops 0
    is_free "$key" "$replica"
}
