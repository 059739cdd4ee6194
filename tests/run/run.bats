#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# dlock run: holds a lock while a command runs.  How a lost lock ends the command is in
# lost.bats, what signals and descriptors the command sees in process.bats.

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
        [ -z "$stderr" ] || fail "expected nothing on standard error"
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

@test "a command that is not found: 127, it is named, and the lock is free" {
    try run "$key" -- no-such-command-anywhere
    fails 127 no-such-command-anywhere
    is_free "$key"
    try run "$key" -- ./no-such-file
    fails 127 no-such-file
    is_free "$key"
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

@test "a held lock: 75, and the command is not started" {
    take "$key"
    try run "$key" -- touch begun
    fails 75 "$key.*held"
    [ ! -e begun ]
    [ "$(rcli a get "$key")" = "$token" ]
}

@test "-E sets the exit status for a held lock, also to 0" {
    take "$key"
    try run -E 33 "$key" -- touch begun
    fails 33
    try run -E 0 "$key" -- touch begun
    fails 0
    [ ! -e begun ]
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

@test "an empty command is not found" {
    try run "$key" -- ''
    fails 127
    is_free "$key"
}

# ------------------------------------------------------------ while it runs

@test "the lock is held while the command runs" {
    try run "$key" -- "$REDIS_CLI" -s "$(node a)" get "$key"
    succeeds
    [[ $output =~ ^[A-Za-z0-9_-]{22}$ ]] || fail "expected a token"
    is_free "$key"
}

@test "the lock has a TTL while the command runs" {
    try run --ttl 20s "$key" -- "$REDIS_CLI" -s "$(node a)" pttl "$key"
    succeeds
    [ "$output" -gt 15000 ]
    [ "$output" -le 20000 ]
}

@test "a second contender is refused while the command runs" {
    start_holding "$key" 'while [ ! -e stop ]; do sleep 0.1; done'
    try run "$key" -- touch second
    fails 75 "$key.*held"
    try acquire "$key"
    fails 75
    [ ! -e second ]
    touch stop
    finish
    exits 0
    try run "$key" -- touch second
    succeeds
    [ -e second ]
}

@test "the message about a held lock names the holder" {
    start_holding "$key" --label 'nightly backup' 'sleep 30'
    try run "$key" -- true
    fails 75 "$(id -un)@$(uname -n):$bg"
    [[ $stderr == *"nightly backup"* ]] || fail "expected the label"
}

@test "the environment of the command describes the lock" {
    try run --ttl 20s "$key" -- sh -c '
        echo "$DLOCK_KEY"; echo "$DLOCK_TOKEN"; echo "$DLOCK_FENCE"; echo "$DLOCK_TTL_MS"
        '"$REDIS_CLI -s $(node a) get $key; $REDIS_CLI -s $(node a) hget {$key}:dlock fence"
    succeeds
    [ "${lines[0]}" = "$key" ]
    [ "${lines[1]}" = "${lines[4]}" ]
    [ "${lines[2]}" = "${lines[5]}" ]
    [ "${lines[3]}" = 20000 ]
}

@test "DLOCK_KEY is the key as it was given, without the prefix" {
    try run --prefix app: "$key" -- sh -c 'echo "$DLOCK_KEY"; '"$REDIS_CLI -s $(node a) exists app:$key"
    succeeds
    prints "$key"$'\n'1
}

@test "DLOCK_KEY is the key byte by byte" {
    try run $'a b\n\xff"\'' -- sh -c 'printf %s "$DLOCK_KEY" | od -An -tx1'
    succeeds
    prints ' 61 20 62 0a ff 22 27'
}

@test "the rest of the environment is passed through" {
    FOO='b a r' try run "$key" -- sh -c 'echo "$FOO"; echo "$DLOCK_NODES"'
    succeeds
    prints "b a r"$'\n'"$(node a)"
}

@test "an older lock's variables do not reach the command" {
    DLOCK_FENCE=1 DLOCK_TTL_MS=1 try run "$key" -- sh -c 'env | grep -c "^DLOCK_FENCE="; echo "$DLOCK_FENCE $DLOCK_TTL_MS"'
    succeeds
    [ "${lines[0]}" = 1 ]
    [[ ${lines[1]} =~ ^[0-9]{2,}\ 30000$ ]]
}

@test "arguments reach the command as they are" {
    try run "$key" -- printf '<%s>' 'a b' '' '*' "q'u\"o" --ttl 5s -- -n $'new\nline'
    succeeds
    prints "<a b><><*><q'u\"o><--ttl><5s><--><-n><new"$'\n'"line>"
}

@test "options after the command belong to the command" {
    try run "$key" printf '<%s>' --ttl nonsense -n --help
    succeeds
    prints '<--ttl><nonsense><-n><--help>'
}

@test "options between the key and the command belong to dlock" {
    try run "$key" --ttl 20s -- sh -c 'echo "$DLOCK_TTL_MS"'
    succeeds
    prints 20000
    try run "$key" --ttl=20s sh -c 'echo "$DLOCK_TTL_MS"'
    succeeds
    prints 20000
}

@test "the command may be given without dashes before it" {
    try run "$key" echo hello
    succeeds
    prints hello
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
}

@test "-c accepts one string only" {
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

@test "blanks belong to the base name of a command, but separate the words of a shell line" {
    mkdir 'my prog'
    printf '%s\n' "$REDIS_CLI -s $(node a) hget {$key}:dlock label" | tee 'my prog/job' 'my prog/nightly job' >/dev/null
    chmod +x 'my prog/'*
    try run "$key" -- 'my prog/job'
    prints job
    try run "$key" -- "$PWD/my prog/nightly job"
    prints 'nightly job'
    try run -c "$key" $' \t\n/bin/sh "my prog/job"'
    prints sh
}

# ------------------------------------------------------- what is said, and not

@test "run prints nothing itself if there is no error" {
    try run "$key" -- true
    succeeds
    prints ''
}

@test "-q suppresses the message about a held lock, not the exit status" {
    take "$key"
    try run -q "$key" -- true
    exits 75
    [ -z "$output$stderr" ] || fail "expected no word"
}

@test "-q does not suppress errors" {
    try run -q --node "$PWD/nobody" "$key" -- true
    fails 69
    try run -q "$key" -- no-such-command-anywhere
    fails 127
}

@test "-v prints the steps to standard error and nothing to standard output" {
    try run -v "$key" -- echo hello
    exits 0
    prints hello
    [ "${#stderr_lines[@]}" -ge 2 ] || fail "expected the steps"
    [[ $stderr == *"$(node a)"* ]] || fail "expected the node"
}

@test "-v prints each signal for the command, and the time that it took to acquire the lock" {
    try run -v --max-run 2s -k 200ms "$key" -- sh -c 'trap "" TERM; while :; do sleep 0.02; done'
    exits 137
    [[ $stderr =~ 'acquired the lock in '[0-9]+\.[0-9]' ms' ]] || fail "expected how long it took"
    [[ $stderr == *'sent SIGTERM to the command'*'sent SIGKILL to the command'* ]] || fail "expected the signals"
    start_holding "$key" -v 'trap "exit 5" USR2; while :; do sleep 0.02; done'
    kill -s USR2 "$bg"
    finish
    exits 5
    [[ $stderr == *'sent SIGUSR2 to the command'* ]] || fail "expected the signal"
    take_for 500 "$key"
    try acquire -v --wait 10s "$key"
    exits 0
    [[ $stderr =~ 'acquired the lock in '[0-9]+\.[0-9]' ms' ]] || fail "expected how long it took"
}

@test "-v never shows the token" {
    try run -v "$key" -- sh -c 'echo "$DLOCK_TOKEN"'
    exits 0
    [[ $stderr != *"$output"* ]] || fail "the token is shown"
}

# ------------------------------------------------------------------- renewal

@test "the lease is renewed while the command runs" {
    start_holding "$key" --ttl 3s --node-timeout 2s 'while [ ! -e stop ]; do sleep 0.1; done'
    local first from
    first=$(rcli a get "$key")
    from=$(now_ms)
    while [ $(($(now_ms) - from)) -lt 3500 ]; do
        try acquire "$key"
        exits 75
        [ "$(rcli a get "$key")" = "$first" ]
        short_sleep 0.1
    done
    touch stop
    finish
    exits 0
    is_free "$key"
}

@test "the fence stays the same while the lease is renewed" {
    start_holding "$key" --ttl 3s --node-timeout 2s 'while [ ! -e stop ]; do sleep 0.1; done'
    local fence
    fence=$(rcli a hget "{$key}:dlock" fence)
    for _ in 1 2; do
        is_renewed "$key"
        [ "$(rcli a hget "{$key}:dlock" fence)" = "$fence" ]
    done
    touch stop
    finish
    exits 0
}

@test "the lease is renewed at about a third of its length, not more often" {
    redis_start counted
    proxy_start through counted
    DLOCK_NODES=$(proxy_node through) try run --ttl 3s --node-timeout 2s "$key" -- sleep 4
    succeeds
    local calls
    calls=$(proxy_log through | grep -c EVAL)
    # acquire, four renewals, release; on a machine that stalls there may be fewer, or the command takes longer
    [ "$calls" -ge 4 ] && [ "$calls" -le 8 ] || fail "$calls calls"
}

# renewals: the scripts that the server of that test has run.
renewals() { rcli held info commandstats | sed -n 's/^cmdstat_eval:calls=\([0-9]*\),.*/\1/p'; }

# wakes PID: how often its first thread has gone to sleep.
wakes() { sed -n 's/^voluntary_ctxt_switches:[[:space:]]*//p' "/proc/$1/status"; }

@test "while the lock is held dlock wakes up for renewals only, and there is no other process" {
    redis_start held
    # What is counted begins and ends in the midst of sleep.
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

@test "nothing renews the lock after it was released" {
    try run --ttl 3s --node-timeout 2s "$key" -- true
    succeeds
    take "$key" --ttl 3s
    wait_until "free '$key'" 6
}

# -------------------------------------------------------------- nested

@test "a nested run of another key acquires that lock" {
    try run "$key" -- "$DLOCK" run "$key-2" -- sh -c "echo \$DLOCK_KEY; $REDIS_CLI -s $(node a) exists $key $key-2"
    succeeds
    prints "$key-2"$'\n'2
    is_free "$key"
    is_free "$key-2"
}

@test "the environment alone does not suffice: a nested run of a lock that was lost is refused" {
    take "$key"
    DLOCK_KEY=$key DLOCK_TOKEN=$OTHER_TOKEN DLOCK_FENCE=1 try run "$key" -- touch begun
    exits 75
    [ ! -e begun ]
    [ "$(rcli a get "$key")" = "$token" ]
}

# ------------------------------------------------------------------- min-hold

@test "--min-hold keeps the lock after the command has ended" {
    local start
    start=$(now_ms)
    try run --min-hold 3s --ttl 20s "$key" -- true
    succeeds
    [ "$(rcli a pttl "$key")" -le 3000 ]
    try run "$key" -- true
    fails 75
    wait_until "free '$key'" 5
    [ $(($(now_ms) - start)) -ge 2900 ]
}

@test "--min-hold may be longer than the lease" {
    try run --min-hold 20s --ttl 3s "$key" -- true
    succeeds
    [ "$(rcli a pttl "$key")" -gt 15000 ]
    [ "$(rcli a pttl "$key")" -le 20000 ]
}

@test "the lock is free at once if --min-hold has passed already" {
    try run --min-hold 100ms --ttl 20s "$key" -- sleep 0.3
    succeeds
    is_free "$key"
}

@test "--min-hold counts from the grant, not from the request" {
    proxy_start slow a delay=2
    try run -v --min-hold 4s --node-timeout 10s --node "$(proxy_node slow)" "$key" -- true
    exits 0
    [[ $stderr =~ "releasing the lock in "([0-9]+)" ms" ]]
    # From the request it would be less than 2 s.
    [ "${BASH_REMATCH[1]}" -gt 2000 ]
}

@test "--min-hold keeps the command's exit status" {
    try run --min-hold 100ms "$key" -- sh -c 'exit 5'
    exits 5
}

@test "a lock kept by --min-hold is not renewed or released by the token that had it" {
    token=$(dlock run --min-hold 20s "$key" -- sh -c 'echo "$DLOCK_TOKEN"')
    try renew --ttl 60s "$key" "$token"
    fails 1
    [ "$(rcli a pttl "$key")" -le 20000 ]
}

# ------------------------------------------------------------------- once-per

@test "--once-per keeps the lock until that time after its start, if the command succeeds" {
    try run --once-per 20s --ttl 3s --node-timeout 2s "$key" -- sleep 1
    succeeds
    [ "$(rcli a pttl "$key")" -gt 10000 ]
    [ "$(rcli a pttl "$key")" -le 19000 ]
    try run -E 0 "$key" -- touch ran
    exits 0
    [ ! -e ran ]
}

@test "--once-per releases the lock at once if the command fails, so that the next try runs it" {
    try run --once-per 1h "$key" -- sh -c 'exit 3'
    exits 3
    is_free "$key"
    try run --once-per 1h "$key" -- sh -c 'kill -TERM $$'
    exits 143
    is_free "$key"
    try run --once-per 1h --max-run 200ms "$key" -- sh -c 'trap "exit 0" TERM; while :; do sleep 0.05; done'
    exits 124
    is_free "$key"
    try run --once-per 1h "$key" -- true
    succeeds
    is_held "$key"
}

@test "--once-per of a command that fails leaves --min-hold as it is" {
    try run --min-hold 10s --once-per 1h "$key" -- false
    exits 1
    [ "$(rcli a pttl "$key")" -gt 3000 ]
    [ "$(rcli a pttl "$key")" -le 10000 ]
    dlock break --force "$key" >/dev/null
    try run --min-hold 20s --once-per 5s "$key" -- true
    succeeds
    [ "$(rcli a pttl "$key")" -gt 10000 ]
}

# -------------------------------------------------------------------- max-run

@test "--max-run ends the command and exits 124" {
    within 5000 try run --max-run 300ms "$key" -- sleep 30
    at_least 300
    fails 124
    is_free "$key"
}

@test "--max-run exits 124 though the command exits 0 at the signal" {
    try run --max-run 1s "$key" -- sh -c 'trap "exit 0" TERM; while :; do sleep 0.02; done'
    exits 124
    is_free "$key"
}

@test "--max-run kills a command that ignores the first signal" {
    within 8000 try run --max-run 2s -k 300ms "$key" -- sh -c 'trap "" TERM; while :; do sleep 0.02; done'
    at_least 2300
    exits 137
    is_free "$key"
}

@test "--max-run exits like timeout" {
    local expected line
    for line in 'exec sleep 30' 'trap "exit 3" TERM; while :; do sleep 0.02; done' \
        'trap "" TERM; while :; do sleep 0.02; done' 'kill -KILL $$' 'exit 7'; do
        expected=0
        start run --max-run 2s -k 300ms "$key" -- sh -c "$line"
        timeout -k 0.3 2 sh -c "$line" 2>/dev/null || expected=$?
        finish
        exits "$expected"
    done
    try run --max-run 300ms --signal KILL "$key" -- sleep 30
    exits 137
}

@test "--max-run with -k 0 never kills, as with timeout" {
    try run --max-run 2s -k 0 "$key" -- sh -c 'trap "sleep 0.3; echo ended; exit 5" TERM; while :; do sleep 0.02; done'
    exits 124
    prints ended
    is_free "$key"
}

@test "-k 0 kills the command of a lost lock" {
    stalls_note
    within 9000 try run --max-run 2s -k 0 --ttl 3s --node-timeout 2s "$key" -- sh -c "
        trap '$REDIS_CLI -s $(node a) del $key >gone' TERM; while :; do sleep 0.02; done"
    exits_76_or_killed
    [ -e gone ]
    wait_until '[ -z "$(leftovers)" ]'
}

@test "--max-run also ends the processes that the command started" {
    try run --max-run 300ms "$key" -- sh -c 'sleep 30 & sleep 30'
    exits 124
    wait_until '[ -z "$(leftovers)" ]'
}

@test "--max-run does not affect a command that ends earlier" {
    try run --max-run 20s "$key" -- sh -c 'exit 3'
    exits 3
}

@test "--max-run counts from the start of the command, without the wait" {
    take "$key" --ttl 3s
    try run --wait 10s --max-run 2500ms "$key" -- sleep 0.1
    succeeds
}

@test "--signal is the first signal" {
    try run --max-run 2s --signal INT "$key" -- sh -c '
        trap "echo got INT; exit" INT; trap "echo got TERM; exit" TERM; while :; do sleep 0.02; done'
    exits 124
    prints "got INT"
    local name runs=()
    for name in SIGUSR1 usr1 10; do
        start run --max-run 2s --signal "$name" "$key-$name" -- sh -c '
            trap "echo got USR1; exit" USR1; while :; do sleep 0.02; done'
        runs+=("$bg")
    done
    for bg in "${runs[@]}"; do
        finish "$bg"
        exits 124
        prints "got USR1"
    done
}

@test "a signal that does not exist is a usage error that names it" {
    local name
    for name in NOSUCH '' SIG 999 -1 'TERM INT' 0; do
        try run --signal "$name" "$key" -- true
        fails 64
        [[ $stderr == *"$name"* ]] || fail "expected the value $name"
    done
}

# ------------------------------------------------------------ release at the end

@test "a release that fails causes a warning, the exit status is that of the command" {
    redis_start mortal
    DLOCK_NODES=$(node mortal) try run "$key" -- sh -c "
        $REDIS_CLI -s $(node mortal) shutdown nosave; exit 3"
    exits 3
    complains
    redis_stop mortal
    redis_start mortal
    DLOCK_NODES=$(node mortal) try run "$key" -- sh -c "
        $REDIS_CLI -s $(node mortal) shutdown nosave; exit 0"
    exits 0
    complains
}

@test "the lock is free for others as soon as run has ended" {
    for _ in {1..10}; do
        try run "$key" -- true
        succeeds
    done
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

# -------------------------------------------------------------------- report

# reported FILTER: jq's answer about the report is true.
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
    take_for 2000 "$key"
    try run --report report --wait 10s "$key" -- true
    exits 0
    reported '.outcome == "ran" and .waited_ms > 50'
}

@test "--report tells that there was no quorum" {
    try run --report report --node "$PWD/nobody" "$key" -- true
    exits 69
    reported '.outcome == "no-quorum"'
}

@test "--report tells that the lock was lost" {
    try run --report report --ttl 3s --node-timeout 2s "$key" -- sh -c "$REDIS_CLI -s $(node a) del $key >gone; sleep 30"
    exits 76
    reported '.outcome == "lost" and (.child.signal|tostring|test("^(15|TERM|SIGTERM)$"))'
}

@test "--report tells that --max-run ended the command" {
    try run --report report --max-run 200ms "$key" -- sleep 30
    exits 124
    reported '.outcome == "max-run" and .child.signal == 15'
    try run --report report --max-run 2s -k 100ms "$key" -- sh -c 'trap "" TERM; while :; do sleep 0.02; done'
    exits 137
    reported '.outcome == "max-run" and .child.signal == 9'
}

@test "--report tells that the command could not be executed" {
    try run --report report "$key" -- no-such-command-anywhere
    exits 127
    reported '.outcome == "exec-failed"'
}

@test "--report to a file that cannot be written causes a warning" {
    try run --report no-such-folder/report "$key" -- true
    complains no-such-folder
    is_free "$key"
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
    try run --report "$(printf 'r%.0s' {1..5000})" "$key" -- touch begun
    fails 71 'too long'
    [ ! -e begun ]
}

@test "--report tells that the command could be found, but not executed" {
    echo 'echo no' >plain-file
    try run --report report "$key" -- ./plain-file
    exits 126
    reported '.outcome == "exec-failed" and .child == null'
}

@test "--max-run 0 is no limit, as with timeout" {
    try run --max-run 0 "$key" -- sh -c 'sleep 0.2; exit 3'
    exits 3
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
