#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# Fencing tokens over several nodes: they increase from holder to holder, whichever majority
# grants, and a majority has recorded a fence before it is given out.

load ../lib/quorum

# fence_of NODE: the fence that NODE has recorded.
fence_of() { rcli "$1" hget "{$key}:dlock" fence; }

# recorded N FENCE: how many of n1 to nN have recorded FENCE.
recorded() {
    local name count=0
    for name in $(node_names "$1"); do
        if [ "$(fence_of "$name")" = "$2" ]; then count=$((count + 1)); fi
    done
    echo "$count"
}

# A fence that no wall clock reaches in this test, and that nodes differ in by a million.  None is recorded that is more
# than a day ahead.
far=$((($(date +%s) + 40000) * 1000000))

@test "nodes return different fences: the largest counts, and a second round records it on a majority" {
    gives 0 acquire --json -v "$key-same"
    [[ $stderr != *"raising the fence"* ]] || fail "expected one round only"
    [ "$(key=$key-same recorded 5 "$(jq .fence <<<"$output")")" -ge 3 ]
    for i in 1 2 3 4 5; do rcli "n$i" hset "{$key}:dlock" fence $((far + i * 1000000)); done
    gives 0 acquire --json -v "$key"
    [[ $stderr == *"raising the fence"* ]] || fail "expected a second round"
    fence=$(jq .fence <<<"$output")
    # At least three have granted, so it is at least the third one's successor.
    [ "$fence" -ge $((far + 3000001)) ] || fail "fence $fence"
    [ "$(recorded 5 "$fence")" -ge 3 ] || fail "recorded on $(recorded 5 "$fence") of 5"
}

@test "the lock is lost between the two rounds: it is not granted" {
    # The first of two slow answers is to the grant, the second would be to the raising.  The third node is away:
    # its grant could carry the larger fence, and then none would have to be raised.
    for i in 1 2; do
        rcli "n$i" hset "{$key}:dlock" fence $((far + i * 1000000))
        proxy_start "p$i" "n$i" delay@1=1 before@2 before@3
    done
    DLOCK_NODES="$(proxy_node p1) $(proxy_node p2) $PWD/nobody" \
        try acquire --node-timeout 15s --ttl 60s "$key"
    [ "$status" -eq 69 ] || [ "$status" -eq 75 ] || fail "expected 69 or 75"
    [ -z "$output" ]
    wait_until "free_everywhere '$key' 3"
}

@test "another client has the key at the second round: the lock is not granted" {
    for i in 1 2; do
        rcli "n$i" hset "{$key}:dlock" fence $((far + i * 1000000))
        proxy_start "p$i" "n$i" delay@1=20
    done
    DLOCK_NODES="$(proxy_node p1) $(proxy_node p2) $PWD/nobody"
    start acquire --node-timeout 10s --ttl 60s "$key"
    wait_until "[ \$(holders '$key' 2) -eq 2 ]"
    on_all 2 set "$key" "$OTHER_TOKEN" px 60000
    proxy_rules p1
    proxy_rules p2
    finish
    [ "$status" -eq 69 ] || [ "$status" -eq 75 ] || fail "expected 69 or 75"
    [ -z "$output" ]
    [ "$(rcli n1 get "$key")$(rcli n2 get "$key")" = "$OTHER_TOKEN$OTHER_TOKEN" ]
}

@test "a renewal writes the fence to the nodes that lack it" {
    redis_stop n1 n2
    start_holding "$key" --ttl 3s -k 100ms 'while [ ! -e stop ]; do sleep 0.2; done'
    nodes_restore
    wait_until "[ \$(recorded 5 \$(fence_of n3)) -eq 5 ]"
    rcli n4 hset "{$key}:dlock" fence 17
    wait_until "[ \$(recorded 5 \$(fence_of n3)) -eq 5 ]"
    stops 0
}

@test "the next holder, on another majority, has a larger fence than a holder that was healed" {
    redis_stop n4 n5
    start_holding "$key" --ttl 3s -k 100ms 'while [ ! -e stop ]; do sleep 0.2; done'
    rcli n1 hset "{$key}:dlock" fence "$far"
    nodes_restore
    wait_until "held '$key' n4 && held '$key' n5"
    fence=$(fence_of n4)
    touch stop
    finish
    wait_until "free_everywhere '$key' 5"
    redis_stop n1 n2
    works acquire --json "$key"
    [ "$(jq .fence <<<"$output")" -gt "$fence" ]
}

@test "status shows a fence only if a majority has it" {
    try acquire --json "$key"
    fence=$(jq .fence <<<"$output")
    rcli n1 hset "{$key}:dlock" fence 17
    rcli n2 hset "{$key}:dlock" fence 18
    status_is ".fence == $fence"
    rcli n3 hset "{$key}:dlock" fence 19
    status_is '.fence == null'
}
