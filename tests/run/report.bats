#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# dlock run: the outcome, as --report and --json print it.

# shellcheck disable=SC2016,SC2030,SC2031,SC2094,SC2154
bats_require_minimum_version 1.5.0
load ../lib/redis

setup_file() { redis_start a; }

# reported FILTER: jq's FILTER is true for the report.
reported() {
    [ "$(wc -l <report)" -eq 1 ] || fail "expected one line in the report"
    jq -e --arg key "$key" "$1" report >/dev/null || fail "not so: $1 in $(cat report)"
}

@test "--report tells how the command ended" {
    try run --report report "$key" -- sh -c 'sleep 0.1; exit 75'
    exits 75
    reported '.outcome == "ran" and .child == {exit: 75} and .key == $key'
    reported '(.fence|type == "number") and .waited_ms >= 0 and .waited_ms < 5000 and .held_ms >= 100 and .held_ms < 5000'
    try run --report report "$key" -- sh -c 'kill -9 $$'
    exits 137
    reported '.outcome == "ran" and (.child.signal|tostring|test("^(9|KILL|SIGKILL)$"))'
}

@test "--report tells that the lock was held" {
    take "$key"
    try run --report report "$key" -- true
    exits 75
    reported '.outcome == "held" and .key == $key and .child == null'
}

@test "--report tells how long the wait was" {
    take "$key"
    start run --report report --wait 60s "$key" -- true
    wait_until "[ \"\$(rcli a zcard '{$key}:dlock:waiting')\" = 1 ]"
    short_sleep 0.1
    dlock release "$key" "$token"
    finish
    exits 0
    reported '.outcome == "ran" and .waited_ms > 50'
}

@test "--report tells that there was no quorum" {
    try run --report report --node "$PWD/nobody" "$key" -- true
    exits 69
    reported '.outcome == "no-quorum"'
}

@test "--report tells that the lock was lost" {
    try run --report report --ttl 9s --node-timeout 2s "$key" -- sh -c "$REDIS_CLI -s $(node a) del $key >gone; sleep 30"
    exits 76
    reported '.outcome == "lost" and (.child.signal|tostring|test("^(15|TERM|SIGTERM)$"))'
}

@test "--report tells that --max-run ended the command" {
    try run --report report --max-run 200ms "$key" -- sleep 30
    exits 124
    reported '.outcome == "max-run" and .child.signal == 15'
    try run --report report --max-run 4s -k 100ms "$key" -- sh -c 'trap "" TERM; while :; do sleep 0.02; done'
    exits 137
    reported '.outcome == "max-run" and .child.signal == 9'
}

@test "--report tells that the command could not be executed" {
    try run --report report "$key" -- no-such-command-anywhere
    exits 127
    reported '.outcome == "exec-failed" and .child == null'
    echo 'echo no' >plain-file
    try run --report report "$key" -- ./plain-file
    exits 126
    reported '.outcome == "exec-failed" and .child == null'
}

@test "--report to a file that cannot be written causes a warning" {
    try run --report no-such-folder/report "$key" -- true
    complains no-such-folder
    is_free "$key"
}

@test "--report to a pipe that nobody reads: a signal ends dlock, which has released the lock" {
    mkfifo pipe
    start run --report pipe "$key" -- touch ran
    wait_until '[ -e ran ] && free "$key"'
    wait_until '! alive "$bg" || { kill -TERM "$bg" && false; }'
    finish
    exits 143
}

@test "--report replaces the file atomically" {
    echo old >report
    exec 9<report
    start_holding "$key" --report report 'while [ ! -e stop ]; do sleep 0.1; done'
    [ "$(cat report)" = old ]
    touch stop
    finish
    reported '.outcome == "ran"'
    [ "$(cat <&9)" = old ] || fail "the old report was written to"
    exec 9<&-
    [ "$(find . -name 'report*')" = ./report ] || fail "something else is there: $(ls)"
}

@test "--report in /dev/shm replaces the file atomically, and follows no link, as in /tmp" {
    local folder
    folder=$(mktemp -d /dev/shm/dlock-test.XXXXXX) || must_run "there is no /dev/shm"
    chmod 1777 "$folder"
    echo older >"$folder/report"
    echo kept >kept
    ln -s "$PWD/kept" "$folder/link"
    try run --report "$folder/report" "$key" -- true
    try run --report "$folder/link" "$key" -- true
    cp "$folder/report" report
    rm -r "$folder"
    [ "$(cat kept)" = kept ]
    jq -e '.outcome == "ran"' report
}

@test "--report that cannot be written is an error before the job, or does not change the exit status" {
    mkdir folder
    try run --report folder "$key" -- touch begun
    fails 71 folder
    [ -z "$(ls -A folder)" ]
    try run --report /dev/full "$key" -- sh -c 'exit 4'
    exits 4
    complains /dev/full
    echo >file
    try run --report file/report "$key" -- touch begun
    fails 71 'Not a directory'
    try run --report '' "$key" -- touch begun
    fails 71 'No such file'
    try run --report "$(printf 'r%.0s' {1..5000})" "$key" -- touch begun
    fails 71 'too long'
    [ ! -e begun ]
}

@test "--json prints the report after the output of the command" {
    try run --json "$key" -- sh -c 'echo mine; exit 3'
    exits 3
    [ "${lines[0]}" = mine ]
    jq -e '.outcome == "ran" and .child.exit == 3' <<<"${lines[1]}"
    status=0
    "$DLOCK" run --json "$key" -- sh -c 'exit 3' >/dev/full 2>err || status=$?
    exits 3
    grep -q 'No space left' err
}
