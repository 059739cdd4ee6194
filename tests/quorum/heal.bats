#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# A command runs while nodes go and come back: a lock that a majority knows heals on the others,
# and one that a majority has lost is a lost lock.

load ../lib/quorum

node_timeout=2s
setup() {
    test_begin
    stalls_note
}

# The leases are as short as a busy machine permits, so that many fit into a test.  What is kept for ending the command is
# shorter still.
until_stop='while [ ! -e stop ]; do sleep 0.2; done; exit 3'

# ends_well: the command ends by itself with its exit status, and no lock is left.
ends_well() {
    alive "$command_pid" || fail "the command was ended"
    stops 3
    wait_until "free_everywhere '$key' 5"
}

@test "two of five nodes die during a run" {
    start_holding "$key" --ttl 3s -k 100ms "$until_stop"
    redis_stop n1
    redis_freeze n2
    end=$(($(now_ms) + 4500))
    while [ "$(now_ms)" -lt "$end" ]; do
        gives 75 acquire "$key"
        sleep 0.2
    done
    redis_thaw n2
    ends_well
}

@test "a node where another client came before the heal is healed as soon as that lock has ended" {
    use 3
    proxy_start p1 n1 error@1 hold@4
    DLOCK_NODES="$(proxy_node p1) $(node n2) $(node n3)"
    # The first renewal follows at once; the next one comes after 18 s.
    start_holding "$key" --ttl 60s --node-timeout 10s "$until_stop"
    wait_until 'proxy_log p1 | grep -qx "HOLD 4"'
    rcli n1 set "$key" "$OTHER_TOKEN" px 1000
    proxy_rules p1
    wait_until "[ \"\$(rcli n1 get '$key')\" = $(rcli n2 get "$key") ]"
    ends_well
}

@test "nodes that were down at the grant get the lock, with its metadata, when they start empty" {
    redis_stop n1 n2
    start_holding "$key" --ttl 3s -k 100ms --label backup "$until_stop"
    is_renewed "$key" n3
    started=$(now_ms)
    nodes_restore
    token=$(rcli n3 get "$key")
    wait_until "held_everywhere '$key' 5 '$token'"
    for name in n1 n2; do
        for fact in token owner label fence ttl; do
            [ "$(rcli "$name" hget "{$key}:dlock" "$fact")" = "$(rcli n3 hget "{$key}:dlock" "$fact")" ] ||
                fail "$name has another $fact: $(rcli "$name" hgetall "{$key}:dlock" | tr '\n' ' ')"
        done
        [ "$(rcli "$name" pttl "{$key}:dlock")" -gt 3500000 ] || fail "the metadata of $name ends too soon"
        # The lease there is no longer than anywhere else, and it began about when it began there.
        [ "$(rcli "$name" pttl "$key")" -le 3000 ]
        since=$(rcli "$name" hget "{$key}:dlock" since)
        other=$(rcli n3 hget "{$key}:dlock" since)
        [ "$since" -lt "$started" ] && [ $((other - since)) -lt 3000 ] || fail "since $since, elsewhere $other"
    done
    try status --json "$key"
    jq -e '.state == "held" and .label == "backup" and ([.nodes[].state] | unique) == ["held"]' <<<"$output" ||
        fail "expected it to be held everywhere"
    ends_well
}

@test "a deleted key on a minority is healed, another client's is neither healed nor released" {
    start_holding "$key" --ttl 3s -k 100ms "$until_stop"
    token=$(rcli n3 get "$key")
    rcli n1 set "$key" "$OTHER_TOKEN" px 60000
    rcli n2 del "$key"
    wait_until "[ \"\$(rcli n2 get '$key')\" = '$token' ]"
    [ "$(rcli n1 get "$key")" = "$OTHER_TOKEN" ]
    alive "$command_pid"
    stops 3
    wait_until "[ \$(holders '$key' 5) -eq 1 ]"
    [ "$(rcli n1 get "$key")" = "$OTHER_TOKEN" ]
}

@test "all nodes restart one after the other, each healed before the next: no loss" {
    start_holding "$key" --ttl 3s -k 100ms "$until_stop"
    token=$(rcli n1 get "$key")
    for name in $(node_names 5); do
        restart_empty "$name"
        wait_until "[ \"\$(rcli $name get '$key')\" = '$token' ]"
    done
    held_everywhere "$key" 5 "$token"
    for _ in 1 2 3; do is_renewed "$key" n1; done
    ends_well
}

@test "a bare majority is healed when the lease of another client ends on the third node" {
    use 3
    rcli n3 set "$key" "$OTHER_TOKEN" px 2500
    start_holding "$key" --ttl 2m "$until_stop"
    token=$(rcli n1 get "$key")
    # The next renewal is due after 36 s.
    wait_until "[ \"\$(rcli n3 get '$key')\" = '$token' ]" 20
    stops 3
}

@test "three of five restart at once: the lock is lost, and not healed from a minority" {
    start_holding "$key" --ttl 3s -k 100ms "$until_stop"
    redis_freeze n4 n5
    restart_empty n1 n2 n3
    redis_thaw n4 n5
    loses
    wait_until "free_everywhere '$key' 5"
}

@test "a majority no longer has the lock: lost at the next renewal, not only when the lease ends" {
    start_holding "$key" --ttl 15s "$until_stop"
    # A renewal between two of these would heal the first node.
    kill -STOP "$bg"
    wait_until "[ \"\$(process_state $bg)\" = T ]"
    on_all 3 del "$key"
    kill -CONT "$bg"
    # The next renewal is due within a third of the lease.
    within 8000 loses
    wait_until "free_everywhere '$key' 5"
}

@test "another client has a majority: lost, and its keys stay" {
    start_holding "$key" --ttl 3s -k 100ms "$until_stop"
    on_all 3 set "$key" "$OTHER_TOKEN" px 60000
    loses
    [ "$(holders "$key" 3)" -eq 3 ]
    wait_until "free '$key' n4 && free '$key' n5"
}

@test "a majority dies: the command is ended before its lease is over" {
    start_holding "$key" --ttl 4s -k 1300ms "$until_stop"
    redis_stop n1 n2
    redis_freeze n3
    loses
    [ "$killed_by_timer" = yes ] || complains "$key.*could not be renewed"
    redis_thaw n3
    wait_until "free '$key' n3 && free '$key' n4 && free '$key' n5"
}

@test "a majority is away for less than the lease: no loss" {
    start_holding "$key" --ttl 12s --node-timeout 1s "$until_stop"
    # A node hangs during a renewal, and continues.
    redis_freeze n1 n2 n3
    is_renewed "$key" n4
    redis_thaw n1 n2 n3
    is_renewed "$key" n4
    is_renewed "$key" n1
    ends_well
}

@test "a lock that was released while a node was away does not come back there" {
    start_holding "$key" --ttl 3s -k 100ms "$until_stop"
    redis_freeze n1
    is_renewed "$key" n2
    token=$(rcli n2 get "$key")
    rcli n3 del "$key"
    stops 3
    redis_thaw n1
    wait_until "[ \"\$(rcli n1 hget '{$key}:dlock' gone)\" = '$token' ]"
    wait_until "free_everywhere '$key' 5"
}

@test "releases race with healing twenty times: nothing is left" {
    ended_well=0
    for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        # n1 lacks the lock at each renewal, so that a heal is under way when the command ends.
        try run --ttl 300ms --node-timeout 150ms "$key" -- sh -c "$REDIS_CLI -s $(node n1) del '$key' >/dev/null
            sleep 0.1$((i * 4 % 10))"
        # So short a lease may end on a busy machine, or before it is granted, which leaves nothing either.
        case $status in
            0) ended_well=1 ;;
            69 | 76 | 137) ;; # 137: dlock did not run when its lease ended
            *) fail "expected 0, 69, 76 or 137" ;;
        esac
        wait_until "free_everywhere '$key' 5"
    done
    [ "$ended_well" -eq 1 ] || fail "no lease lasted for the command"
}

# all_have_granted: three nodes; one that was late with its grant is renewed at once.
all_have_granted() {
    wait_until "[ \$(grep -c ': granted, fence' bg.1.err) -eq 3 ] || [ \$(grep -c 'done\$' bg.1.err) -ge 3 ]"
}

@test "a node is healed on the connection on which it said that it lacks the lock, or not before it says so again" {
    proxy_start p1 n1
    proxy_start p2 n2
    DLOCK_NODES="$(proxy_node p1) $(proxy_node p2) $(node n3)"
    start_holding "$key" -v --ttl 9s -k 100ms "$until_stop"
    all_have_granted
    # The next call is the renewal, the one behind it asks for holds.  Before n2 has answered that, n1 has another connection.
    for p in p1 p2; do calls+=("$(proxy_log "$p" | grep -c EVAL)"); done
    proxy_rules p1 "cut@$((calls[0] + 2))"
    proxy_rules p2 "delay@$((calls[1] + 2))=0.7"
    rcli n1 del "$key"
    wait_until "held '$key' n1"
    stops 3
    [[ $stderr == *'could not be restored there'*'was restored there'* ]] || fail 'expected two tries'
}

@test "a heal that a node executes after the end of the lease restores nothing" {
    proxy_start p1 n1
    DLOCK_NODES="$(proxy_node p1) $(node n2) $(node n3)"
    start_holding "$key" -v --ttl 3s --node-timeout 1s "$until_stop"
    all_have_granted
    # The renewal, the request for holds, the heal.
    proxy_rules p1 "hold@$(($(proxy_log p1 | grep -c EVAL) + 3))"
    rcli n1 del "$key"
    wait_until 'proxy_log p1 | grep -q HOLD'
    end_process "$bg" "$command_pid"
    wait_until "free '$key' n2 && free '$key' n3"
    before=$(proxy_log p1 | grep -c EVAL)
    proxy_rules p1
    wait_until '[ "$(proxy_log p1 | grep -c EVAL)" -gt "$before" ]'
    is_free "$key" n1
}
