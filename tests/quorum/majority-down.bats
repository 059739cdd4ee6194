#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# A majority of the nodes is out of order: 69 within the node timeout, and nothing is left behind
# on any node that can be reached, not even where the answer of a SET was lost.

load ../lib/quorum

node_count=7 faulted=3

# all_fail KIND N COUNT: every command fails if COUNT of N nodes fail.
all_fail() {
    local pid each from
    export DLOCK_NODE_TIMEOUT=2s
    key=job-$BATS_TEST_NUMBER-$2
    use_faulty "$@"
    stalls_note
    from=$(now_ms)
    start_each "$key-run" --ttl 60s
    for pid in "${each[@]}"; do
        finish "$pid"
        fails 69 "no quorum: .* of $2 nodes answered, $(majority "$2") are needed"
    done
    # Twice the node timeout would be too long.
    took_at_most 3900 "$from"
    [ ! -e begun ]
    rolled_back_everywhere "$1" "$key" "$2" "$3"
    rolled_back_everywhere "$1" "$key-run" "$2" "$3"
    nodes_restore
}

# With three, five and seven nodes; faults that do not depend on the number, with five.
most() {
    all_fail "$1" 3 2
    all_fail "$1" 5 3
    all_fail "$1" 7 4
}
three_of_five() { all_fail "$1" 5 3; }

@test "a majority is killed" { most killed; }
@test "a majority hangs" { most hung; }
@test "a majority refuses connections" { three_of_five refused; }
@test "a majority does not accept the connection" { three_of_five unanswered; }
@test "a majority accepts connections and does not reply" { three_of_five silent; }
@test "a majority replies after the deadline" { three_of_five late; }
@test "the replies of a majority are lost" { three_of_five lost; }
@test "a majority closes the connection instead of replying" { three_of_five cut; }

@test "a signal while dlock waits for a hung majority: nothing is left behind" {
    use_faulty hung 5 3
    start acquire --ttl 60s --node-timeout 20s "$key"
    wait_until "held '$key' n4 && held '$key' n5"
    terminate
    rolled_back_everywhere hung "$key" 5 3
}

@test "acquire --wait times out, and leaves nothing behind" {
    use_faulty hung 5 3
    within 3000 try acquire --ttl 60s --node-timeout 300ms --wait 1s "$key"
    [ "$status" -eq 69 ] || [ "$status" -eq 75 ] || fail "expected 69 or 75"
    rolled_back_everywhere hung "$key" 5 3
}

@test "a rollback whose connection is closed, or whose reply is an error, is sent again" {
    # The others refuse later: dlock waits for the rollback of a node that has replied.
    for i in 2 3; do
        rcli "n$i" set "$key" "$OTHER_TOKEN" px 60000
        proxy_start "p$i" "n$i" delay=1
    done
    for how in before error; do
        rcli n1 del "{$key}:dlock"
        # A new proxy counts from one: the first call is the attempt, the second the undo.
        proxy_start p1 n1 "$how@2"
        DLOCK_NODES="$(proxy_node p1) $(proxy_node p2) $(proxy_node p3)" try acquire --ttl 60s --node-timeout 10s "$key"
        fails 75
        rolled_back "$key" n1
    done
}

@test "no majority can be reached: dlock does not end before a slow node has rolled back" {
    use_faulty refused 3 2
    proxy_start p3 n3 delay@1=0.5
    : >"$(server_dir p3)/proxy.log"
    DLOCK_NODES="${DLOCK_NODES% *} $(proxy_node p3)" try acquire --ttl 60s --node-timeout 10s "$key"
    [ "$(proxy_log p3 | grep -c EVAL)" -eq 2 ] || fail "expected the attempt and its rollback"
    fails 69 'no quorum: 1 of 3 nodes answered'
    rolled_back "$key" n3
}

@test "no majority can be reached: a signal ends the wait for a slow node" {
    use_faulty refused 3 2
    proxy_start p3 n3 hold@1
    DLOCK_NODES="${DLOCK_NODES% *} $(proxy_node p3)" start acquire --ttl 300s --node-timeout 60s "$key"
    wait_until 'proxy_log p3 | grep -q HOLD'
    short_sleep 0.3 # the attempt has failed; if not, the signal ends that
    kill -TERM "$bg"
    finish
    [ "$status" -eq 69 ] || [ "$status" -eq 143 ] || fail "expected 69 or 143"
    proxy_rules p3
    rolled_back "$key" n3
}

@test "a node that replies a little later than a majority that refuses needs no rollback" {
    use 3
    take "$key" --ttl 60s
    DLOCK_NODES=
    for i in 1 2 3; do
        proxy_start "p$i" "n$i" "delay=1.$((i / 3))"
        DLOCK_NODES+=" $(proxy_node "p$i")"
    done
    : >"$(server_dir p3)/proxy.log"
    refuses 75 '' acquire --node-timeout 5s "$key"
    [ "$(proxy_log p3 | grep -c EVAL)" -eq 1 ] || fail "expected the attempt alone"
}

@test "a majority restarts empty: the lock is gone, and another may take it" {
    use 5
    take "$key" --ttl 60s
    for name in n1 n2 n3; do
        restart_empty "$name"
    done
    refuses 1 'gone: .*(expired|restarted)' renew "$key" "$token"
    rcli n1 set "$key" "$OTHER_TOKEN" # no majority has it
    refuses 1 'gone: [^;]*$' renew "$key" "$token"
    rcli n1 del "$key"
    refuses 1 '' release "$key" "$token"
    wait_until "free_everywhere '$key' 5"
    works acquire "$key"
}
