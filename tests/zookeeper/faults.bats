#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# Locks on ZooKeeper while servers die, hang and are cut off.

load ../lib/zookeeper

@test "the leader is killed while the lock is held and waited for: the lock is kept, then handed over" {
    zk_roles
    zk_look_at=${follower[0]}
    hold_beating --ttl 20s
    start_next --ttl 20s
    queue_length_is 2
    zk kill "$leader"
    stays_renewed
    stops 0 "$holder"
    dead_before_entered
}

@test "the follower that the holder is connected to hangs: another server serves holder and waiter" {
    zk_roles
    DLOCK_NODES=$(zk_url "${follower[@]}")
    zk_look_at=$leader
    hold_beating --ttl 20s
    zk stop "$(server_of_last multi)"
    start_next --ttl 20s
    stays_renewed
    stops 0 "$holder"
    dead_before_entered
}

@test "the follower that a waiter is connected to hangs until the wait is over: its place in the queue is given up" {
    zk_roles
    DLOCK_NODES=$(zk_url "$leader") take "$key" --ttl 30s
    DLOCK_NODES=$(zk_url "${follower[@]}") DLOCK_NODE_TIMEOUT=4s start run --wait 8s --ttl 30s "$key" -- true
    zk_look_at=$leader
    queue_length_is 2
    zk stop "$(server_of_last multi)"
    finish
    fails 75
    # Long before a session ends.
    wait_until '[ "$(entry_count "$key")" = 1 ]' 10 || fail 'expected one entry'
}

@test "the follower that a waiter is connected to hangs: another server tells it that its turn has come" {
    zk_roles
    DLOCK_NODES=$(zk_url "$leader") take "$key" --ttl 30s
    DLOCK_NODES=$(zk_url "${follower[@]}") start run --wait 10m --ttl 9s "$key" -- true
    zk_look_at=$leader
    queue_length_is 2
    zk stop "$(server_of_last multi)"
    requests_reset
    wait_until '[ "$(requests connect)" -ge 1 ]' 30
    DLOCK_NODES=$(zk_url "$leader") works release "$key" "$token"
    finishes 0 "$bg" 180
}

@test "a waiter in an outage connects less and less often, and keeps its place" {
    take "$key"
    start_next --ttl 6s
    queue_length_is 2
    requests_reset
    zk rules cut:ping cut:connect
    wait_until '[ "$(requests connect)" -ge 1 ]'
    start=$(now_ms)
    wait_until '[ "$(requests connect)" -ge 8 ]'
    [ $(($(now_ms) - start)) -ge 1000 ] || fail "8 connections in $(($(now_ms) - start)) ms"
    zk rules
    dlock release "$key" "$token"
    finishes 0 "$next" 180
}

@test "the turn of a waiter comes in an outage: it gets the lock when a server answers" {
    take "$key"
    start acquire --wait 10m --ttl 6s --node-timeout 500ms "$key"
    next=$bg
    requests_reset
    # Until its last proof is old: half a lease.
    wait_until '[ "$(requests ping)" -ge 3 ]'
    zk rules cut:connect
    zk_ask 1 delete "$chroot/$key/$(entries "$key" | sort -t- -k 7 | head -n 1)"
    start=$(now_ms)
    wait_until '! alive "$next" || [ "$(now_ms)" -ge $((start + 3000)) ]'
    alive "$next" || fail 'it has the lock without a new proof'
    zk rules
    finishes 0 "$next" 180
}

@test "the session of a waiter ends in an outage: it makes another one, however long that takes" {
    take "$key" --ttl 30s
    start_next --ttl 1s --node-timeout 500ms --max-waiters 1
    queue_length_is 2
    # Another comes behind it, which is before it then; it has waited, so --max-waiters refuses it no more.
    DLOCK_NODES=zk://127.0.0.1:${zk_direct[0]}$chroot start run --wait 10m --ttl 30s "$key" -- true
    queue_length_is 3
    zk rules before:ping before:connect
    queue_length_is 2
    requests_reset
    # One connection tells it that the session has ended.  It tries to close it, and then to make another one, each for 500 ms.
    zk rules $(printf 'cut:connect@%s ' {2..60})
    wait_until '! alive "$next" || [ "$(requests connect)" -ge 17 ]' 25
    zk rules
    wait_until '[ "$(entry_count "$key")" = 3 ] || ! alive "$next"'
    dlock release "$key" "$token" || true # or its session has ended
    finishes 0 "$next" 180
    finishes 0
}

@test "the leader is killed: a start waits for the next one" {
    zk_roles
    zk kill "$leader"
    works run --node-timeout 20s -N "zk://127.0.0.1:${zk_direct[0]},127.0.0.1:${zk_direct[1]},127.0.0.1:${zk_direct[2]}$chroot" \
        "$key" -- true
}

@test "a start whose server hangs uses another one" {
    zk_roles
    zk stop "${follower[0]}"
    # Mostly the first that it tries hangs.
    works run -N "$(zk_url "${follower[0]}" "${follower[0]}" "${follower[0]}" "${follower[0]}" "$leader")" "$key" -- true
}

@test "servers that take more than their share of the time" {
    zk rules late:connect=1.5
    works run --node-timeout 3s "$key" -- true
    zk rules late:connect=3 # more than half of the time: it is asked what it is, and waited for
    works run --node-timeout 5s -N "$(zk_url 1)" "$key" -- true
}

@test "the connected server is cut off from the others: the command is dead before another enters" {
    zk_roles
    alone=${follower[0]}
    other=${follower[1]}
    DLOCK_NODES=$(zk_url "$alone") hold_beating --ttl 4500ms
    DLOCK_NODES=$(zk_url "$leader" "$other") start_next --ttl 4500ms
    zk_look_at=$leader queue_length_is 2
    zk cut "$alone-$leader" "$leader-$alone" "$alone-$other" "$other-$alone"
    finish "$holder"
    exits_76_or_killed
    has_ended "$command_pid"
    dead_before_entered
}

@test "the leader is cut off together with the holder: the command is dead before another enters" {
    zk_roles
    DLOCK_NODES=$(zk_url "$leader") hold_beating --ttl 4500ms
    DLOCK_NODES=$(zk_url "${follower[@]}") start_next --ttl 4500ms
    zk_look_at=${follower[0]} queue_length_is 2
    zk cut "${follower[0]}-$leader" "$leader-${follower[0]}" "${follower[1]}-$leader" "$leader-${follower[1]}"
    finish "$holder"
    exits_76_or_killed
    dead_before_entered
}

@test "no server can be reached any more: the command is dead by the end of the lease" {
    hold_beating --ttl 3s
    zk rules dark
    # No renewal that was sent later is answered.
    start=$EPOCHREALTIME
    finish "$holder"
    exits_76_or_killed
    has_ended "$command_pid"
    find_stalls 0
    [ "$(tail -n 1 beats)" -lt $((${start/[.,]/} + 3000000 + longest_stall * 1000)) ] || fail "the command outlived its lease"
    # The lease, and two times a node's time to give back what may be left.
    took_at_most 10000 "$((${start/[.,]/} / 1000))"
}
