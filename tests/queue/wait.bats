#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# --wait and --no-wait: how long a held lock is waited for.

load ../lib/redis

setup() {
    test_begin
    stalls_note
}

# waits: the last dlock in the background has made an attempt, and waits.
waits() { wait_until "grep -q waiting bg.$bg_count.err"; }

@test "--wait takes a lock whose lease ends in time" {
    for wait in 20s forever; do
        take_for 600 "$key"
        works acquire --wait "$wait" "$key"
        [ "$output" = "$(rcli a get "$key")" ]
        dlock release "$key" "$output"
    done
}

@test "--wait takes a foreign client's lock when it is deleted" {
    rcli a set "$key" foreign
    start acquire --wait 20s "$key"
    waits
    alive "$bg"
    rcli a del "$key"
    finishes_well
}

@test "--wait ends with 75 at its limit, not earlier and not much later" {
    take "$key" --label 'nightly backup'
    within 3000 try acquire --wait 400ms "$key"
    at_least 400
    waited_in_vain 75 "$key.*held.*nightly backup"
    # -E counts after a wait, too.
    try run --wait 200ms -E 5 "$key" -- true
    waited_in_vain 5
}

@test "-n and --no-wait try once, whatever DLOCK_WAIT is; of -n and --wait the last one counts, and DLOCK_WAIT is --wait" {
    take "$key"
    for how in -n --no-wait '--wait 0' '--wait 0s' '--wait 30s -n'; do
        DLOCK_WAIT=30s within 3000 refuses 75 '' acquire $how "$key"
    done
    within 3000 try acquire -n --wait 300ms "$key"
    at_least 300
    waited_in_vain 75
    DLOCK_WAIT=300ms within 3000 try acquire "$key"
    at_least 300
    waited_in_vain 75
}

@test "a waiter sends few requests, and fewer with time" {
    redis_start quiet
    rcli quiet set "$key" foreign
    DLOCK_NODES=$(node quiet) try acquire --wait 5s "$key"
    waited_in_vain 75
    calls=$(rcli quiet info commandstats | sed -n 's/^cmdstat_eval[a-z_]*:calls=\([0-9]*\),.*/\1/p' |
        awk '{ n += $1 } END { print n + 0 }')
    [ "$calls" -ge 2 ] && [ "$calls" -le 24 ] || fail "$calls attempts in 5 s"
}

@test "a lease too long to count in microseconds is waited for like any other" {
    rcli a set "$key" foreign px 9000000000000000000
    try acquire -v --wait 1s "$key"
    [ "$status" -eq 75 ] || waited_in_vain 75
    [ "$(grep -c 'next try in' <<<"$stderr")" -le 20 ] || fail "expected a few attempts"
    [[ $stderr == *'next try in'* && $stderr != *'in the queue'* ]] || fail 'another client wakes nobody'
    rcli a pexpire "$key" 3153600000000 # 100 years
    try status --json "$key"
    [ "$(jq .ttl_ms <<<"$output")" -gt 3153500000000 ] || fail "expected the whole lease"
}

@test "the line of a waiter says for how long the lock has been held" {
    take "$key"
    rcli a hset "{$key}:dlock" since "$(($(now_ms) - 3600000))"
    start run --wait 30s "$key" -- true
    wait_until 'grep -q "held since .*, for 1h" bg.1.err'
    works release "$key" "$token"
    finishes 0
}

@test "a waiter that was killed does not get the lock afterwards" {
    take "$key"
    start acquire --wait 30s "$key"
    wait_until "[[ \$(rcli a info clients) == *blocked_clients:1* ]]"
    end_process "$bg"
    wait_until "[[ \$(rcli a info clients) == *blocked_clients:0* ]]"
    dlock release "$key" "$token"
    # Nobody uses the handoff token; after the window the lock is free.
    [ "$(rcli a get "$key")" = "$token" ]
    [ "$(rcli a pttl "$key")" -le 6000 ]
    wait_until "free '$key'"
}

@test "the lease counts from the attempt that was granted, not from the start of the wait" {
    take "$key" --ttl 6s
    works acquire --wait 20s --ttl 30s --json "$key"
    [ "$(jq .valid_ms <<<"$output")" -gt 25000 ]
}

@test "a first attempt without any node fails at once, however long the wait" {
    within 5000 refuses 69 nobody acquire --wait 30s --node "$PWD/nobody" "$key"
}

@test "a node that stays unavailable while dlock waits: the wait ends in time" {
    redis_start mortal
    rcli mortal set "$key" foreign
    DLOCK_NODES=$(node mortal) start acquire --wait 1500ms "$key"
    waits
    redis_stop mortal
    within 6000 finish
    [ "$status" -eq 69 ] || [ "$status" -eq 75 ] || fail "expected 69 or 75"
    complains
}
