#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# dlock run: holds a lock while a command runs.  How long the lock is kept and the command runs is in limits.bats, how a
# lost lock ends the command in lost.bats, what the command sees as a process in process.bats and signals.bats.

# shellcheck disable=SC2016,SC2030,SC2031,SC2094,SC2154
bats_require_minimum_version 1.5.0
load ../lib/redis

setup_file() { redis_start a; }

# ---------------------------------------------------------------- exit status

@test "the exit status of the command is passed through, and the lock is free afterwards" {
    local code
    for code in 0 1 7 64 75 76 124 127 255; do
        try run "$key" -- sh -c "exit $code"
        exits "$code"
        [ -z "$output$stderr" ] || fail "expected no word of its own"
        is_free "$key"
    done
}

@test "a command that ended by signal n: 128+n" {
    local signal
    for signal in 1 2 6 9 11 13 15; do
        try run "$key" -- sh -c "kill -$signal \$\$"
        exits $((128 + signal))
        is_free "$key"
    done
}

@test "a command that is not found: 127, it is named, and the lock is free; a line of the shell needs -c" {
    local command
    for command in no-such-command-anywhere ./no-such-file ''; do
        try run "$key" -- "$command"
        fails 127 "$command: command not found"
        [[ $stderr != *'use -c'* ]]
        is_free "$key"
    done
    for command in 'for i in 1 2; do echo; done' 'echo a' 'true;false'; do
        try run "$key" -- "$command"
        fails 127 "command not found; use -c for a line of the shell"
    done
}

@test "a command that cannot be executed: 126, it is named, and the lock is free" {
    echo 'echo no' >plain-file
    try run "$key" -- ./plain-file
    fails 126 plain-file
    is_free "$key"
    try run "$key" -- "$BATS_TEST_TMPDIR"
    fails 126
    is_free "$key"
}

@test "a script without an interpreter line runs, as under a shell" {
    echo 'echo ran' >script
    chmod +x script
    try run "$key" -- ./script
    succeeds
    prints ran
}

@test "a held lock: 75, or what -E says, the command is not started, and the holder is named" {
    start_holding "$key" --label 'nightly backup' 'while [ ! -e stop ]; do sleep 0.1; done'
    try run "$key" -- touch second
    fails 75 "$key.*held.*$(id -un)@$(uname -n):$bg"
    [[ $stderr == *"nightly backup"* ]] || fail "expected the label"
    try run -E 33 "$key" -- touch second
    fails 33
    try run -E 0 "$key" -- touch second
    fails 0
    try run -q "$key" -- touch second
    exits 75
    [ -z "$output$stderr" ] || fail "expected no word"
    [ ! -e second ]
    touch stop
    finish
    exits 0
    try run "$key" -- touch second
    succeeds
    [ -e second ]
}

@test "run without a command, or without a key, is a usage error" {
    try run "$key"
    fails 64
    try run "$key" --
    fails 64
    try run
    fails 64
    is_free "$key"
}

# ------------------------------------------------------------ while it runs

@test "the environment of the command describes the lock that is held, and the rest is the caller's" {
    DLOCK_FENCE=1 DLOCK_TTL_MS=1 FOO='b a r' try run --ttl 20s --prefix app: "$key" -- sh -c '
        env | grep -c "^DLOCK_FENCE="; echo "$FOO"
        echo "$DLOCK_KEY"; echo "$DLOCK_TOKEN"; echo "$DLOCK_FENCE"; echo "$DLOCK_TTL_MS"
        '"rcli='$REDIS_CLI -s $(node a)'"'; $rcli get "app:$0"; $rcli hget "{app:$0}:dlock" fence; $rcli pttl "app:$0"' "$key"
    succeeds
    [ "${lines[0]}" = 1 ]
    [ "${lines[1]}" = 'b a r' ]
    [ "${lines[2]}" = "$key" ]
    [[ ${lines[3]} =~ ^[A-Za-z0-9_-]{22}$ ]] || fail "expected a token"
    [ "${lines[3]}" = "${lines[6]}" ]
    [ "${lines[4]}" = "${lines[7]}" ]
    [ "${lines[5]}" = 20000 ]
    [ "${lines[8]}" -gt 15000 ] && [ "${lines[8]}" -le 20000 ]
    is_free "app:$key"
}

@test "DLOCK_KEY is the key byte by byte" {
    try run $'a b\n\xff"\'' -- sh -c 'printf %s "$DLOCK_KEY" | od -An -tx1'
    succeeds
    prints ' 61 20 62 0a ff 22 27'
}

@test "arguments reach the command as they are" {
    try run "$key" -- printf '<%s>' 'a b' '' '*' "q'u\"o" --ttl 5s -- -n $'new\nline'
    succeeds
    prints "<a b><><*><q'u\"o><--ttl><5s><--><-n><new"$'\n'"line>"
}

@test "options between the key and the command belong to dlock, those after the command to the command" {
    try run "$key" --ttl 20s -- sh -c 'echo "$DLOCK_TTL_MS"'
    succeeds
    prints 20000
    try run "$key" --ttl=20s sh -c 'echo "$DLOCK_TTL_MS" "$@"' - --ttl nonsense -n --help
    succeeds
    prints '20000 --ttl nonsense -n --help'
}

@test "the folder and the file mask are the caller's" {
    (umask 027 && cd / && dlock run "$key" -- sh -c 'pwd; umask') >out
    [ "$(cat out)" = "/"$'\n'"0027" ]
}

@test "standard streams are passed through unchanged" {
    head -c 300000 /dev/urandom >in
    dlock run "$key" -- cat <in >out
    cmp in out
    try run "$key" -- sh -c 'echo out; echo err >&2'
    exits 0
    prints out
    [ "$stderr" = err ]
}

@test "-c passes one string to sh -c" {
    try run -c "$key" 'echo $((1 + 1)) "$DLOCK_KEY" | cat; exit 4'
    exits 4
    prints "2 $key"
    try run --shell "$key" -- 'true && false || exit 9'
    exits 9
    try run -c "$key" 'echo a' b
    fails 64
}

@test "the default label is the base name of the command" {
    try run "$key" -- /bin/sh -c "$REDIS_CLI -s $(node a) hget {$key}:dlock label"
    succeeds
    prints sh
    try run --label 'nightly backup' "$key" -- sh -c "$REDIS_CLI -s $(node a) hget {$key}:dlock label"
    prints 'nightly backup'
    DLOCK_LABEL=twin try run "$key" -- sh -c "$REDIS_CLI -s $(node a) hget {$key}:dlock label"
    prints twin
}

# ------------------------------------------------------- what is said, and not

@test "-q does not suppress errors" {
    try run -q --node "$PWD/nobody" "$key" -- true
    fails 69
    try run -q "$key" -- no-such-command-anywhere
    fails 127
}

@test "-v prints the steps to standard error, and never the token" {
    try run -v "$key" -- sh -c 'echo "$DLOCK_TOKEN"'
    exits 0
    [[ $output =~ ^[A-Za-z0-9_-]{22}$ ]]
    [ "${#stderr_lines[@]}" -ge 2 ] || fail "expected the steps"
    [[ $stderr == *"$(node a)"* ]] || fail "expected the node"
    [[ $stderr != *"$output"* ]] || fail "the token is shown"
}

@test "-v prints each signal for the command, and the time that it took to acquire the lock" {
    try run -v --max-run 4s -k 200ms "$key" -- sh -c 'trap "" TERM; while :; do sleep 0.02; done'
    exits 137
    [[ $stderr =~ 'acquired the lock in '[0-9]+\.[0-9]' ms' ]] || fail "expected how long it took"
    [[ $stderr == *'sent SIGTERM to the command'*'sent SIGKILL to the command'* ]] || fail "expected the signals"
    traps='trap "exit 5" USR2' start_holding "$key" -v 'while :; do sleep 0.02; done'
    kill -s USR2 "$bg"
    finish
    exits 5
    [[ $stderr == *'sent SIGUSR2 to the command'* ]] || fail "expected the signal"
    take_for 500 "$key"
    try acquire -v --wait 10s "$key"
    exits 0
    [[ $stderr =~ 'acquired the lock in '[0-9]+\.[0-9]' ms' ]] || fail "expected how long it took"
}

# ------------------------------------------------------------------- renewal

@test "the lease is renewed while the command runs, with the same token and fence" {
    start_holding "$key" --ttl 6s --node-timeout 2s 'while [ ! -e stop ]; do sleep 0.1; done'
    local first from fence
    first=$(rcli a get "$key")
    fence=$(rcli a hget "{$key}:dlock" fence)
    from=$(now_ms)
    while [ $(($(now_ms) - from)) -lt 7000 ]; do
        try acquire "$key"
        exits 75
        [ "$(rcli a get "$key")" = "$first" ]
        [ "$(rcli a hget "{$key}:dlock" fence)" = "$fence" ]
        short_sleep 0.1
    done
    touch stop
    finish
    exits 0
    is_free "$key"
}

@test "the lease is renewed at about a third of its length, not more often" {
    redis_start counted
    proxy_start through counted
    local calls from took
    from=$(now_ms)
    DLOCK_NODES=$(proxy_node through) try run --ttl 6s --node-timeout 2s "$key" -- sleep 8
    took=$(($(now_ms) - from))
    succeeds
    calls=$(proxy_log through | grep -c EVAL)
    # acquire, four renewals, release; on a machine that stalls there may be fewer, or the command takes longer
    [ "$calls" -ge 4 ] && [ "$calls" -le $((took / 1800 + 3)) ] || fail "$calls calls in $took ms"
}

# renewals: the scripts that the server of that test has run.
renewals() { rcli held info commandstats | sed -n 's/^cmdstat_eval:calls=\([0-9]*\),.*/\1/p'; }

# wakes PID: how often its first thread has gone to sleep.
wakes() { sed -n 's/^voluntary_ctxt_switches:[[:space:]]*//p' "/proc/$1/status"; }

@test "while the lock is held dlock wakes up for renewals only, and there is no other process" {
    redis_start held
    # The count begins and ends while the thread sleeps.
    DLOCK_NODES=$(node held) start_holding "$key" --ttl 3s 'exec sleep 60'
    local before
    wait_until '[ "$(renewals)" -ge 3 ]' 30
    before=$(wakes "$bg")
    wait_until '[ "$(renewals)" -ge 6 ]' 30
    # A freezer of processes wakes them, too.
    [ "$(wakes "$bg")" -lt $((before + 3)) ] || fail "woken: before $before, after $(wakes "$bg")"
    [ "$(pgrep -P "$bg")" = "$command_pid" ] || fail "children: $(pgrep -aP "$bg")"
    kill "$command_pid"
    finish
    exits 143
}

# ------------------------------------------------------------ release at the end

@test "a release that fails causes a warning, the exit status is that of the command" {
    redis_start mortal
    DLOCK_NODES=$(node mortal) try run --history 0 "$key" -- sh -c "
        $REDIS_CLI -s $(node mortal) shutdown nosave; exit 3"
    exits 3
    complains
    redis_stop mortal
    redis_start mortal
    DLOCK_NODES=$(node mortal) try run --history 0 "$key" -- sh -c "
        $REDIS_CLI -s $(node mortal) shutdown nosave; exit 0"
    exits 0
    complains
}

@test "four writers of one counter under one lock lose no update" {
    echo 0 >counter
    for _ in 1 2 3 4; do
        (
            for _ in {1..12}; do
                dlock run --wait 30s "$key" -- sh -c 'n=$(cat counter); echo $((n + 1)) >counter'
            done
        ) 3>&- &
    done
    wait
    [ "$(cat counter)" = 48 ] || fail "counted $(cat counter)"
}
