#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# A lock that is lost while a command runs: the command is ended before another can be
# granted the lock, and dlock exits 76.

# shellcheck disable=SC2016,SC2030,SC2031,SC2094,SC2154
bats_require_minimum_version 1.5.0
load lib/redis

setup_file() { redis_start a; }
teardown_file() { redis_stop_all; }
setup() {
    test_begin
    # Half of the shortest leases: the tenth that it is by itself is too little on a busy machine.
    export DLOCK_NODE_TIMEOUT=300ms
}
teardown() { test_end; }

# A command that shows by the time of a file that it is alive, TERM or not.
alive_line='while :; do : >last; sleep 0.01; done'

last_alive_ms() { date -r last +%s%3N; }

# ended_before MS: the command was last alive before that time.
ended_before() {
    [ "$(last_alive_ms)" -le "$1" ] || tell "the command was alive $(($(last_alive_ms) - $1)) ms too long"
}

@test "a lock that somebody deleted ends the command and gives 76" {
    start_holding "$key" --ttl 600ms 'sleep 30'
    rcli a del "$key"
    finish
    exits 76
    complains "$key.*(lost|renewed)"
    has_ended "$command_pid"
    is_free "$key"
}

@test "a lock that another holds now ends the command and is left alone" {
    start_holding "$key" --ttl 600ms 'sleep 30'
    rcli a set "$key" "$OTHER_TOKEN" px 20000
    finish
    exits 76
    complains "$key.*(lost|renewed)"
    [ "$(rcli a get "$key")" = "$OTHER_TOKEN" ]
    [ "$(rcli a pttl "$key")" -gt 10000 ]
}

@test "a lock whose key became one of another type is lost, and the key is left alone" {
    start_holding "$key" --ttl 600ms 'sleep 30'
    rcli a del "$key"
    rcli a hset "$key" field value
    finish
    exits 76
    [ "$(rcli a hget "$key" field)" = value ]
}

@test "a lost lock is noticed long before the lease would have ended" {
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

@test "a lost lock is 76 whatever the command's own code" {
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

@test "a loss that only the release can notice gives 76, too" {
    try run "$key" -- sh -c "$REDIS_CLI -s $(node a) del $key"
    exits 76
    [[ $stderr == *lost* ]] || tell "expected a word about the loss"
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

@test "a lost lock ends what the command started, too" {
    start_holding "$key" --ttl 600ms 'sleep 30 & echo $! >child; sleep 30'
    wait_until '[ -s child ]'
    rcli a del "$key"
    finish
    exits 76
    has_ended "$(cat child)"
}

@test "--on-lost warn lets the command go on, and the exit status is 76 all the same" {
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

@test "--on-lost takes kill and warn, nothing else" {
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

@test "--on-lost warn goes on though the server is gone" {
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

@test "a server that was frozen for a moment: the renewal is tried again and the command lives" {
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
    [ "$rounds" -gt 20 ] && [ "$rounds" -lt 1000 ] || tell "$rounds rounds"
}

@test "connections that the server closes are opened again, the command lives" {
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

@test "a dlock that overslept its lease ends the command and leaves the next one's lock alone" {
    start_holding "$key" --ttl 600ms 'sleep 30'
    kill -STOP "$bg"
    wait_until "free '$key'"
    take "$key" --ttl 20s
    kill -CONT "$bg"
    finish
    exits 76
    has_ended "$command_pid"
    [ "$(rcli a get "$key")" = "$token" ]
}

# ------------------------------------------------------------ dlock is stopped

# ends_while_stopped: all that the command is ends, though dlock can't do it.  How soon is measured by
# bench/lost and tests/fault; here another process may come in between.
ends_while_stopped() {
    wait_until "! alive $command_pid"
    [ ! -s child ] || wait_until "! alive $(cat child)"
    [ "$(process_state "$bg")" = T ]
}

@test "a dlock that is stopped: its lease ends command and all" {
    start_holding "$key" --ttl 1500ms 'trap "" TERM; sleep 30 & echo $! >child; while :; do sleep 0.02; done'
    wait_until '[ -s child ]'
    kill -STOP "$bg"
    ends_while_stopped
    kill -CONT "$bg"
    finish
    exits 76
    complains "$key.*renewed"
}

@test "command and dlock are stopped: the command never runs again" {
    start_holding "$key" --ttl 1500ms "$alive_line"
    kill -STOP "$command_pid" "$bg"
    ends_while_stopped
    kill -CONT "$bg"
    finish
    exits 76
}

@test "with --foreground a dlock that is stopped ends its command, too" {
    start_holding "$key" --ttl 1500ms --foreground 'exec sleep 30'
    kill -STOP "$bg"
    ends_while_stopped
    kill -CONT "$bg"
    finish
    exits 76
}

@test "a dlock that is stopped for a moment loses nothing" {
    start_holding "$key" --ttl 6s 'while [ ! -e stop ]; do sleep 0.1; done; exit 5'
    kill -STOP "$bg"
    sleep 0.3
    kill -CONT "$bg"
    touch stop
    finish
    exits 5
    is_free "$key"
}

@test "--on-lost warn leaves the command of a stopped dlock alone" {
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

@test "dlock, guardian and command stopped together: the first that happens is the end of the command" {
    local pids
    start_holding "$key" --ttl 1500ms 'trap "echo TERM >got" TERM; while :; do sleep 0.02; done'
    pids=$(leftovers)
    # shellcheck disable=SC2086
    kill -STOP $pids
    wait_until "free '$key'"
    # The command itself stays stopped.
    kill -CONT "$bg"
    finish
    exits 76
    has_ended "$command_pid"
    [ ! -e got ]
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

@test "a loss ends a dlock inside dlock, and what that runs" {
    start_holding "$key" --ttl 1500ms "trap '' TERM
        $DLOCK run $key-2 -- sh -c 'trap \"\" TERM; echo \$\$ >inner.new; mv inner.new inner; while :; do sleep 0.02; done'"
    wait_until '[ -s inner ]'
    rcli a del "$key"
    finish
    exits 76
    wait_until '[ -z "$(leftovers)" ]'
}

@test "a command is not begun when too little is left of its lease" {
    redis_start behind
    proxy_start late behind delay=0.9
    DLOCK_NODES=$(proxy_node late) try run --ttl 1s --node-timeout 5s --report report "$key" -- touch begun
    fails 69 slow
    [ ! -e begun ]
    jq -e '.outcome == "no-quorum" and .child == null' report
    wait_until "free '$key' behind"
}
