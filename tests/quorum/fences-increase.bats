#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# A fence is greater than every fence that was given out before it for the same key: on one node and on any row of
# majorities, with clients whose clocks are wrong, and when the record of the last one has gone.

load ../lib/fences

hour=3600000000

# fence_of NODE, life_of NODE: the recorded fence, and the milliseconds until the record expires.
fence_of() { rcli "$1" hget "{$key}:dlock" fence; }
life_of() { rcli "$1" pttl "{$key}:dlock"; }

# fence: acquire and release the lock, and print the fence.
fence() { dlock run "$key" -- sh -c 'echo "$DLOCK_FENCE"'; }

wall_us() { echo "${EPOCHREALTIME/[.,]/}"; }

# ------------------------------------------------------------------ rows of holders

@test "a wrong clock of a client changes its fence by half an hour at most, and its lease not at all" {
    need_clock
    at +2h works acquire --json --ttl 60s "$key-ahead"
    ahead=$(($(jq .fence <<<"$output") - $(wall_us)))
    [ "$(jq .valid_ms <<<"$output")" -gt 40000 ]
    at -2h works acquire --json --ttl 60s "$key-behind"
    behind=$(($(wall_us) - $(jq .fence <<<"$output")))
    [ "$(jq .valid_ms <<<"$output")" -gt 40000 ]
    # Less what has passed since.
    [ "$ahead" -le $((hour / 2)) ] && [ "$ahead" -gt $((hour / 3)) ] || fail "ahead by $ahead"
    [ "$behind" -ge $((hour / 2)) ] && [ "$behind" -lt $((hour * 2 / 3)) ] || fail "behind by $behind"
}

@test "fences increase over rotating majorities, with one client two hours ahead and one two hours behind" {
    need_clock
    rotate 50
}

@test "fences increase over rotating majorities, with nodes restarted empty and correct clocks" { restart 50 10; }

@test "fences increase on one node, with one client two hours ahead and one two hours behind" {
    need_clock
    alone 50
}

@test "leases ended by a clock that jumped: the late holder has the smaller fence" {
    # The clock of the server jumps ahead, so all leases end.
    take "$key" --ttl 60s
    late=$(fence_of n1)
    on_all 5 pexpire "$key" 1
    wait_until "free_everywhere '$key' 5"
    [ "$(fence)" -gt "$late" ]
}

# ------------------------------------------------------------------------- records

@test "the record of a fence expires an hour after its lease and an hour after the time of the fence" {
    take "$key" --ttl 60s
    last=$(fence_of n1)
    for name in $(node_names 5); do
        wait_until "[ \"\$(fence_of $name)\" = $last ]"
        [ "$(life_of "$name")" -gt 3640000 ] && [ "$(life_of "$name")" -le 3660000 ] || fail "life $(life_of "$name")"
    done
    dlock release "$key" "$token"
    wait_until "free_everywhere '$key' 5"
    for name in $(node_names 5); do [ "$(life_of "$name")" -gt 3600000 ] || fail "life $(life_of "$name")"; done
    # It has expired: nothing is left.
    on_all 5 pexpire "{$key}:dlock" 1
    wait_until "free_everywhere '{$key}:dlock' 5"
    for name in $(node_names 5); do [ "$(rcli "$name" keys "*$key*")" = "{$key}:dlock:history" ]; done
    [ "$(fence)" -gt "$last" ]
}

@test "the record of a fence ahead of the clock expires an hour after the time of the fence, whatever script writes last" {
    ahead=$(($(wall_us) + 5 * hour))
    for name in $(node_names 5); do rcli "$name" hset "{$key}:dlock" fence "$ahead"; done
    start_holding "$key" --ttl 3s -k 100ms 'while [ ! -e stop ]; do sleep 0.2; done'
    for name in n1 n2 n3; do
        wait_until "[ \$(fence_of $name) -gt $ahead ]"
        [ "$(life_of "$name")" -gt $((59 * 6 * 60000)) ] || fail "life $(life_of "$name")"
    done
    # A renewal brings it to a node that has lost the record, a heal to one that has lost the lock as well.
    rcli n4 del "{$key}:dlock"
    rcli n5 del "{$key}:dlock" "$key"
    for name in n4 n5; do
        wait_until "[ \"\$(fence_of $name)\" = \"\$(fence_of n1)\" ]"
        [ "$(life_of "$name")" -gt $((59 * 6 * 60000)) ] || fail "life $(life_of "$name")"
    done
    stops 0
}

@test "a release, a renewal and a refusal do not remove the record of a fence" {
    take "$key" --ttl 60s
    last=$(fence_of n1)
    on_all 5 pexpire "{$key}:dlock" 90000000
    refuses 75 '' acquire "$key"
    works renew "$key" "$token"
    works release "$key" "$token"
    wait_until "free_everywhere '$key' 5"
    [ "$(fence_of n1)" = "$last" ]
    [ "$(life_of n1)" -gt 80000000 ]
}

@test "SCRIPT FLUSH does not affect the record of a fence" {
    last=0
    for _ in 1 2 3 4 5; do
        next=$(fence)
        [ "$next" -gt "$last" ] || fail "$next after $last"
        last=$next
        on_all 5 script flush
    done
}

@test "fences increase after years: no record is left, and the clock of the next client is years behind" {
    need_clock
    # The record has expired, so the fence's time is an hour ago at least.
    latest=$(($(wall_us) - hour))
    next=$(at -3y fence)
    [ "$next" -gt "$latest" ] || fail "$next after $latest"
}

@test "fences increase after years: the clock of the last client was years ahead" {
    need_clock
    last=$(at +3y fence)
    # No further than the record reaches, less an hour.
    [ "$last" -le $(($(wall_us) + hour / 2)) ] || fail "ahead by $((last - $(wall_us)))"
    [ "$(life_of n1)" -gt $(((last - $(wall_us)) / 1000 + 3590000)) ] || fail "life $(life_of n1)"
    next=$(fence)
    [ "$next" -gt "$last" ] || fail "$next after $last"
}
