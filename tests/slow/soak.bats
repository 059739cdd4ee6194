#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# What takes minutes: leases of their usual length, and a crowd of holders that are killed
# and stopped at random while a resource checks that they keep each other out.

load ../lib/redis
load ../lib/crowd

@test "a lock with the default lease of 30 seconds lasts for a command of 95 seconds" {
    start_holding "$key" 'sleep 95; exit 3'
    holder=$(rcli a get "$key")
    while alive "$command_pid"; do
        [ "$(rcli a get "$key")" = "$holder" ] || ! alive "$command_pid"
        sleep 1
    done
    finishes 3 "$bg" 120
    is_free "$key"
}

# What each holder does: it must be alone in the resource, and its fence must not be older
# than one that was there before.  A directory is made and removed atomically.
resource="$enter
sleep 0.05
echo ran >>ran
$leave"

killed() {
    one_in 3 || return 0
    sleep "0.$((RANDOM % 3))$((RANDOM % 10))"
    kill -KILL "$1" || true
}

stopped() {
    one_in 3 || return 0
    sleep "0.$((RANDOM % 3))"
    kill -STOP "$1" || true
    sleep 0.3
    kill -CONT "$1" || true
}

# keep_out HARM TTL: four of them for a minute.
keep_out() {
    local end=$((SECONDS + 60)) ttl=$2
    visit() { exec "$DLOCK" run --ttl "$ttl" --wait 20s "$key" -- sh -c "$resource"; }
    contend 4 '[ "$SECONDS" -lt "$end" ]' visit "$1"
    [ ! -e overlaps ] || fail "$(cat overlaps)"
    [ "$(wc -l <ran)" -gt 50 ]
}

@test "holders that are killed at random exclude each other for a minute" { keep_out killed 500ms; }
@test "holders that are stopped at random exclude each other for a minute" { keep_out stopped 1s; }
