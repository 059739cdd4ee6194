#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# Re-entry: who holds a lock enters it again, and the last one who leaves frees it.

# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2094,SC2154
bats_require_minimum_version 1.5.0
load ../lib/quorum

setup_file() {
    nodes_start 5
    proxy_start p1 n1
    proxy_start p2 n2
    proxy_start p3 n3
}
setup() {
    test_begin
    nodes_restore
    use 1
    # The tenth of a short lease that it is by itself is too little on a busy machine.
    export DLOCK_NODE_TIMEOUT=2s
}

# has_holds N: how often status says that our key is held.
has_holds() {
    local n
    n=$(dlock status --json -- "$key" | jq .holds)
    [ "$n" = "$1" ] || fail "expected $1 holds, not $n"
}

@test "nested runs of the same key enter it again, three levels deep, with one fence" {
    local nodes
    for nodes in 1 5; do
        use "$nodes"
        rm -f out
        try run "$key" -- sh -c '
            echo "1 $DLOCK_FENCE $DLOCK_TOKEN" >>out
            "$DLOCK" run "$0" -- sh -c "
                echo 2 \$DLOCK_FENCE \$DLOCK_TOKEN >>out
                \"\$DLOCK\" run \"$0\" -- sh -c \"
                    echo 3 \\\$DLOCK_FENCE \\\$DLOCK_TOKEN >>out
                    \\\"\\\$DLOCK\\\" status --json \\\"$0\\\" >status\""' "$key"
        succeeds
        [ "$(wc -l <out)" -eq 3 ]
        [ "$(cut -d' ' -f2 out | sort -u | wc -l)" -eq 1 ]
        [ "$(cut -d' ' -f3 out | sort -u | wc -l)" -eq 3 ]
        [ "$(cut -d' ' -f3 out | cut -c1-22 | sort -u | wc -l)" -eq 1 ]
        [ "$(jq .holds status)" -eq 3 ]
        [ "$(jq .fence status)" = "$(head -n 1 out | cut -d' ' -f2)" ]
        is_free_everywhere "$key" "$nodes"
    done
}

@test "the table of status shows how many holds there are" {
    take "$key"
    try acquire --token "$token" "$key"
    succeeds
    try status "$key"
    succeeds
    [[ $output == *'(2 holds)'* ]] || fail "expected the number of holds"
}

@test "the end of an inner run does not release the outer lock" {
    start_holding "$key" '"$DLOCK" run "$DLOCK_KEY" -- true; touch after; while [ ! -e stop ]; do sleep 0.1; done'
    wait_until '[ -e after ]'
    is_held "$key" n1
    has_holds 1
    try acquire "$key"
    fails 75
    touch stop
    finish
    exits 0
    is_free "$key" n1
}

@test "holds end in any order, and only the last one frees the lock" {
    local order i nodes
    local orders=('0 1 2' '0 2 1' '1 0 2' '1 2 0' '2 0 1' '2 1 0')
    for nodes in 1 5; do
        use "$nodes"
        [ "$nodes" -eq 1 ] || orders=('0 2 1' '1 2 0')
        for order in "${orders[@]}"; do
            take "$key"
            local tokens=("$token") left=3
            tokens+=("$(dlock acquire --token "${tokens[0]}" "$key")")
            tokens+=("$(dlock acquire --token "${tokens[1]}" "$key")")
            for i in $order; do
                has_holds "$left"
                try release --json "$key" "${tokens[i]}"
                succeeds
                left=$((left - 1))
                if [ "$left" -gt 0 ]; then
                    [ "$(jq -r .outcome <<<"$output")" = still-held ]
                    is_held "$key" n1
                    try release "$key" "${tokens[i]}"
                    fails 1
                else
                    [ "$(jq -r .outcome <<<"$output")" = released ]
                fi
            done
            is_free_everywhere "$key" "$nodes"
        done
    done
}

@test "a hold that has ended is neither renewed nor restored" {
    take "$key"
    local outer=$token inner
    inner=$(dlock acquire --token "$outer" "$key")
    try renew "$key" "$inner"
    succeeds
    dlock release "$key" "$outer"
    try renew "$key" "$outer"
    fails 1
    try renew "$key" "$inner"
    succeeds
    try release "$key" "$inner"
    succeeds
    is_free "$key" n1
    try renew "$key" "$inner"
    fails 1 'expired'
}

@test "the lock of an inner run survives the death of the outer one" {
    # setsid: out of the group that ends with the outer one.
    start_holding "$key" --ttl 3s 'setsid "$DLOCK" run --ttl 3s "$DLOCK_KEY" -- sh -c "touch inside
        while [ ! -e stop ]; do sleep 0.1; done" </dev/null >/dev/null 2>&1 & while :; do sleep 1; done'
    wait_until '[ -e inside ]'
    kill -KILL "$bg"
    wait_until "! alive $command_pid"
    # Longer than the outer one's lease.
    sleep 3.2
    is_held "$key" n1
    is_renewed "$key" n1
    try acquire "$key"
    fails 75
    touch stop
    wait_until "free '$key' n1"
}

@test "an outer acquire that is not renewed: the inner run keeps the lock" {
    use 5
    take "$key" --ttl 4s
    try run --ttl 3s --token "$token" "$key" -- \
        sh -c 'sleep 4.2; "$DLOCK" status --json "$0" | jq -r .state' "$key"
    succeeds
    prints held
}

@test "an inner lease that is shorter does not shorten the outer one" {
    take "$key" --ttl 30s
    try run --ttl 3s --token "$token" "$key" -- sleep 1.5
    succeeds
    [ "$(rcli n1 pttl "$key")" -gt 20000 ]
}

@test "a nested run of other keys, and of an outer key through them" {
    use 5
    try run "$key" -- sh -c '
        "$DLOCK" run "other %=:$0" -- sh -c "
            \"\$DLOCK\" run \"$0\" -- sh -c \"
                \\\"\\\$DLOCK\\\" run \\\"other %=:$0\\\" -- touch inside
                \\\"\\\$DLOCK\\\" status --json \\\"$0\\\" \\\"other %=:$0\\\" >status\""' "$key"
    succeeds
    [ -e inside ]
    [ "$(jq -s -c 'map(.holds)' status)" = '[2,1]' ]
    is_free_everywhere "$key" 5
    is_free_everywhere "other %=:$key" 5
}

@test "a prefix belongs to the key that is held" {
    try run --prefix p: "$key" -- sh -c '"$DLOCK" run --prefix p: "$0" -- true && ! "$DLOCK" run "p:$0" -- false;
        "$DLOCK" run --prefix q: "$0" -- "$DLOCK" status --json "q:$0"' "$key"
    succeeds
    [ "$(jq .holds <<<"$output")" -eq 1 ]
}

@test "the variables of acquire --export are an outer lock, too" {
    eval "$(dlock acquire --export "$key")"
    try run "$key" -- sh -c 'echo "$DLOCK_FENCE"'
    succeeds
    prints "$DLOCK_FENCE"
    is_held "$key" n1
    try release "$key"
    succeeds
    is_free "$key" n1
}

@test "a dlock with a stale environment is a contender like any other" {
    export DLOCK_KEY=$key DLOCK_TOKEN=$OTHER_TOKEN DLOCK_FENCE=1234567890123456
    try run "$key" -- sh -c '[ "${DLOCK_TOKEN%.*}" != "$0" ] && echo "$DLOCK_FENCE"' "$OTHER_TOKEN"
    succeeds
    [ "$output" -gt 1234567890123456 ]
    take "$key"
    rcli n1 set "$key" somebody
    DLOCK_TOKEN=$token try acquire "$key"
    fails 75
    DLOCK_TOKEN=junk try acquire "$key"
    fails 75
    DLOCK_HOLDS='job=x=y ==  %%% '"$key=$OTHER_TOKEN=" try acquire "$key"
    fails 75
}

@test "a --token that does not hold the lock is refused, with the reason" {
    try acquire --token "$OTHER_TOKEN" "$key"
    fails 1 'expired'
    is_free "$key" n1
    take "$key"
    try acquire --token "$OTHER_TOKEN" "$key"
    fails 1 'another'
    try run --token "$OTHER_TOKEN" "$key" -- touch ran
    fails 75 'another'
    [ ! -e ran ]
    try acquire --token junk "$key"
    fails 64 TOKEN
    try acquire --token "$token.short" "$key"
    fails 64 TOKEN
    [ "$(rcli n1 get "$key")" = "$token" ]
    has_holds 1
}

@test "--token - reads the token from standard input" {
    take "$key"
    try acquire --token - "$key" <<<"$token"
    succeeds
    [ "${output%.*}" = "$token" ]
}

@test "a lock that another client has taken ends the inner run as well" {
    use 5
    start_holding "$key" --ttl 3s '"$DLOCK" run --ttl 3s "$DLOCK_KEY" -- sh -c "touch inside; sleep 30"'
    wait_until '[ -e inside ]'
    on_all 5 set "$key" somebody >/dev/null
    finish
    exits 76
    [ "$(rcli n1 get "$key")" = somebody ]
}

@test "five nodes: nodes that restart empty in between get the lock and all its holds" {
    use 5
    start_holding "$key" --ttl 6s '"$DLOCK" run --ttl 6s "$DLOCK_KEY" -- sh -c "touch inside
        while [ ! -e stop ]; do sleep 0.1; done"; touch after; while [ ! -e end ]; do sleep 0.02; done'
    wait_until '[ -e inside ]'
    local i
    for i in 1 2 3; do
        redis_stop "n$i"
        redis_start "n$i"
        wait_until "[ \"\$(rcli n$i zcard '{$key}:dlock:holds')\" = 2 ]"
    done
    touch stop
    wait_until '[ -e after ]'
    [ "$(holders "$key" 5)" -ge 3 ]
    has_holds 1
    touch end
    finish
    exits 0
    is_free_everywhere "$key" 5
}

@test "three nodes: the first holder alone restores a further hold, too" {
    use 3
    # The further hold renews itself in twenty seconds for the first time.
    start_holding "$key" --ttl 3s -k 100ms 'setsid "$DLOCK" run --ttl 60s "$DLOCK_KEY" -- sh -c "touch inside
        while [ ! -e stop ]; do sleep 0.1; done; touch done" &
        while [ ! -e end ]; do sleep 0.1; done'
    wait_until '[ -e inside ]'
    local i
    for i in 3 2; do
        rcli "n$i" flushall >/dev/null
        wait_until "[ \"\$(rcli n$i get '$key')\" = '$(rcli n1 get "$key")' ]"
    done
    touch end
    finish
    exits 0
    [ "$(holders "$key" 3)" -eq 3 ] || fail "only $(holders "$key" 3) nodes keep it for the further hold"
    for i in 1 2 3; do
        [ "$(rcli "n$i" pttl "$key")" -gt 10000 ] || fail "node $i keeps it for $(rcli "n$i" pttl "$key") ms only"
    done
    try acquire "$key"
    exits 75
    touch stop
    wait_until '[ -e done ] && free_everywhere "$key" 3'
}

@test "the fence of a lock that is entered again comes from the nodes" {
    local fence ahead
    try run "$key" -- sh -c 'echo "$DLOCK_FENCE"; DLOCK_FENCE=9223372036854775807 "$DLOCK" run "$DLOCK_KEY" -- sh -c "echo \$DLOCK_FENCE"
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
    try acquire --json "$key-3"
    succeeds
    token=$(jq -r .token <<<"$output")
    fence=$(jq .fence <<<"$output")
    redis_thaw n3
    wait_until '[ "$(rcli n3 get "$key-3")" = "$token" ]'
    redis_freeze n1
    try acquire --json --token "$token" "$key-3"
    [ "$status" -eq 69 ] || [ "$(jq .fence <<<"$output")" -eq "$fence" ] || fail "another fence than $fence"
    DLOCK_KEY=$key-3 DLOCK_TOKEN=$token DLOCK_FENCE=$fence try run "$key-3" -- sh -c 'echo "$DLOCK_FENCE"'
    succeeds
    prints "$fence"
    redis_thaw n1
    try acquire --json --token "$token" "$key-3"
    succeeds
    [ "$(jq .fence <<<"$output")" -eq "$fence" ]
}

@test "several keys, prefixes and tokens in the environment nest" {
    try run --prefix a: "$key" -- "$DLOCK" run --prefix b: "$key" -- "$DLOCK" run --prefix a: "$key" -- true
    succeeds
    try run "$key" -- sh -c 'DLOCK_TOKEN=$("$DLOCK" acquire "$0-2") && export DLOCK_TOKEN && "$DLOCK" run "$0" -- true' "$key"
    succeeds
    # What DLOCK_HOLDS has may be older than what was taken since.
    take "$key-3"
    DLOCK_HOLDS="$key-3=$OTHER_TOKEN=5" DLOCK_KEY=$key-3 DLOCK_TOKEN=$token try run "$key-3" -- true
    succeeds
    try run "$key-4" -- "$DLOCK" run "$key-5" -- "$DLOCK" renew "$key-4"
    succeeds
}

@test "five nodes with two dead: entering and leaving needs no more than a majority" {
    use 5
    take "$key"
    redis_stop n2
    redis_freeze n4
    local inner
    inner=$(dlock acquire --token "$token" "$key")
    dlock release "$key" "$token"
    has_holds 1
    dlock release "$key" "$inner"
    [ "$(holders "$key" 1)" -eq 0 ]
    try acquire "$key"
    succeeds
}

# renewals NAME: how many requests about a lock have passed that proxy.
renewals() { proxy_log "$1" | grep -c '^EVAL'; }

# forget NAME: that node has lost our lock and all that it knew of it.
forget() { rcli "$1" del "$key" "{$key}:dlock" "{$key}:dlock:holds" >/dev/null; }

@test "a healed node gets the hold that entered after the renewal, too" {
    local outer_nodes inner i
    outer_nodes="$(node n1) $(proxy_node p2) $(proxy_node p3)"
    DLOCK_NODES=$outer_nodes start_holding "$key" --ttl 12s --node-timeout 7s 'while [ ! -e stop ]; do sleep 0.02; done'
    token=$(rcli n1 get "$key")
    # Two nodes renew before the other hold enters there, and their answers come after that.
    i=$(renewals p3)
    forget n1
    proxy_rules p2 delay=20
    proxy_rules p3 delay=20
    wait_until "[ \$(renewals p3) -gt $i ] && [ \$(renewals p2) -gt $i ]"
    use 3
    inner=$(dlock acquire --token "$token" --ttl 1m "$key")
    [ "$(rcli n1 exists "$key")" -eq 0 ] || fail "healed before the other hold entered"
    proxy_rules p2
    proxy_rules p3
    wait_until "[ \"\$(rcli n1 get '$key')\" = '$token' ]"
    [[ $(rcli n1 zscore "{$key}:dlock:holds" "$inner") == [1-9]* ]] || fail "n1 does not know of the hold"
    touch stop
    finish
    exits 0
    held_everywhere "$key" 3 "$token"
    dlock release "$key" "$inner"
    is_free_everywhere "$key" 3
}

@test "a hold that a node lost before the last reply has not entered" {
    use 3
    take "$key" --ttl 1m
    redis_stop n3
    proxy_rules p2 delay=20
    DLOCK_NODES="$(node n1) $(proxy_node p2) $(node n3)"
    start acquire --token "$token" --node-timeout 10s "$key"
    wait_until '[ "$(rcli n1 exists "{$key}:dlock:holds")" = 1 ]'
    forget n1
    proxy_rules p2
    finish
    exits 69
}

@test "a node that has just started admits no further hold, unless it is the only one" {
    use 3
    take "$key" --ttl 1m
    try acquire --token "$token" --restart-guard 1h "$key"
    exits 69
    complains "/n[123]/s: it started .* ago and grants nothing for another .* \(--restart-guard\)"
    has_holds 1
    use 1
    try acquire --token "$token" --restart-guard 1h "$key"
    succeeds
}

@test "a lost reply: the hold that it granted is rolled back" {
    take "$key"
    proxy_rules p1 drop
    try acquire --token "$token" --node-timeout 1s --node "$(proxy_node p1)" "$key"
    fails 69
    wait_until '[ "$(rcli n1 zcount "{$key}:dlock:holds" -inf 0)" = 1 ]'
    has_holds 1
    dlock release "$key" "$token"
    is_free "$key" n1
}

@test "--min-hold of a hold that is not the last one counts when the last one ends" {
    take "$key"
    try run --min-hold 20s --token "$token" "$key" -- true
    succeeds
    dlock release "$key" "$token"
    is_held "$key" n1
    [ "$(rcli n1 pttl "$key")" -le 20000 ]
    [ "$(rcli n1 pttl "$key")" -gt 5000 ]
    try renew "$key" "$token"
    fails 1
}

@test "the last hold hands the lock to a waiter, with a greater fence" {
    local nodes
    for nodes in 1 5; do
        use "$nodes"
        take "$key"
        local outer=$token inner
        inner=$(dlock acquire --token "$outer" --json "$key" | tee inner.json | jq -r .token)
        start acquire --wait 60s --json "$key"
        wait_until '[ "$(dlock status --json "$key" | jq .waiting)" = 1 ]'
        dlock release "$key" "$outer"
        has_holds 1
        alive "$bg"
        dlock release "$key" "$inner"
        finish
        succeeds
        [ "$(jq .fence <<<"$output")" -gt "$(jq .fence inner.json)" ]
        try renew "$key" "$inner"
        fails 1 '(another|expired|released)'
        try acquire --token "$outer" "$key"
        fails 1 '(another|expired|released)'
        try release "$key" "$outer"
        fails 1 '(another|expired|released)'
        has_holds 1
        dlock release "$key" "$(jq -r .token "bg.$bg_count.out")"
    done
}

@test "a new holder has no holds of the last one" {
    take "$key" --ttl 3s
    dlock acquire --ttl 3s --token "$token" "$key"
    wait_until "free '$key' n1"
    take "$key"
    has_holds 1
    dlock release "$key" "$token"
    is_free "$key" n1
}

@test "a holds key of another type does not prevent renewal and release" {
    take "$key"
    rcli n1 set "{$key}:dlock:holds" junk
    try renew "$key" "$token"
    succeeds
    try status "$key"
    succeeds
    try acquire --token "$token" "$key"
    [ "$status" -ne 0 ] || fail "expected a refusal"
    try release "$key" "$token"
    succeeds
    is_free "$key" n1
}

@test "a hold that has ended cannot be released again, though others keep the lock" {
    local inner
    take "$key"
    inner=$(dlock acquire --token "$token" "$key")
    dlock release "$key" "$inner"
    try renew "$key" "$inner"
    fails 1 'gone: it expired, was broken or was released'
    try renew --json "$key" "$inner"
    exits 1
    jq -e '.outcome == "gone"' <<<"$output"
    try release "$key" "$inner"
    fails 1 'gone: it expired, was broken or was released'
    try release --json "$key" "$inner"
    exits 1
    jq -e '.outcome == "gone"' <<<"$output"
    is_held "$key" n1
    inner=$(dlock acquire --token "$token" "$key")
    dlock release "$key" "$token"
    try release "$key" "$token"
    fails 1 'gone: it expired, was broken or was released'
    is_held "$key" n1
    dlock release "$key" "$inner"
    is_free "$key" n1
}

@test "the record of holds expires" {
    take "$key"
    dlock acquire --token "$token" "$key"
    [ "$(rcli n1 pttl "{$key}:dlock:holds")" -gt 3600000 ]
    dlock release "$key" "$token"
    [ "$(rcli n1 pttl "{$key}:dlock:holds")" -gt 3600000 ]
}
