#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# What takes minutes: leases of their usual length, and a crowd of holders that are killed
# and stopped at random while a resource checks that they keep each other out.

# shellcheck disable=SC2016,SC2030,SC2031,SC2094,SC2154
bats_require_minimum_version 1.5.0
load ../lib/redis

setup_file() { redis_start a; }
teardown_file() { redis_stop_all; }
setup() { test_begin; }
teardown() { test_end; }

@test "the usual lease of 30 seconds outlives a command of 95" {
    start_holding "$key" 'sleep 95; exit 3'
    local holder
    holder=$(rcli a get "$key")
    while alive "$command_pid"; do
        [ "$(rcli a get "$key")" = "$holder" ] || ! alive "$command_pid"
        sleep 1
    done
    finish "$bg" 120
    exits 3
    is_free "$key"
}

# What each holder does: it must be alone in the resource, and its fence must not be older
# than one that was there before.  A directory is made and removed atomically.
resource='
if ! mkdir inside 2>/dev/null; then
    read -r old <inside/pid
    case $(sed -n "s/^State:[[:space:]]*\(.\).*/\1/p" "/proc/$old/status") in
        Z | X | "") ;; # killed; who came before left the folder behind
        *) echo "$$ met $old" >>met ;;
    esac
    mkdir -p inside
fi
echo $$ >inside/pid
last=$(cat last || echo 0)
[ "$DLOCK_FENCE" -gt "$last" ] || echo "fence $DLOCK_FENCE after $last" >>met
echo "$DLOCK_FENCE" >"last.$$" && mv "last.$$" last
sleep 0.05
echo ran >>ran
rm -r inside'

@test "holders that are killed at random keep each other out for a minute" {
    local end=$((SECONDS + 60))
    for _ in 1 2 3 4; do
        (
            while [ "$SECONDS" -lt "$end" ]; do
                "$DLOCK" run --ttl 500ms --wait 20s "$key" -- sh -c "$resource" &
                pid=$!
                if [ $((RANDOM % 3)) -eq 0 ]; then
                    sleep "0.$((RANDOM % 3))$((RANDOM % 10))"
                    kill -KILL "$pid" || true
                fi
                wait "$pid" || true
            done
        ) </dev/null >/dev/null 2>&1 3>&- 4>&- &
    done
    wait
    [ ! -e met ] || tell "$(cat met)"
    [ "$(wc -l <ran)" -gt 50 ]
}

@test "holders that are stopped at random keep each other out for a minute" {
    local end=$((SECONDS + 60))
    for _ in 1 2 3 4; do
        (
            while [ "$SECONDS" -lt "$end" ]; do
                "$DLOCK" run --ttl 1s --wait 20s "$key" -- sh -c "$resource" &
                pid=$!
                if [ $((RANDOM % 3)) -eq 0 ]; then
                    sleep "0.$((RANDOM % 3))"
                    kill -STOP "$pid" || true
                    sleep 0.3
                    kill -CONT "$pid" || true
                fi
                wait "$pid" || true
            done
        ) </dev/null >/dev/null 2>&1 3>&- 4>&- &
    done
    wait
    [ ! -e met ] || tell "$(cat met)"
    [ "$(wc -l <ran)" -gt 50 ]
}
