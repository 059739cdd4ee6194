#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# Re-entry on several nodes: which of them know a hold, and what fence it gets, when nodes fail or lose their data.

load ../lib/reentry

proxied='1 2 3'

@test "five nodes: nodes that restart empty in between get the lock and all its holds" {
    use 5
    start_holding "$key" --ttl 6s '"$DLOCK" run --ttl 6s "$DLOCK_KEY" -- sh -c "touch inside
        while [ ! -e stop ]; do sleep 0.2; done"; touch after; while [ ! -e end ]; do sleep 0.1; done'
    wait_until '[ -e inside ]'
    for i in 1 2 3; do
        restart_empty "n$i"
        wait_until "[ \"\$(rcli n$i zcard '{$key}:dlock:holds')\" = 2 ]"
    done
    touch stop
    wait_until '[ -e after ]'
    [ "$(holders "$key" 5)" -ge 3 ]
    has_holds 1
    touch end
    finishes 0
    is_free_everywhere "$key" 5
}

@test "three nodes: the first holder alone restores a further hold, too" {
    use 3
    # The first renewal of the further hold is due in twenty seconds.
    start_holding "$key" --ttl 3s -k 100ms 'setsid "$DLOCK" run --ttl 60s "$DLOCK_KEY" -- sh -c "touch inside
        while [ ! -e stop ]; do sleep 0.2; done; touch done" &
        while [ ! -e end ]; do sleep 0.2; done'
    wait_until '[ -e inside ]'
    for i in 3 2; do
        rcli "n$i" flushall >/dev/null
        wait_until "[ \"\$(rcli n$i get '$key')\" = '$(rcli n1 get "$key")' ]"
    done
    touch end
    finishes 0
    [ "$(holders "$key" 3)" -eq 3 ] || fail "only $(holders "$key" 3) nodes keep it for the further hold"
    for i in 1 2 3; do
        [ "$(rcli "n$i" pttl "$key")" -gt 10000 ] || fail "node $i keeps it for $(rcli "n$i" pttl "$key") ms only"
    done
    gives 75 acquire "$key"
    touch stop
    wait_until '[ -e done ] && free_everywhere "$key" 3'
}

@test "the fence of a lock that is entered again comes from the nodes" {
    try run "$key" -- sh -c 'unset DLOCK_HOLDS; echo "$DLOCK_FENCE"; DLOCK_FENCE=9223372036854775807 "$DLOCK" run "$DLOCK_KEY" -- sh -c "echo \$DLOCK_FENCE"
        DLOCK_FENCE=1 "$DLOCK" run "$DLOCK_KEY" -- sh -c "echo \$DLOCK_FENCE"'
    succeeds
    fence=${lines[0]}
    prints "$fence"$'\n'"$fence"$'\n'"$fence"
    try run "$key" -- sh -c 'echo "$DLOCK_FENCE"'
    [ "$output" -gt "$fence" ]
    [ "${#output}" -eq 16 ]
    # A node knows of a greater one, from an attempt that failed, and one that would decide is hung.
    use 3
    ahead=$((($(date +%s) + 600) * 1000000))
    rcli n3 hset "{$key-3}:dlock" fence "$ahead" >/dev/null
    redis_freeze n3
    works acquire --json "$key-3"
    token=$(jq -r .token <<<"$output")
    fence=$(jq .fence <<<"$output")
    redis_thaw n3
    wait_until '[ "$(rcli n3 get "$key-3")" = "$token" ]'
    redis_freeze n1
    try acquire --json --token "$token" "$key-3"
    [ "$status" -eq 69 ] || [ "$(jq .fence <<<"$output")" -eq "$fence" ] || fail "another fence than $fence"
    DLOCK_KEY=$key-3 DLOCK_TOKEN=$token DLOCK_FENCE=$fence outputs "$fence" run "$key-3" -- sh -c 'echo "$DLOCK_FENCE"'
    redis_thaw n1
    tells 0 ".fence == $fence" acquire --json --token "$token" "$key-3"
}

@test "five nodes with two dead: entering and leaving needs no more than a majority" {
    use 5
    take "$key"
    redis_stop n2
    redis_freeze n4
    inner=$(dlock acquire --token "$token" "$key")
    dlock release "$key" "$token"
    has_holds 1
    dlock release "$key" "$inner"
    [ "$(holders "$key" 1)" -eq 0 ]
    works acquire "$key"
}

# renewals NAME: how many requests about a lock have passed that proxy.
renewals() { proxy_log "$1" | grep -c '^EVAL'; }

# forget NAME: delete our lock and its metadata on that node.
forget() { rcli "$1" del "$key" "{$key}:dlock" "{$key}:dlock:holds" >/dev/null; }

@test "a healed node gets the hold that entered after the renewal, too" {
    outer_nodes="$(node n1) $(proxy_node p2) $(proxy_node p3)"
    DLOCK_NODES=$outer_nodes start_holding "$key" --ttl 12s --node-timeout 7s 'while [ ! -e stop ]; do sleep 0.2; done'
    token=$(rcli n1 get "$key")
    # Two nodes renew before the other hold enters there, and their answers come after that.  An earlier renewal would
    # heal n1 at once.
    kill -STOP "$bg"
    wait_until "[ \"\$(process_state $bg)\" = T ]"
    i=$(renewals p3)
    forget n1
    proxy_rules p2 delay=20
    proxy_rules p3 delay=20
    kill -CONT "$bg"
    wait_until "[ \$(renewals p3) -gt $i ] && [ \$(renewals p2) -gt $i ]"
    use 3
    inner=$(dlock acquire --token "$token" --ttl 1m "$key")
    [ "$(rcli n1 exists "$key")" -eq 0 ] || fail "healed before the other hold entered"
    proxy_rules p2
    proxy_rules p3
    wait_until "[ \"\$(rcli n1 get '$key')\" = '$token' ]"
    [[ $(rcli n1 zscore "{$key}:dlock:holds" "$inner") == [1-9]* ]] || fail "n1 does not know of the hold"
    stops 0
    held_everywhere "$key" 3 "$token"
    dlock release "$key" "$inner"
    wait_until "free_everywhere '$key' 3" # a proxy may pass on the other release later
}

@test "a hold that a node lost before the last reply has not entered" {
    use 3
    take "$key" --ttl 1m
    redis_stop n3
    proxy_rules p2 delay=20
    DLOCK_NODES="$(node n1) $(proxy_node p2) $(node n3)"
    start acquire --token "$token" --node-timeout 5s "$key"
    wait_until '[ "$(rcli n1 exists "{$key}:dlock:holds")" = 1 ]'
    forget n1
    proxy_rules p2
    finishes 69
}

@test "a node that has just started admits no further hold, unless it is the only one" {
    use 3
    take "$key" --ttl 1m
    gives 69 acquire --token "$token" --restart-guard 1h "$key"
    complains "/n[123]/s: it started .* ago and grants nothing for another .* \(--restart-guard\)"
    has_holds 1
    use 1
    works acquire --token "$token" --restart-guard 1h "$key"
}

@test "a lost reply: the hold that it granted is rolled back" {
    take "$key"
    proxy_rules p1 drop
    refuses 69 '' acquire --token "$token" --node-timeout 1s --node "$(proxy_node p1)" "$key"
    wait_until '[ "$(rcli n1 zcount "{$key}:dlock:holds" -inf 0)" = 1 ]'
    has_holds 1
    dlock release "$key" "$token"
    is_free "$key" n1
}
