#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# dlock on ZooKeeper for minutes: long queues, forced losses, restarts of all servers, tests/fault with fixed seeds, and
# mutants that these have to find.

load ../lib/zookeeper
load ../lib/mutants

setup() {
    zk_real
    zk_begin
}

@test "50 and 200 waiters are served in order, each woken once" {
    for count in 50 200; do
        rm -f served bg.*
        unset waiter
        start_holding "$key" --ttl 10s 'while [ ! -e go ]; do sleep 0.2; done'
        holder=$bg
        queue_waiters "$count" --ttl 10s --wait 20m
        requests_reset
        : >go
        finish "$holder"
        all_served $(seq "$count")
        rm go
        # Each: a look at the node before it or a list, its own node, a proof, the end.
        [ $(($(requests) - $(requests ping))) -le $((11 * count + 20)) ] ||
            fail "$(requests) requests, $(requests ping) of them pings"
        zk_is_free "$key"
    done
}

@test "in 20 forced losses the command is dead before another enters" {
    zk_roles
    for ((i = 0; i < 20; i++)); do
        zk_roles
        rm -f entered
        DLOCK_NODES=$(zk_url "${follower[0]}") hold_beating --ttl 2s
        DLOCK_NODES=$(zk_url "$leader" "${follower[1]}") start_next --ttl 2s
        zk_look_at=$leader queue_length_is 2
        zk cut "${follower[0]}-$leader" "$leader-${follower[0]}"
        finish "$holder"
        exits_76_or_killed
        dead_before_entered
        zk restore
    done
}

@test "all three servers are killed and start again under a holder and a waiter" {
    hold_beating --ttl 10s --node-timeout 1s
    start_next --ttl 10s
    queue_length_is 2
    for n in 1 2 3; do zk kill "$n"; done
    for n in 1 2 3; do zk start "$n"; done
    stays_held 11
    stops 0 "$holder"
    dead_before_entered
}

@test "a lease ends between its length and a tick and a little after its last proof" {
    for ttl in 2 4 6; do
        start=$(now_ms)
        DLOCK_TTL=${ttl}s take "$key"
        works run --wait 30s "$key" -- true
        waited=$(($(now_ms) - start - 1000 * ttl))
        [ "$waited" -ge 0 ] || fail "free $((-waited)) ms before its end"
        [ "$waited" -le 1300 ] || late "free $waited ms after its end"
    done
}

# ---------------------------------------------------------------- tests/fault

# keeps_promises ARG...: fault ARG... finds nothing.
keeps_promises() {
    attempt "$PYTHON" "$top_srcdir/tests/fault/fault" --world zookeeper --jobs 3 "$@"
    echo "# ${output##*$'\n'}" >&3
    exits 0
}

@test "12 scenarios of all kinds break no promise" { keeps_promises --seeds 1-12; }
@test "leaders that hang break no promise" { keeps_promises --theme pause --seeds 1-3; }
@test "leaders that hang right after a renewal break no promise" { keeps_promises --theme late --seeds 1-3; }
@test "servers that are cut off break no promise" { keeps_promises --theme split --seeds 1-3; }
@test "leaders that are deposed break no promise" { keeps_promises --theme deposed --seeds 1-3; }
@test "mutant: a ping as proof of the lease is found" { is_found zk-ping 3; }
@test "mutant: a write on the old connection as proof is found" { is_found zk-old-connection 3; }
@test "mutant: a new connection without a write as proof is found" { is_found zk-no-write 3; }
@test "mutant: the number of leases as that of a slot is found" { is_found zk-slots-count 2; }
@test "mutant: a number of a slot that is written behind the mutex is found" { is_found zk-slots-apart 3; }
