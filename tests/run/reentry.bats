#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# Re-entry: the holder of a lock enters it again, and the last hold that ends frees it.

load ../lib/reentry

@test "nested runs of the same key enter it again, three levels deep, with one fence" {
    for nodes in 1 5; do
        use "$nodes"
        rm -f out
        works run "$key" -- sh -c '
            echo "1 $DLOCK_FENCE $DLOCK_TOKEN" >>out
            "$DLOCK" run "$0" -- sh -c "
                echo 2 \$DLOCK_FENCE \$DLOCK_TOKEN >>out
                \"\$DLOCK\" run \"$0\" -- sh -c \"
                    echo 3 \\\$DLOCK_FENCE \\\$DLOCK_TOKEN >>out
                    \\\"\\\$DLOCK\\\" status --json \\\"$0\\\" >status\""' "$key"
        [ "$(wc -l <out)" -eq 3 ]
        [ "$(cut -d' ' -f2 out | sort -u | wc -l)" -eq 1 ]
        [ "$(cut -d' ' -f3 out | sort -u | wc -l)" -eq 3 ]
        [ "$(cut -d' ' -f3 out | cut -c1-22 | sort -u | wc -l)" -eq 1 ]
        [ "$(jq .holds status)" -eq 3 ]
        [ "$(jq .fence status)" = "$(head -n 1 out | cut -d' ' -f2)" ]
        is_free_everywhere "$key" "$nodes"
    done
}

@test "holds end in any order, and only the last one frees the lock" {
    orders=('0 1 2' '0 2 1' '1 0 2' '1 2 0' '2 0 1' '2 1 0')
    for nodes in 1 5; do
        use "$nodes"
        [ "$nodes" -eq 1 ] || orders=('0 2 1' '1 2 0')
        for order in "${orders[@]}"; do
            take "$key"
            tokens=("$token") left=3
            tokens+=("$(dlock acquire --token "${tokens[0]}" "$key")")
            tokens+=("$(dlock acquire --token "${tokens[1]}" "$key")")
            for i in $order; do
                has_holds "$left"
                works release --json "$key" "${tokens[i]}"
                left=$((left - 1))
                if [ "$left" -gt 0 ]; then
                    [ "$(jq -r .outcome <<<"$output")" = still-held ]
                    is_held "$key" n1
                    refuses 1 '' release "$key" "${tokens[i]}"
                else
                    [ "$(jq -r .outcome <<<"$output")" = released ]
                fi
            done
            is_free_everywhere "$key" "$nodes"
        done
    done
}

@test "the lock of an inner run survives the death of the outer one" {
    # setsid: out of the group that ends with the outer one.
    start_holding "$key" --ttl 3s 'setsid "$DLOCK" run --ttl 3s "$DLOCK_KEY" -- sh -c "touch inside
        while [ ! -e stop ]; do sleep 0.2; done" </dev/null >/dev/null 2>&1 & while :; do sleep 1; done'
    wait_until '[ -e inside ]'
    kill -KILL "$bg"
    wait_until "! alive $command_pid"
    outlives_its_lease n1
    refuses 75 '' acquire "$key"
    touch stop
    wait_until "free '$key' n1"
}

@test "a nested run of other keys, and of an outer key through them" {
    use 5
    works run "$key" -- sh -c '
        "$DLOCK" run "other %=:$0" -- sh -c "
            \"\$DLOCK\" run \"$0\" -- sh -c \"
                \\\"\\\$DLOCK\\\" run \\\"other %=:$0\\\" -- touch inside
                \\\"\\\$DLOCK\\\" status --json \\\"$0\\\" \\\"other %=:$0\\\" >status\""' "$key"
    [ -e inside ]
    [ "$(jq -s -c 'map(.holds)' status)" = '[2,1]' ]
    is_free_everywhere "$key" 5
    is_free_everywhere "other %=:$key" 5
}

@test "re-entry identifies a lock by prefix and key" {
    works run --prefix p: "$key" -- sh -c '"$DLOCK" run --prefix p: "$0" -- true && ! "$DLOCK" run "p:$0" -- false;
        "$DLOCK" run --prefix q: "$0" -- "$DLOCK" status --json "q:$0"' "$key"
    [ "$(jq .holds <<<"$output")" -eq 1 ]
}

@test "the variables of acquire --export are an outer lock, too" {
    eval "$(dlock acquire --export "$key")"
    outputs "$DLOCK_FENCE" run "$key" -- sh -c 'echo "$DLOCK_FENCE"'
    is_held "$key" n1
    works release "$key"
    is_free "$key" n1
}

@test "a dlock with a stale environment does not enter a lock again" {
    export DLOCK_KEY=$key DLOCK_TOKEN=$OTHER_TOKEN DLOCK_FENCE=1234567890123456
    works run "$key" -- sh -c '[ "${DLOCK_TOKEN%.*}" != "$0" ] && echo "$DLOCK_FENCE"' "$OTHER_TOKEN"
    [ "$output" -gt 1234567890123456 ]
    take "$key"
    rcli n1 set "$key" somebody
    DLOCK_TOKEN=$token refuses 75 '' acquire "$key"
    DLOCK_TOKEN=junk refuses 75 '' acquire "$key"
    DLOCK_HOLDS='job=x=y ==  %%% '"$key=$OTHER_TOKEN=" refuses 75 '' acquire "$key"
}

@test "a --token that does not hold the lock is refused, with the reason" {
    refuses 1 'expired' acquire --token "$OTHER_TOKEN" "$key"
    is_free "$key" n1
    take "$key"
    refuses 1 'another' acquire --token "$OTHER_TOKEN" "$key"
    tells 1 '.outcome == "gone" and .holder.state == "held"' acquire --json --token "$OTHER_TOKEN" "$key"
    refuses 75 'another' run --token "$OTHER_TOKEN" "$key" -- touch ran
    [ ! -e ran ]
    refuses 64 TOKEN acquire --token junk "$key"
    refuses 64 TOKEN acquire --token "$token.short" "$key"
    [ "$(rcli n1 get "$key")" = "$token" ]
    has_holds 1
}

@test "--token - reads the token from standard input" {
    take "$key"
    works acquire --token - "$key" <<<"$token"
    [ "${output%.*}" = "$token" ]
}

@test "several keys, prefixes and tokens in the environment nest" {
    works run --prefix a: "$key" -- "$DLOCK" run --prefix b: "$key" -- "$DLOCK" run --prefix a: "$key" -- true
    works run "$key" -- sh -c 'DLOCK_TOKEN=$("$DLOCK" acquire "$0-2") && export DLOCK_TOKEN && "$DLOCK" run "$0" -- true' "$key"
    # What DLOCK_HOLDS has may be older than what was taken since.
    take "$key-3"
    DLOCK_HOLDS="$key-3=$OTHER_TOKEN=5" DLOCK_KEY=$key-3 DLOCK_TOKEN=$token works run "$key-3" -- true
    works run "$key-4" -- "$DLOCK" run "$key-5" -- "$DLOCK" renew "$key-4"
}

@test "--min-hold of a hold that is not the last one counts when the last one ends" {
    take "$key"
    works run --min-hold 20s --token "$token" "$key" -- true
    dlock release "$key" "$token"
    is_held "$key" n1
    lasts 5000 20000 "$key" n1
    refuses 1 '' renew "$key" "$token"
}

@test "the last hold hands the lock to a waiter, with a greater fence" {
    for nodes in 1 5; do
        use "$nodes"
        take "$key"
        outer=$token
        inner=$(dlock acquire --token "$outer" --json "$key" | tee inner.json | jq -r .token)
        start acquire --wait 60s --json "$key"
        wait_until '[[ $(dlock status --json "$key") == *\"waiting\":1,* ]]'
        dlock release "$key" "$outer"
        has_holds 1
        alive "$bg"
        dlock release "$key" "$inner"
        finishes_well
        [ "$(jq .fence <<<"$output")" -gt "$(jq .fence inner.json)" ]
        refuses 1 '(another|expired|released)' renew "$key" "$inner"
        refuses 1 '(another|expired|released)' acquire --token "$outer" "$key"
        refuses 1 '(another|expired|released)' release "$key" "$outer"
        has_holds 1
        dlock release "$key" "$(jq -r .token "bg.$bg_count.out")"
    done
}

@test "a holds key of another type does not prevent renewal and release" {
    take "$key"
    rcli n1 set "{$key}:dlock:holds" junk
    works renew "$key" "$token"
    works status "$key"
    try acquire --token "$token" "$key"
    [ "$status" -ne 0 ] || fail "expected a refusal"
    works release "$key" "$token"
    is_free "$key" n1
}

@test "a hold that has ended is neither renewed, restored nor released again, though others keep the lock" {
    take "$key"
    inner=$(dlock acquire --token "$token" "$key")
    [[ $(dlock status "$key") == *'(2 holds)'* ]] || fail "expected the number of holds"
    dlock release "$key" "$inner"
    for operation in renew release; do
        refuses 1 'gone: it expired, was broken or was released' "$operation" "$key" "$inner"
        gives 1 "$operation" --json "$key" "$inner"
        jq -e '.outcome == "gone"' <<<"$output"
    done
    is_held "$key" n1
    inner=$(dlock acquire --token "$token" "$key")
    dlock release "$key" "$token"
    for operation in renew release; do
        refuses 1 'gone: it expired, was broken or was released' "$operation" "$key" "$token"
    done
    dlock renew "$key" "$inner"
    dlock release "$key" "$inner"
    is_free "$key" n1
    refuses 1 'expired' renew "$key" "$inner"
}

@test "the record of holds expires; a new holder has no holds of the last one" {
    take "$key"
    dlock acquire --token "$token" "$key"
    [ "$(rcli n1 pttl "{$key}:dlock:holds")" -gt 3600000 ]
    dlock release "$key" "$token"
    [ "$(rcli n1 pttl "{$key}:dlock:holds")" -gt 3600000 ]
    rcli n1 pexpire "$key" 1
    take "$key" --wait 20s
    has_holds 1
    dlock release "$key" "$token"
    is_free "$key" n1
}
