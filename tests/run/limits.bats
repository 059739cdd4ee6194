#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# dlock run: how long the lock is kept (--min-hold, --once-per), and how long the command runs (--max-run).

load ../lib/redis

# ------------------------------------------------------------------- min-hold

@test "the lock is free at once if --min-hold has passed already, and the exit status is that of the command" {
    gives 5 run --min-hold 100ms --max-run 0 --ttl 20s "$key" -- sh -c 'sleep 0.3; exit 5'
    is_free "$key"
}

@test "--min-hold counts from the grant, not from the request" {
    proxy_start slow a delay@1=5
    gives 0 run -v --min-hold 10s --node-timeout 10s --node "$(proxy_node slow)" "$key" -- true
    [[ $stderr =~ "releasing the lock in "([0-9]+)" ms" ]]
    # Counted from the request it would be less than 5 s.
    [ "${BASH_REMATCH[1]}" -gt 5000 ]
}

# ------------------------------------------------------------------- once-per

@test "--once-per keeps the lock until that time after its start, if the command succeeds" {
    works run --once-per 20s --ttl 3s --node-timeout 2s "$key" -- sleep 1
    lasts 10000 19000
    gives 0 run -E 0 "$key" -- touch ran
    [ ! -e ran ]
}

@test "--once-per with --wait: one of three hosts runs the command, the others wait until it is done" {
    runs_once 10m 1h
}

@test "a wait for a lock that is kept for longer ends at once, and says until when" {
    try run --once-per 1h --label job "$key" -- true
    within 3000 try run --wait 30s --once-per 1h "$key" -- touch ran
    fails 75 "^dlock: $key: kept until $instant \\(--once-per\\); job on .* ended .*; it is free in 59m[0-9]+s, dlock break allows another run$"
    within 3000 refuses 75 'it is free in 59m[0-9]+s' acquire --wait 30s "$key"
    try break --force "$key"
    try run --min-hold 1h "$key" -- true
    within 3000 refuses 75 '\(--min-hold\).*dlock break' run --wait 30s "$key" -- touch ran
    [ ! -e ran ]
    try break --force "$key"
    # One that is kept for less is waited for.
    try run --min-hold 2s "$key" -- true
    works run --wait 30s "$key" -- touch ran
    [ -e ran ]
}

@test "waiters of a lock that is kept for less than their wait go on waiting" {
    start_holding "$key" --min-hold 3s 'until [ -e finish ]; do sleep 0.2; done'
    start run --wait 60s "$key" -- echo ran
    wait_until '[ "$(rcli a zcard "{$key}:dlock:waiting")" = 1 ]'
    touch finish
    wait_until '[[ $(dlock status --json "$key") == *\"state\":\"kept\",* ]] || ! alive $bg'
    finishes 0
    [ "$output" = ran ]
    is_free "$key"
}

@test "--once-per releases the lock at once if the command fails, so that the next try runs it" {
    gives 3 run --once-per 1h "$key" -- sh -c 'exit 3'
    is_free "$key"
    gives 143 run --once-per 1h "$key" -- sh -c 'kill -TERM $$'
    is_free "$key"
    gives 124 run --once-per 1h --max-run 200ms "$key" -- sh -c 'trap "exit 0" TERM; while :; do sleep 0.1; done'
    is_free "$key"
    works run --once-per 1h "$key" -- true
    is_held "$key"
}

@test "--once-per of a command that fails leaves --min-hold, which may be longer than the lease, as it is" {
    gives 1 run --min-hold 10s --once-per 1h "$key" -- false
    lasts 3000 10000
    dlock break --force "$key" >/dev/null
    works run --min-hold 20s --once-per 5s --ttl 3s --node-timeout 2s "$key" -- true
    lasts 15000 20000
}

# -------------------------------------------------------------------- max-run

@test "--max-run exits with the status of timeout(1)" {
    runs=() others=()
    # The default of --kill-after, which is no longer if the lease is.
    trap '' TERM
    start run --ttl 1h --max-run 100ms "$key" -- sleep 60
    trap - TERM
    killed=$bg
    for line in 'exec sleep 30' 'trap "exit 0" TERM; while :; do sleep 0.1; done' 'trap "exit 3" TERM; while :; do sleep 0.1; done' \
        'trap "" TERM; while :; do sleep 0.1; done' 'kill -KILL $$' 'exit 7'; do
        start run --max-run 4s -k 300ms "$key-${#runs[@]}" -- sh -c "$line"
        runs+=("$bg")
        timeout -k 0.3 4 sh -c "$line" 2>/dev/null 3>&- 4>&- &
        others+=("$!")
    done
    for i in "${!runs[@]}"; do
        expected=0
        wait "${others[i]}" || expected=$?
        finishes "$expected" "${runs[i]}"
    done
    finishes 137 "$killed"
    gives 137 run --max-run 300ms --signal KILL "$key" -- sleep 30
}

@test "--max-run with -k 0 never kills, as with timeout" {
    gives 124 run --max-run 4s -k 0 "$key" -- sh -c 'trap "sleep 0.3; echo ended; exit 5" TERM; while :; do sleep 0.1; done'
    prints ended
    is_free "$key"
}

@test "-k 0 does not prevent that the command of a lost lock is killed" {
    stalls_note
    within 11000 try run --max-run 4s -k 0 --ttl 3s --node-timeout 2s "$key" -- sh -c "
        trap '$REDIS_CLI -s $(node a) del $key >gone' TERM; while :; do sleep 0.1; done"
    exits_76_or_killed
    [ -e gone ]
    wait_until '[ -z "$(leftovers)" ]'
}

@test "--max-run also ends the processes that the command started" {
    gives 124 run --max-run 300ms "$key" -- sh -c 'sleep 30 & sleep 30'
    wait_until '[ -z "$(leftovers)" ]'
}

@test "--max-run counts from the start of the command, without the wait" {
    take "$key" --ttl 6s
    works run --wait 15s --max-run 4s "$key" -- sleep 0.1
}

@test "--signal is the first signal, and takes each name that timeout takes" {
    gives 124 run --max-run 4s --signal INT "$key" -- sh -c '
        trap "echo got INT; exit" INT; trap "echo got TERM; exit" TERM; while :; do sleep 0.1; done'
    prints "got INT"
    for name in CLD IOT POLL RTMIN rtmin+3 SIGRTMAX RTMAX-1; do
        timeout -s "$name" 20s true
        works run --signal "$name" "$key" -- true
    done
    gives 124 run --max-run 200ms --signal RTMIN+1 -v "$key" -- sleep 30
    [[ $stderr == *'sent SIGRTMIN+1 to the command'* ]] || fail "expected the signal"
}

# ------------------------------------------------------- no server when the command ends

# tried_twice: a first try to release has failed.
tried_twice() { wait_until "[ \"\$(grep -c 'releasing the lock' bg.$bg_count.err)\" -ge 2 ]"; }

# ends_without SERVER ARG...: run it with these options on that server, which cannot be reached when the command ends.
# `away` and `back` say how.
ends_without() {
    local server=$1
    shift
    rm -f stop begun
    start_holding "$key" -N "$(node "$server")" --ttl 30s --node-timeout 1s -v "$@" 'until [ -e stop ]; do sleep 0.2; done'
    eval "$away"
    : >stop
    tried_twice
}

@test "a server that is away for longer than the node timeout when the command ends: the lock is kept nevertheless" {
    options=(--appendonly yes --appendfsync always)
    redis_start durable "${options[@]}"
    for option in once-per min-hold; do
        for away in 'redis_stop durable' 'redis_freeze durable'; do
            back='redis_thaw durable'
            [[ $away != *stop* ]] || back='redis_start durable "${options[@]}"'
            ends_without durable "--$option" 1h
            eval "$back"
            finishes 0
            refuses 75 "$key: kept until .*--$option" run -N "$(node durable)" --node-timeout 2s "$key" -- touch twice
            [ "$(rcli durable pttl "$key")" -gt 3000000 ]
            rcli durable del "$key" >/dev/null
        done
    done
}

@test "a server that is away when the command ends: the history gets how it ended" {
    away='redis_freeze other'
    redis_start other
    ends_without other
    redis_thaw other
    finishes 0
    is_free "$key" other
    [[ $(dlock history --json -N "$(node other)" --node-timeout 2s "$key") == *'"outcome":"ran"'* ]] || fail "$(dlock history "$key")"
}

@test "a signal ends the tries to release, and nothing is tried where there is nothing to record" {
    away='redis_freeze gone'
    redis_start gone
    ends_without gone --once-per 1h
    kill -TERM "$bg"
    within 4000 finishes 0
    [[ $stderr == *"$key: not released: "*'; it ends with its lease, and is not kept' ]] || fail "expected a warning"
    redis_stop gone
    redis_start gone
    start_holding "$key" -N "$(node gone)" --node-timeout 1s --history 0 'kill -STOP '"$(server_pid gone)"'; exit 3'
    within 4000 finishes 3
    complains "$key: not released: .*; it ends with its lease\$"
}

@test "once dlock was asked to end, nothing is tried for the history alone" {
    ends='trap "exit 7" TERM; : >begun; while :; do sleep 0.1; done'
    redis_start gone
    for option in '' '--min-hold 1h'; do
        rm -f begun
        start run -N "$(node gone)" --ttl 30s --node-timeout 1s -v $option "$key" -- sh -c "$ends"
        wait_until '[ -e begun ]'
        redis_freeze gone
        kill -TERM "$bg"
        if [ -n "$option" ]; then
            tried_twice
            kill -TERM "$bg"
        fi
        within 4000 finishes 7
        redis_thaw gone
        rcli gone del "$key"
    done
}

@test "at a terminal the tries to release are announced, and ^C ends them" {
    redis_start gone
    yields 3 "$PYTHON" "$lib_dir/terminal.py" 'expect=not released yet' 'expect=trying again until the lease ends, in' \
        'send=\x03' 'expect=it ends with its lease' -- \
        "$DLOCK" run -N "$(node gone)" --node-timeout 1s "$key" -- sh -c "kill -STOP $(server_pid gone); exit 3"
}

@test "several nodes that are away when the command ends: the lock is kept when a majority is back" {
    nodes=()
    for name in q1 q2 q3; do
        redis_start "$name"
        nodes+=(-N "$(node "$name")")
    done
    start_holding "$key" "${nodes[@]}" --ttl 30s --node-timeout 1s -v --once-per 1h 'until [ -e stop ]; do sleep 0.2; done'
    redis_freeze q2 q3
    : >stop
    tried_twice
    redis_thaw q3
    finishes 0
    for name in q1 q3; do [ "$(rcli "$name" pttl "$key")" -gt 3000000 ]; done
}
