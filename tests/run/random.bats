#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# dlock run with all of it at once: short leases that are renewed, lost, signalled and ended at
# random.  With ThreadSanitizer this shows what the threads share.

load ../lib/redis

# disturb PID: what may happen to a dlock, several times over.
disturb() {
    local _
    for _ in 1 2 3; do
        sleep "0.0$((RANDOM % 9))"
        case $((RANDOM % 8)) in
            0) rcli a del "$key" >/dev/null ;;
            1) rcli a set "$key" "$OTHER_TOKEN" px 100 >/dev/null ;;
            2) kill -s TERM "$1" ;;
            3) kill -s USR1 "$1" ;;
            4) kill -s WINCH "$1" ;;
            5) kill -s STOP "$1" && sleep "0.$((RANDOM % 2))5" ;;
            6) rcli a client kill type normal skipme yes >/dev/null ;;
            7) rcli a debug sleep "0.$((RANDOM % 2))5" >/dev/null ;;
        esac
        kill -s CONT "$1"
    done 2>/dev/null
}

@test "leases are renewed and lost, commands signalled and ended, at random" {
    count=0
    # LeakSanitizer stops a process that ends, and a SIGCONT takes that back: then both would wait for ever.
    export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0"
    rcli a config get enable-debug-command | grep -qx yes || redis_start a --enable-debug-command yes
    for _ in {1..20}; do
        start run --ttl "3$((RANDOM % 10))0ms" --wait 10s "$key" -- \
            sh -c "trap : USR1; sleep 0.$((RANDOM % 6)) & wait; wait; exit $((RANDOM % 2))"
        disturb "$bg" || true
        finish
        case $status in
            0 | 1 | 138 | 143) count=$((count + 1)) ;;
            69 | 76) ;;
            137) wait_until '[ -z "$(leftovers)" ]' ;; # dlock was not scheduled in time within so short a lease, and was killed
            *) fail "such an end was not to be expected" ;;
        esac
        [ -z "$(leftovers)" ] || fail "left: $(leftovers)"
    done
    [ "$count" -gt 0 ]
    wait_until "free '$key'"
}
