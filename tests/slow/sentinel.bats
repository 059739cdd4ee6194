#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# Three real sentinels, a master, a replica, and failovers: while a command runs, while somebody
# waits, and those in which a lock is lost.

load ../lib/services

export down_after_ms=1000

# Each test begins with all of it new.
setup() {
    local name
    redis_start a
    test_begin
    for name in s1 s2 s3 m r; do redis_stop "$name"; done
    redis_start_tcp m
    replica_start r m
    for name in s1 s2 s3; do sentinel_start "$name" m jobs 2; done
    wait_until 'sentinels_agree jobs 1 s1 s2 s3' 60
    DLOCK_NODES=redis+sentinel://$(places s1 s2 s3)/jobs
}

failed_over() {
    local name
    wait_until 'is_master r' 60
    for name in s1 s2 s3; do
        wait_until "rcli $name sentinel get-master-addr-by-name jobs | grep -qx $(port_of r)" 60
    done
}

# fails_while_held FAILURE: the lease is renewed at the new master.
fails_while_held() {
    start_holding "$key" -v --ttl 30s 'while [ ! -e stop ]; do sleep 0.2; done'
    token=$(rcli m get "$key")
    wait_until "[ \"\$(rcli r get '$key')\" = '$token' ]"
    "$1" m
    failed_over
    wait_until "[ \$(rcli r pttl '$key') -le 25000 ]" 60
    wait_until "[ \$(rcli r pttl '$key') -gt 28000 ]" 60
    [ "$(rcli r get "$key")" = "$token" ]
    stops 0
    is_free "$key" r
}

@test "a failover while a command runs: the lease is renewed at the new master" { fails_while_held redis_stop; }
@test "a master that hangs is replaced when the sentinels have another one" { fails_while_held redis_freeze; }

# fails_while_awaited FAILURE RELEASE: a client waits at the old master and gets the lock from the new one, after RELEASE.
fails_while_awaited() {
    take "$key" --ttl 1h
    wait_until "[ \"\$(rcli r get '$key')\" = '$token' ]"
    start acquire --wait 120s "$key"
    wait_until "[[ \$(rcli m info clients) == *blocked_clients:1* ]]"
    "$1" m
    failed_over
    "$2"
    finishes_well
    [ "$(rcli r get "$key")" = "$output" ]
}
soon() { wait_until "dlock release '$key' '$token'" 30; }
once_queued() {
    wait_until "[[ \$(rcli r info clients) == *blocked_clients:1* ]]" 60
    works release "$key" "$token"
}

@test "a failover while a client waits: it gets the lock from the new master" { fails_while_awaited redis_stop soon; }
@test "a waiter leaves the queue of a master that hangs, and joins that of the new one" {
    fails_while_awaited redis_freeze once_queued
}

@test "a failover to a replica that never got the lock: COMMAND is ended, 76" {
    # What the master has sent is read by a replica that is thawed; so it must not send it.
    redis_freeze r
    rcli m client kill type replica >/dev/null
    start_holding "$key" -v --ttl 30s 'exec sleep 120'
    redis_stop m
    redis_thaw r
    failed_over
    finishes 76 "$bg" 60
    has_ended "$command_pid"
}

@test "with --replicas a lock that the replica does not have is not granted" {
    redis_freeze r
    refuses 69 '0 of 1 replicas' acquire --replicas 1 --node-timeout 500ms "$key"
    redis_thaw r
    wait_until "rcli r info replication | grep -q '^master_link_status:up'" 60
    take "$key" --replicas 1 --ttl 1h
    redis_stop m
    failed_over
    [ "$(rcli r get "$key")" = "$token" ]
    refuses 75 'held by' acquire "$key"
}
