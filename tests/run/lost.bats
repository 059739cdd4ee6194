#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# A lock that is lost while a command runs: the command is ended before another can be
# granted the lock, and dlock exits 76.

# shellcheck disable=SC2016,SC2030,SC2031,SC2094,SC2154
bats_require_minimum_version 1.5.0
load ../lib/redis

setup_file() { redis_start a; }
setup() {
    test_begin
    # Half of the shortest leases: the tenth that it is by itself is too little on a busy machine.
    export DLOCK_NODE_TIMEOUT=300ms
}

# A command that shows by the time of a file that it is alive, TERM or not.
alive_line='while :; do : >last; sleep 0.01; done'

last_alive_ms() { date -r last +%s%3N; }

# ended_before MS: the command was last alive before that time.
ended_before() {
    [ "$(last_alive_ms)" -le "$1" ] || fail "the command was alive $(($(last_alive_ms) - $1)) ms too long"
}

@test "a deleted lock ends the command, 76" {
    start_holding "$key" --ttl 600ms 'sleep 30'
    rcli a del "$key"
    finish
    exits 76
    complains "$key.*(lost|renewed)"
    has_ended "$command_pid"
    is_free "$key"
}

@test "a lock that another client holds ends the command and is not changed" {
    start_holding "$key" --ttl 600ms 'sleep 30'
    rcli a set "$key" "$OTHER_TOKEN" px 20000
    finish
    exits 76
    complains "$key.*(lost|renewed)"
    [ "$(rcli a get "$key")" = "$OTHER_TOKEN" ]
    [ "$(rcli a pttl "$key")" -gt 10000 ]
}

@test "a lock whose key has another type now is lost, and the key is not changed" {
    start_holding "$key" --ttl 600ms 'sleep 30'
    rcli a del "$key"
    rcli a hset "$key" field value
    finish
    exits 76
    [ "$(rcli a hget "$key" field)" = value ]
}

@test "a lost lock is detected long before the lease would have ended" {
    start_holding "$key" --ttl 3s 'sleep 30'
    rcli a del "$key"
    within 2500 finish
    exits 76
}

@test "the first signal of a lost lock is TERM" {
    start_holding "$key" --ttl 600ms 'trap "echo TERM >got; exit 0" TERM; while :; do sleep 0.02; done'
    rcli a del "$key"
    finish
    [ "$(cat got)" = TERM ]
}

@test "--signal is the first signal of a lost lock" {
    start_holding "$key" --ttl 600ms --signal USR2 'trap "echo USR2 >got; exit 0" USR2; while :; do sleep 0.02; done'
    rcli a del "$key"
    finish
    [ "$(cat got)" = USR2 ]
    exits 76
}

@test "a lost lock is 76, whatever the exit status of the command" {
    local code
    for code in 0 1 75; do
        start_holding "$key" --ttl 600ms "trap 'exit $code' TERM; while :; do sleep 0.02; done"
        rcli a del "$key"
        finish
        exits 76
    done
}

@test "-E does not change the exit status of a lost lock" {
    start_holding "$key" --ttl 600ms -E 9 'sleep 30'
    rcli a del "$key"
    finish
    exits 76
}

@test "a loss that only the release can detect is 76, too" {
    try run "$key" -- sh -c "$REDIS_CLI -s $(node a) del $key"
    exits 76
    [[ $stderr == *lost* ]] || fail "expected a word about the loss"
    try run "$key" -- sh -c "$REDIS_CLI -s $(node a) set $key $OTHER_TOKEN px 20000; exit 3"
    exits 76
    [ "$(rcli a get "$key")" = "$OTHER_TOKEN" ]
}

@test "a command that ignores TERM is killed when its lock is lost" {
    start_holding "$key" --ttl 900ms "trap '' TERM; $alive_line"
    rcli a del "$key"
    finish
    exits 76
    has_ended "$command_pid"
}

@test "a lost lock also ends the processes that the command started" {
    start_holding "$key" --ttl 600ms 'sleep 30 & echo $! >child; sleep 30'
    wait_until '[ -s child ]'
    rcli a del "$key"
    finish
    exits 76
    has_ended "$(cat child)"
}

@test "--on-lost warn lets the command continue, and the exit status is 76" {
    start_holding "$key" --ttl 600ms --on-lost warn 'while [ ! -e stop ]; do sleep 0.1; done; echo done'
    rcli a del "$key"
    wait_until "[ -s bg.$bg_count.err ]"
    sleep 0.8
    alive "$command_pid"
    touch stop
    finish
    exits 76
    prints 'done'
    complains "$key.*(lost|renewed)"
}

@test "--on-lost accepts kill and warn only" {
    try run --on-lost kill "$key" -- true
    succeeds
    try run --on-lost ignore "$key" -- true
    fails 64 ignore
}

# ------------------------------------------------------------ servers that go away

@test "a server that is killed: the command ends before the lease does" {
    local from
    redis_start mortal
    DLOCK_NODES=$(node mortal) start_holding "$key" --ttl 1500ms "$alive_line"
    redis_stop mortal
    from=$(now_ms)
    finish
    exits 76
    complains "$key.*(lost|renewed)"
    ended_before $((from + 1500))
}

@test "a server that is frozen: the command ends before the lease does" {
    local from
    redis_start frozen
    DLOCK_NODES=$(node frozen) start_holding "$key" --ttl 1500ms "$alive_line"
    redis_freeze frozen
    from=$(now_ms)
    finish
    exits 76
    complains "$key.*(lost|renewed)"
    ended_before $((from + 1500))
    has_ended "$command_pid"
}

@test "a frozen server and a command that ignores TERM: killed before the lease ends" {
    local from
    redis_start frozen
    DLOCK_NODES=$(node frozen) start_holding "$key" --ttl 1500ms "trap '' TERM; $alive_line"
    redis_freeze frozen
    from=$(now_ms)
    finish
    exits 76
    ended_before $((from + 1500))
    has_ended "$command_pid"
}

@test "--on-lost warn lets the command continue though the server has ended" {
    redis_start mortal
    DLOCK_NODES=$(node mortal) start_holding "$key" --ttl 600ms --on-lost warn \
        'while [ ! -e stop ]; do sleep 0.1; done'
    redis_stop mortal
    wait_until "[ -s bg.$bg_count.err ]"
    alive "$command_pid"
    touch stop
    finish
    exits 76
}

@test "the end of dlock does not wait for a frozen server longer than the lease" {
    redis_start frozen
    DLOCK_NODES=$(node frozen) start_holding "$key" --ttl 1s 'sleep 30'
    redis_freeze frozen
    within 6000 finish
    exits 76
}

@test "a server that was frozen for a moment: the renewal is retried and the command continues" {
    redis_start frozen
    DLOCK_NODES=$(node frozen) start_holding "$key" --ttl 3s --node-timeout 100ms \
        'while [ ! -e stop ]; do sleep 0.1; done; exit 5'
    sleep 0.8
    redis_freeze frozen
    sleep 0.5
    redis_thaw frozen
    sleep 2.5
    touch stop
    finish
    exits 5
    is_free "$key" frozen
}

# The first renewal is due at 1.8 s, the first signal at 4.9 s.
@test "a server that is frozen for half of the lease: the command gets no signal" {
    local from
    redis_start frozen
    DLOCK_NODES=$(node frozen) DLOCK_NODE_TIMEOUT='' start_holding "$key" --ttl 6s \
        'trap "echo TERM >got" TERM; while [ ! -e stop ]; do sleep 0.1; done; exit 5'
    from=$(now_ms)
    sleep 1.2
    redis_freeze frozen
    sleep 3
    redis_thaw frozen
    took_at_most 4700 "$from"
    wait_until "[ \"\$(rcli frozen pttl $key)\" -gt 3000 ]"
    touch stop
    finish
    exits 5
    [ ! -e got ]
    is_free "$key" frozen
}

@test "a server that is down for half of the lease and keeps its data: the command gets no signal" {
    local rounds from
    redis_start mortal --appendonly yes --appendfsync always
    DLOCK_NODES=$(node mortal) DLOCK_NODE_TIMEOUT='' start_holding "$key" -v --ttl 6s \
        'trap "echo TERM >got" TERM; while [ ! -e stop ]; do sleep 0.1; done; exit 5'
    from=$(now_ms)
    sleep 1.2
    end_process "$(server_pid mortal)"
    sleep 2.8
    redis_start mortal --appendonly yes --appendfsync always
    took_at_most 4600 "$from"
    wait_until "[ \"\$(rcli mortal pttl $key)\" -gt 3000 ]"
    touch stop
    finish
    exits 5
    [ ! -e got ]
    is_free "$key" mortal
    # Refused at once, each time: it was tried again soon, and not in a busy loop.
    rounds=$(grep -c 'renewing the lease' <<<"$stderr")
    [ "$rounds" -gt 20 ] && [ "$rounds" -lt 1000 ] || fail "$rounds rounds"
}

@test "connections that the server closes are opened again, the command continues" {
    start_holding "$key" --ttl 600ms 'while [ ! -e stop ]; do sleep 0.1; done; exit 5'
    for _ in {1..8}; do
        rcli a client kill type normal skipme yes >/dev/null
        sleep 0.2
    done
    touch stop
    finish
    exits 5
    is_free "$key"
}

@test "a server that comes back without the lock: the lock is lost" {
    redis_start mortal
    DLOCK_NODES=$(node mortal) start_holding "$key" --ttl 1500ms "$alive_line"
    redis_stop mortal
    redis_start mortal
    finish
    exits 76
    is_free "$key" mortal
}

@test "a renewal whose reply is lost is tried again" {
    redis_start behind
    proxy_start lossy behind drop@2
    DLOCK_NODES=$(proxy_node lossy) try run --ttl 1500ms "$key" -- sleep 2
    succeeds
}

@test "replies that always come late, but in time, lose no lock" {
    redis_start behind
    proxy_start late behind delay=0.1
    DLOCK_NODES=$(proxy_node late) try run --ttl 1500ms --node-timeout 600ms "$key" -- sleep 2
    succeeds
    is_free "$key" behind
}

@test "replies that come after the node timeout end the command before the lease ends" {
    local from
    redis_start behind
    proxy_start late behind
    DLOCK_NODES=$(proxy_node late) start_holding "$key" --ttl 1500ms --node-timeout 100ms "$alive_line"
    proxy_rules late delay=5
    from=$(now_ms)
    finish
    exits 76
    ended_before $((from + 1500))
}

# ------------------------------------------------------------ dlock is stopped

# How soon the command ends is measured by bench/lost and tests/fault; here another process may come in between.

@test "a stopped dlock continues when its lease ends, and ends the command and its group" {
    start_holding "$key" --ttl 1500ms 'trap "" TERM; sleep 30 & echo $! >child; while :; do sleep 0.02; done'
    wait_until '[ -s child ]'
    kill -STOP "$bg"
    finish
    exits 76
    complains "$key.*renewed"
    has_ended "$command_pid"
    has_ended "$(cat child)"
}

@test "the signal that continues dlock is not passed on to the command" {
    start_holding "$key" -v --ttl 1500ms 'trap "echo CONT >got" CONT; trap "" TERM; while :; do sleep 0.02; done'
    kill -STOP "$bg"
    finish
    exits 76
    [[ $stderr != *"passing signal"* ]] || fail "expected no signal to be passed on"
    [ ! -e got ]
}

@test "a stopped dlock does not change the lock of the next holder" {
    start_holding "$key" --ttl 600ms 'sleep 30'
    # Not by a stop alone, which dlock ends: it has lost the lock already when it comes back.
    kill -STOP "$bg"
    rcli a del "$key"
    take "$key" --ttl 20s
    finish
    exits 76
    has_ended "$command_pid"
    [ "$(rcli a get "$key")" = "$token" ]
}

@test "a stopped dlock that ignores or blocks SIGCONT continues, too" {
    local how
    for how in 'signal.signal(signal.SIGCONT, signal.SIG_IGN)' \
        'signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCONT])'; do
        rm -f begun
        "$PYTHON" -c "import os, signal, sys; $how; os.execvp(sys.argv[1], sys.argv[1:])" \
            "$DLOCK" run --ttl 1500ms "$key" -- sh -c 'echo $$ >begun.new; mv begun.new begun; exec sleep 30' \
            </dev/null 2>err 3>&- 4>&- &
        bg=$!
        wait_until '[ -f begun ]'
        kill -STOP "$bg"
        wait_until "! alive $bg"
        status=0
        wait "$bg" || status=$?
        exits 76
        has_ended "$(cat begun)"
    done
}

@test "command and dlock are stopped: the command never continues" {
    start_holding "$key" --ttl 1500ms 'trap "echo TERM >got" TERM; while :; do sleep 0.02; done'
    # shellcheck disable=SC2046
    kill -STOP $(leftovers)
    finish
    exits 76
    has_ended "$command_pid"
    [ ! -e got ]
}

@test "with --foreground a stopped dlock ends its command, too" {
    start_holding "$key" --ttl 1500ms --foreground 'exec sleep 30'
    kill -STOP "$bg"
    finish
    exits 76
    has_ended "$command_pid"
}

@test "a dlock that is stopped after some renewals, repeatedly" {
    start_holding "$key" --ttl 1500ms 'exec sleep 30'
    sleep 1.2
    kill -STOP "$bg"
    sleep 0.3
    kill -CONT "$bg"
    kill -STOP "$bg"
    finish
    exits 76
    has_ended "$command_pid"
}

@test "as the first process of a container a dlock that is stopped from outside continues, too" {
    unshare --pid --fork --mount-proc true 2>err || must_run "no process namespaces here: $(cat err)"
    unshare --pid --fork --mount-proc "$DLOCK" run --ttl 1500ms "$key" -- \
        sh -c 'trap "" TERM; : >begun; while :; do : >last; sleep 0.02; done' </dev/null 2>err 3>&- 4>&- &
    bg=$!
    wait_until '[ -e begun ]'
    kill -STOP "$(pgrep -P "$bg")"
    wait_until "! alive $bg"
    status=0
    wait "$bg" || status=$?
    exits 76
    grep -q renewed err
    wait_until '[ -z "$(leftovers)" ]'
}

# "$PYTHON" -c "$trace" COMMAND...: run it, stop its leader by ptrace(2) once the file begun is there, tell its status.
trace='
import ctypes, os, subprocess, sys, time
libc = ctypes.CDLL(None, use_errno=True)
def ptrace(request, pid):
    if libc.ptrace(ctypes.c_long(request), ctypes.c_long(pid), None, None) != 0:
        print(os.strerror(ctypes.get_errno()))
        sys.exit(99)
dlock = subprocess.Popen(sys.argv[1:])
while not os.path.exists("begun"):
    time.sleep(0.01)
tracees = [int(task) for task in os.listdir("/proc/%d/task" % dlock.pid)]
for task in tracees:
    ptrace(0x4206, task)  # PTRACE_SEIZE
    ptrace(0x4207, task)  # PTRACE_INTERRUPT
while True:
    _, status = os.waitpid(dlock.pid, 0)
    if not os.WIFSTOPPED(status):
        break
print(os.waitstatus_to_exitcode(status))'

@test "a dlock that a debugger holds is killed when its lease ends, and the command with it" {
    attempt timeout -k 2 30 "$PYTHON" -c "$trace" "$DLOCK" run --ttl 1500ms "$key" -- \
        sh -c 'echo $$ >begun.new; mv begun.new begun; while :; do : >last; sleep 0.01; done'
    [ "$status" -ne 99 ] || must_run "ptrace is not allowed here: $output"
    exits 0
    [ "$output" = -9 ] || fail "expected SIGKILL"
    wait_until "! alive $(cat begun)"
}

@test "no timer is left on this host: the command is not started" {
    attempt bash -c 'ulimit -i 0; exec "$@"' - "$DLOCK" run "$key" -- touch begun
    fails 71 'timer'
    [ ! -e begun ]
    is_free "$key"
}

@test "a dlock that is stopped for a moment keeps its lock" {
    start_holding "$key" --ttl 6s 'while [ ! -e stop ]; do sleep 0.1; done; exit 5'
    kill -STOP "$bg"
    sleep 0.3
    kill -CONT "$bg"
    touch stop
    finish
    exits 5
    is_free "$key"
}

@test "--on-lost warn does not continue a stopped dlock or end its command" {
    start_holding "$key" --ttl 300ms --on-lost warn 'while [ ! -e stop ]; do sleep 0.1; done'
    kill -STOP "$bg"
    wait_until "free '$key'"
    sleep 0.2
    alive "$command_pid"
    kill -CONT "$bg"
    wait_until "[ -s bg.$bg_count.err ]"
    touch stop
    finish
    exits 76
}

@test "a command that is stopped is killed when its lease ends" {
    redis_start frozen
    DLOCK_NODES=$(node frozen) start_holding "$key" --ttl 1500ms 'exec sleep 30'
    kill -STOP "$command_pid"
    redis_freeze frozen
    finish
    exits 76
    has_ended "$command_pid"
}

@test "a lost lock ends a nested dlock and its command" {
    start_holding "$key" --ttl 1500ms "trap '' TERM
        $DLOCK run $key-2 -- sh -c 'trap \"\" TERM; echo \$\$ >inner.new; mv inner.new inner; while :; do sleep 0.02; done'"
    wait_until '[ -s inner ]'
    rcli a del "$key"
    finish
    exits 76
    wait_until '[ -z "$(leftovers)" ]'
}

@test "a command is not started if its lease has nearly ended" {
    redis_start behind
    proxy_start late behind delay=0.9
    DLOCK_NODES=$(proxy_node late) try run --ttl 1s --node-timeout 5s --report report "$key" -- touch begun
    fails 69 late
    [ ! -e begun ]
    jq -e '.outcome == "no-quorum" and .child == null' report
    wait_until "free '$key' behind"
}
