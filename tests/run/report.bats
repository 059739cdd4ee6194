#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# dlock run: the outcome, as --report and --json print it.

load ../lib/redis

tcp_servers=tcp

# reported FILTER: jq's FILTER is true for the report.
reported() {
    [ "$(wc -l <report)" -eq 1 ] || fail "expected one line in the report"
    jq -e --arg key "$key" "$1" report >/dev/null || fail "not so: $1 in $(cat report)"
}

@test "--report tells how the command ended" {
    gives 75 run --report report "$key" -- sh -c 'sleep 0.1; exit 75'
    reported '.outcome == "ran" and .child == {exit: 75} and .key == $key'
    reported '(.fence|type == "number") and .waited_ms >= 0 and .waited_ms < 5000 and .held_ms >= 100 and .held_ms < 5000'
    gives 137 run --report report "$key" -- sh -c 'kill -9 $$'
    reported '.outcome == "ran" and (.child.signal|tostring|test("^(9|KILL|SIGKILL)$"))'
}

@test "--report tells how long the wait was" {
    take "$key"
    start run --report report --wait 60s "$key" -- true
    wait_until "[ \"\$(rcli a zcard '{$key}:dlock:waiting')\" = 1 ]"
    short_sleep 0.1
    dlock release "$key" "$token"
    finishes 0
    reported '.outcome == "ran" and .waited_ms > 50 and .waited_ms < 60000'
}

@test "--report tells that the lock was lost" {
    gives 76 run --report report --ttl 9s --node-timeout 2s "$key" -- sh -c "$REDIS_CLI -s $(node a) del $key >gone; sleep 30"
    reported '.outcome == "lost" and (.child.signal|tostring|test("^(15|TERM|SIGTERM)$"))'
    gives 76 run --report report "$key" -- "$REDIS_CLI" -s "$(node a)" set "$key" "$OTHER_TOKEN" px 20000
    reported '.outcome == "lost" and .child == {exit: 0} and .holder.state == "foreign"'
}

@test "--report tells that --max-run ended the command, or that it could not be executed" {
    gives 124 run --report report --max-run 200ms "$key" -- sleep 30
    reported '.outcome == "max-run" and .child.signal == 15'
    gives 127 run --report report "$key" -- no-such-command-anywhere
    reported '.outcome == "exec-failed" and .child == null'
    echo 'echo no' >plain-file
    gives 126 run --report report "$key" -- ./plain-file
    reported '.outcome == "exec-failed" and .child == null'
}

@test "--report to a pipe that nobody reads: a signal ends dlock, which has released the lock" {
    mkfifo pipe
    start run --report pipe "$key" -- touch ran
    wait_until '[ -e ran ] && free "$key"'
    wait_until '! alive "$bg" || { kill -TERM "$bg" && false; }'
    finishes 143
}

@test "--json to a pipe that is full: a signal ends dlock" {
    mkfifo pipe
    exec 9<>pipe
    "$PYTHON" -c 'import os
os.set_blocking(9, False)
try:
    while os.write(9, bytes(4096)): pass
except BlockingIOError:
    os.set_blocking(9, True)'
    "$DLOCK" run --json "$key" -- touch ran </dev/null >&9 9>&- 3>&- 4>&- &
    bg=$!
    wait_until '[ -e ran ] && free "$key"'
    wait_until '! alive "$bg" || { kill -TERM "$bg" && false; }'
    waits_for 143 "$bg"
}

@test "--report replaces the file atomically" {
    echo old >report
    exec 9<report
    start_holding "$key" --report report 'while [ ! -e stop ]; do sleep 0.2; done'
    [ "$(cat report)" = old ]
    touch stop
    finish
    reported '.outcome == "ran"'
    [ "$(cat <&9)" = old ] || fail "the old report was written to"
    exec 9<&-
    [ "$(find . -name 'report*')" = ./report ] || fail "something else is there: $(ls)"
    for file in /dev/fd/9 /proc/self/fd/9; do
        works run --report "$file" "$key" -- true 9>report
        reported '.outcome == "ran"'
    done
}

@test "--report to the name of a descriptor is written there, between what else is, also if another user opened it" {
    umask 0
    as_somebody run --report /dev/stdout -N "$(node tcp)" "$key" -- echo mine
    waits_for 0 "$bg"
    cat somebody.out bg.*.out >both || : # one of them is not there
    [ "$(head -n 1 both)" = mine ] || fail "$(cat both)"
    grep "^{" both >report # gcov has a word behind it, if it counts
    reported '.outcome == "ran"'
    take "$key"
    for file in /dev/stdout /dev/fd/2 /proc/self/fd/9; do
        "$DLOCK" run --report "$file" "$key" -- true >both 2>&1 9>&1 || [ $? -eq 75 ]
        grep "^{" both >report
        reported '.outcome == "held"'
        grep -q "^dlock: $key: held by" both || fail "$(cat both)"
    done
    for file in /dev/stdin /dev/fd/0 /dev/fd/8; do # read only, closed
        refuses 71 "cannot be written to $file: Bad file descriptor" run --report "$file" "$key" -- true 8>&- </dev/null
    done
}

@test "--report in /dev/shm replaces the file atomically, and follows no link, as in /tmp" {
    folder=$(mktemp -d /dev/shm/dlock-test.XXXXXX) || must_run "there is no /dev/shm"
    chmod 1777 "$folder"
    echo older >"$folder/report"
    echo kept >kept
    ln -s "$PWD/kept" "$folder/link"
    try run --report "$folder/report" "$key" -- true
    try run --report "$folder/link" "$key" -- true
    cp "$folder/report" report
    # A file that may be written, in a folder that may not.
    chmod 666 "$folder/report"
    chmod 555 "$folder"
    as_somebody run --report "$folder/report" -N "$(node tcp)" "$key" -- true
    waits_for 71 "$bg"
    chmod 755 "$folder"
    rm -r "$folder"
    [ "$(cat kept)" = kept ]
    jq -e '.outcome == "ran"' report
}

@test "--report that cannot be written is an error before the job, or does not change the exit status" {
    mkdir folder
    refuses 71 folder run --report folder "$key" -- touch begun
    [ -z "$(ls -A folder)" ]
    gives 4 run --report /dev/full "$key" -- sh -c 'exit 4'
    complains "^dlock: $key: the report could not be written: /dev/full: No space left"
    echo >file
    refuses 71 'Not a directory' run --report file/report "$key" -- touch begun
    refuses 71 'No such file' run --report '' "$key" -- touch begun
    refuses 71 'too long' run --report "$(printf 'r%.0s' {1..5000})" "$key" -- touch begun
    [ ! -e begun ]
    # ThreadSanitizer writes a file before main.
    if grep -aq __tsan_init "$DLOCK"; then return; fi
    yields 4 bash -c 'ulimit -f 0; exec "$@"' - "$DLOCK" run --report report "$key" -- sh -c 'exit 4'
    [ -z "$(find . -name 'report*')" ] || fail "something is left: $(ls)"
}

@test "--json and --report - print the report after the output of the command" {
    for option in --json '--report -'; do
        gives 3 run $option "$key" -- sh -c 'echo mine; exit 3'
        [ "${lines[0]}" = mine ]
        jq -e '.outcome == "ran" and .child.exit == 3' <<<"${lines[1]}"
    done
    attempt sh -c 'exec "$0" run --json "$1" -- sh -c "exit 3" >/dev/full' "$DLOCK" "$key"
    exits 3
    complains "^dlock: $key: .*No space left"
}
