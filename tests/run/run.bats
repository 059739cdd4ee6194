#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# dlock run: holds a lock while a command runs.  How long the lock is kept and the command runs is in limits.bats, how a
# lost lock ends the command in lost.bats, what the command sees as a process in process.bats and signals.bats.

load ../lib/redis

# ---------------------------------------------------------------- exit status

@test "the exit status of the command is passed through, and the lock is free afterwards" {
    for code in 0 1 7 64 75 76 124 127 255; do
        gives "$code" run "$key" -- sh -c "exit $code"
        [ -z "$output$stderr" ] || fail "expected no word of its own"
        is_free "$key"
    done
}

@test "a command that ended by signal n: 128+n" {
    for signal in 1 2 6 9 11 13 15; do
        gives $((128 + signal)) run "$key" -- sh -c "kill -$signal \$\$"
        is_free "$key"
    done
}

@test "a command that is not found: 127, or cannot be executed: 126; it is named, and the lock is free" {
    for command in no-such-command-anywhere ./no-such-file ''; do
        refuses 127 "$command: command not found" run "$key" -- "$command"
        [[ $stderr != *'use -c'* ]]
        is_free "$key"
    done
    echo 'echo no' >plain-file
    refuses 126 plain-file run "$key" -- ./plain-file
    is_free "$key"
    refuses 126 '' run "$key" -- "$BATS_TEST_TMPDIR"
    is_free "$key"
}

@test "a script without an interpreter line runs, as under a shell" {
    echo 'echo ran' >script
    chmod +x script
    outputs ran run "$key" -- ./script
}

@test "a held lock: 75, or what -E says, the command is not started, and the holder is named" {
    start_holding "$key" --label 'nightly backup' 'while [ ! -e stop ]; do sleep 0.2; done'
    refuses 75 "$key.*held.*$(id -un)@$(uname -n):$bg" run "$key" -- touch second
    [[ $stderr == *"nightly backup"* ]] || fail "expected the label"
    refuses 33 '' run -E 33 "$key" -- touch second
    refuses 0 '' run -E 0 "$key" -- touch second
    gives 75 run -q "$key" -- touch second
    [ -z "$output$stderr" ] || fail "expected no word"
    [ ! -e second ]
    stops 0
    works run "$key" -- touch second
    [ -e second ]
}

@test "run without a command, or without a key, is a usage error" {
    for words in '' "$key" "$key --"; do refuses 64 '' run $words; done
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

@test "DLOCK_KEY is the key byte by byte, and arguments reach the command as they are" {
    outputs ' 61 20 62 0a ff 22 27' run $'a b\n\xff"\'' -- sh -c 'printf %s "$DLOCK_KEY" | od -An -tx1'
    works run "$key" -- printf '<%s>' 'a b' '' '*' "q'u\"o" --ttl 5s -- -n $'new\nline'
    prints "<a b><><*><q'u\"o><--ttl><5s><--><-n><new"$'\n'"line>"
}

@test "options between the key and the command belong to dlock, those after the command to the command" {
    outputs 20000 run "$key" --ttl 20s -- sh -c 'echo "$DLOCK_TTL_MS"'
    works run "$key" --ttl=20s sh -c 'echo "$DLOCK_TTL_MS" "$@"' - --ttl nonsense -n --help
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
    gives 0 run "$key" -- sh -c 'echo out; echo err >&2'
    prints out
    [ "$stderr" = err ]
}

@test "-c passes one string to sh -c" {
    gives 4 run -c "$key" 'echo $((1 + 1)) "$DLOCK_KEY" | cat; exit 4'
    prints "2 $key"
    gives 9 run --shell "$key" -- 'true && false || exit 9'
    refuses 64 '' run -c "$key" 'echo a' b
}

@test "the default label is the base name of the command" {
    outputs sh run "$key" -- /bin/sh -c "$REDIS_CLI -s $(node a) hget {$key}:dlock label"
    try run --label 'nightly backup' "$key" -- sh -c "$REDIS_CLI -s $(node a) hget {$key}:dlock label"
    prints 'nightly backup'
    DLOCK_LABEL=twin try run "$key" -- sh -c "$REDIS_CLI -s $(node a) hget {$key}:dlock label"
    prints twin
}

# ------------------------------------------------------- what is said, and not

@test "-q does not suppress errors, -v prints the steps to standard error, and never the token" {
    refuses 69 '' run -q --node "$PWD/nobody" "$key" -- true
    refuses 127 '' run -q "$key" -- no-such-command-anywhere
    gives 0 run -v "$key" -- sh -c 'echo "$DLOCK_TOKEN"'
    [[ $output =~ ^[A-Za-z0-9_-]{22}$ ]]
    [ "${#stderr_lines[@]}" -ge 2 ] || fail "expected the steps"
    [[ $stderr == *"$(node a)"* ]] || fail "expected the node"
    [[ $stderr != *"$output"* ]] || fail "the token is shown"
}

@test "-v prints each signal for the command, and the time that it took to acquire the lock" {
    gives 137 run -v --max-run 4s -k 200ms "$key" -- sh -c 'trap "" TERM; while :; do sleep 0.1; done'
    [[ $stderr =~ 'acquired the lock in '[0-9]+\.[0-9]' ms' ]] || fail "expected how long it took"
    [[ $stderr == *'sent SIGTERM to the command'*'sent SIGKILL to the command'* ]] || fail "expected the signals"
    traps='trap "exit 5" USR2' start_holding "$key" -v 'while :; do sleep 0.1; done'
    kill -s USR2 "$bg"
    finishes 5
    [[ $stderr == *'sent SIGUSR2 to the command'* ]] || fail "expected the signal"
    take_for 500 "$key"
    gives 0 acquire -v --wait 10s "$key"
    [[ $stderr =~ 'acquired the lock in '[0-9]+\.[0-9]' ms' ]] || fail "expected how long it took"
}

# ------------------------------------------------------------------- renewal

@test "the lease is renewed while the command runs, with the same token and fence" {
    start_holding "$key" --ttl 3s --node-timeout 2s 'while [ ! -e stop ]; do sleep 0.2; done'
    first=$(rcli a get "$key")
    fence=$(rcli a hget "{$key}:dlock" fence)
    # It takes longer than the lease.
    for _ in 1 2 3 4; do
        is_renewed "$key"
        gives 75 acquire "$key"
        [ "$(rcli a get "$key")" = "$first" ]
        [ "$(rcli a hget "{$key}:dlock" fence)" = "$fence" ]
    done
    stops 0
    is_free "$key"
}

# renewals: the scripts that the server of that test has run.
renewals() { rcli held info commandstats | sed -n 's/^cmdstat_eval:calls=\([0-9]*\),.*/\1/p'; }

# wakes PID: how often its first thread has gone to sleep.
wakes() { sed -n 's/^voluntary_ctxt_switches:[[:space:]]*//p' "/proc/$1/status"; }

@test "while the lock is held dlock wakes up for renewals only, and there is no other process" {
    redis_start held
    # The count begins and ends while the thread sleeps.
    DLOCK_NODES=$(node held) start_holding "$key" --ttl 3s 'exec sleep 60'
    wait_until '[ "$(renewals)" -ge 3 ]' 30
    before=$(wakes "$bg")
    wait_until '[ "$(renewals)" -ge 6 ]' 30
    # A freezer of processes wakes them, too.
    [ "$(wakes "$bg")" -lt $((before + 3)) ] || fail "woken: before $before, after $(wakes "$bg")"
    [ "$(pgrep -P "$bg")" = "$command_pid" ] || fail "children: $(pgrep -aP "$bg")"
    terminate_command
}
