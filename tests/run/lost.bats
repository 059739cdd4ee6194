#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# A lock that is lost while a command runs: the command is ended before another can be
# granted the lock, and dlock exits 76.

# shellcheck disable=SC2016,SC2030,SC2031,SC2094,SC2154
bats_require_minimum_version 1.5.0
load ../lib/lost

setup_file() { redis_start a; }
setup() {
    test_begin
    stalls_note
    # The default, a tenth of the lease, is too little on a busy machine.
    export DLOCK_NODE_TIMEOUT=2s
}

@test "a deleted lock ends the command, 76" {
    start_holding "$key" --ttl 6s 'sleep 30'
    rcli a del "$key"
    finish
    exits 76
    complains "$key.*(lost|renewed)"
    has_ended "$command_pid"
    is_free "$key"
}

@test "a lock that another client holds ends the command and is not changed" {
    start_holding "$key" --ttl 6s 'sleep 30'
    rcli a set "$key" "$OTHER_TOKEN" px 20000
    finish
    exits 76
    complains "$key.*(lost|renewed)"
    [ "$(rcli a get "$key")" = "$OTHER_TOKEN" ]
    [ "$(rcli a pttl "$key")" -gt 10000 ]
}

@test "a lock whose key has another type now is lost, and the key is not changed" {
    start_holding "$key" --ttl 6s 'sleep 30'
    rcli a del "$key"
    rcli a hset "$key" field value
    finish
    exits 76
    [ "$(rcli a hget "$key" field)" = value ]
}

@test "a server that restarted without its data is named, whoever holds the lock now" {
    local waits
    for waits in '' yes; do
        start_holding "$key" --ttl 9s 'sleep 30'
        # Within the node timeout of a renewal that is under way, or before the next one.
        redis_stop a
        redis_start a
        [ -z "$waits" ] || dlock acquire "$key"
        finish
        exits 76
        [ "$killed_by_timer" = yes ] || complains "lost: gone: $(node a) restarted [0-9.m]+s ago, perhaps without its data"
        rcli a del "$key"
    done
    start_holding "$key" --ttl 6s 'sleep 30'
    rcli a del "$key"
    finish
    complains 'lost: gone: it expired, was broken or was released'
}

@test "a lost lock is detected long before the lease would have ended" {
    start_holding "$key" --ttl 6s 'sleep 30'
    rcli a del "$key"
    within 4800 finish
    exits 76
}

@test "the first signal of a lost lock is TERM" {
    traps='trap "echo TERM >got; exit 0" TERM' start_holding "$key" --ttl 9s -k 3s 'while :; do sleep 0.02; done'
    rcli a del "$key"
    finish
    [ "$(cat got)" = TERM ]
}

@test "--signal is the first signal of a lost lock" {
    traps='trap "echo USR2 >got; exit 0" USR2' start_holding "$key" --ttl 9s -k 3s --signal USR2 'while :; do sleep 0.02; done'
    rcli a del "$key"
    finish
    [ "$(cat got)" = USR2 ]
    exits 76
}

@test "a lost lock is 76, whatever the exit status of the command" {
    local code runs=()
    for code in 0 1 75; do
        traps="trap 'exit $code' TERM" start_holding "$key-$code" --ttl 6s 'while :; do sleep 0.02; done'
        runs+=("$bg")
        rcli a del "$key-$code"
    done
    for bg in "${runs[@]}"; do
        finish "$bg"
        exits 76
    done
}

@test "-E does not change the exit status of a lost lock" {
    start_holding "$key" --ttl 6s -E 9 'sleep 30'
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
    traps='trap "" TERM' start_holding "$key" --ttl 3s "$alive_line"
    rcli a del "$key"
    finish
    exits_76_or_killed
    has_ended "$command_pid"
}

@test "a lost lock also ends the processes that the command started" {
    start_holding "$key" --ttl 6s 'sleep 30 & echo $! >child; sleep 30'
    wait_until '[ -s child ]'
    rcli a del "$key"
    finish
    exits 76
    has_ended "$(cat child)"
}

@test "--on-lost warn lets the command continue, and the exit status is 76" {
    start_holding "$key" --ttl 3s --on-lost warn 'while [ ! -e stop ]; do sleep 0.1; done; echo done'
    rcli a del "$key"
    wait_until "[ -s bg.$bg_count.err ]"
    sleep 2.4 # the lease, if it had not been lost, ends
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
    DLOCK_NODES=$(node mortal) start_holding "$key" --ttl 6s -k 2s "$alive_line"
    redis_stop mortal
    from=$(now_ms)
    finish
    exits 76
    complains "$key.*(lost|renewed)"
    ended_before $((from + 6000))
}

@test "a server that is frozen: the command ends before the lease does" {
    local from
    redis_start frozen
    DLOCK_NODES=$(node frozen) start_holding "$key" --ttl 6s -k 2s "$alive_line"
    redis_freeze frozen
    from=$(now_ms)
    finish
    exits 76
    complains "$key.*(lost|renewed)"
    ended_before $((from + 6000))
    has_ended "$command_pid"
}

@test "a frozen server and a command that ignores TERM: killed before the lease ends" {
    local from
    redis_start frozen
    DLOCK_NODES=$(node frozen) traps='trap "" TERM' start_holding "$key" --ttl 6s "$alive_line"
    redis_freeze frozen
    from=$(now_ms)
    finish
    exits_76_or_killed
    ended_before $((from + 6000))
    has_ended "$command_pid"
}

@test "--on-lost warn lets the command continue though the server has ended" {
    redis_start mortal
    DLOCK_NODES=$(node mortal) start_holding "$key" --ttl 3s --on-lost warn \
        'while [ ! -e stop ]; do sleep 0.1; done'
    redis_stop mortal
    wait_until "grep -q 'could not be renewed' bg.$bg_count.err"
    alive "$command_pid"
    touch stop
    finish
    exits 76
}

@test "the end of dlock does not wait for a frozen server longer than the lease" {
    redis_start frozen
    DLOCK_NODES=$(node frozen) start_holding "$key" --ttl 6s -k 2s 'sleep 30'
    redis_freeze frozen
    within 11000 finish
    exits 76
}

@test "a server that was frozen for a moment: the renewal is retried and the command continues" {
    redis_start frozen
    DLOCK_NODES=$(node frozen) start_holding "$key" -v --ttl 12s --node-timeout 1500ms \
        'while [ ! -e stop ]; do sleep 0.1; done; exit 5'
    redis_freeze frozen
    wait_until "[ \$(grep -c 'renewing the lease' bg.$bg_count.err) -ge 2 ]" 20
    redis_thaw frozen
    wait_until "[ \"\$(rcli frozen pttl $key)\" -gt 9000 ]"
    touch stop
    finish
    exits 5
    is_free "$key" frozen
}

# The first renewal is due at 5.4 s, the first signal at 14.8 s, which leaves three seconds for stalls.
@test "a server that is frozen for half of the lease: the command gets no signal" {
    local from
    redis_start frozen
    DLOCK_NODES=$(node frozen) DLOCK_NODE_TIMEOUT='' traps='trap "echo TERM >got" TERM' start_holding "$key" --ttl 18s \
        'while [ ! -e stop ]; do sleep 0.1; done; exit 5'
    from=$(now_ms)
    sleep_until 2700 "$from"
    redis_freeze frozen
    sleep_until 11700 "$from"
    redis_thaw frozen
    wait_until "[ \"\$(rcli frozen pttl $key)\" -gt 10500 ]" 20
    touch stop
    finish
    exits 5
    [ ! -e got ]
    is_free "$key" frozen
}

@test "a server that is down for half of the lease and keeps its data: the command gets no signal" {
    local rounds from
    redis_start mortal --appendonly yes --appendfsync always
    DLOCK_NODES=$(node mortal) DLOCK_NODE_TIMEOUT='' traps='trap "echo TERM >got" TERM' start_holding "$key" -v --ttl 18s \
        'while [ ! -e stop ]; do sleep 0.1; done; exit 5'
    from=$(now_ms)
    sleep_until 3600 "$from"
    end_process "$(server_pid mortal)"
    sleep_until 11700 "$from"
    redis_start mortal --appendonly yes --appendfsync always
    wait_until "[ \"\$(rcli mortal pttl $key)\" -gt 10500 ]" 20
    touch stop
    finish
    exits 5
    [ ! -e got ]
    is_free "$key" mortal
    # Each attempt is refused at once: it is repeated soon, but not in a busy loop.
    rounds=$(grep -c 'renewing the lease' <<<"$stderr")
    [ "$rounds" -gt 20 ] && [ "$rounds" -lt 1000 ] || fail "$rounds rounds"
}

@test "connections that the server closes are opened again, the command continues" {
    start_holding "$key" --ttl 6s 'while [ ! -e stop ]; do sleep 0.1; done; exit 5'
    for _ in {1..3}; do
        rcli a client kill type normal skipme yes >/dev/null
        is_renewed "$key"
    done
    touch stop
    finish
    exits 5
    is_free "$key"
}

@test "a server that comes back without the lock: the lock is lost" {
    redis_start mortal
    DLOCK_NODES=$(node mortal) start_holding "$key" --ttl 6s "$alive_line"
    redis_stop mortal
    redis_start mortal
    finish
    exits 76
    is_free "$key" mortal
}

@test "a renewal whose reply is lost is tried again" {
    redis_start behind
    proxy_start lossy behind drop@2
    DLOCK_NODES=$(proxy_node lossy) start_holding "$key" -v --ttl 12s --node-timeout 1500ms \
        'while [ ! -e stop ]; do sleep 0.1; done'
    wait_until "grep -q ': done$' bg.$bg_count.err" 20
    [ "$(grep -c 'renewing the lease' "bg.$bg_count.err")" -ge 2 ]
    touch stop
    finish
    exits 0
}

@test "replies that always come late, but in time, lose no lock" {
    redis_start behind
    proxy_start late behind delay=0.1
    DLOCK_NODES=$(proxy_node late) start_holding "$key" --ttl 6s 'while [ ! -e stop ]; do sleep 0.1; done'
    for _ in 1 2 3; do is_renewed "$key" behind; done
    touch stop
    finish
    succeeds
    is_free "$key" behind
}

@test "replies that come after the node timeout end the command before the lease ends" {
    local from
    redis_start behind
    proxy_start late behind
    DLOCK_NODES=$(proxy_node late) start_holding "$key" --ttl 9s -k 2s "$alive_line"
    proxy_rules late delay=10
    from=$(now_ms)
    finish
    exits 76
    ended_before $((from + 9000))
}

@test "a lost lock ends a nested dlock and its command" {
    start_holding "$key" --ttl 3s "trap '' TERM
        $DLOCK run $key-2 -- sh -c 'trap \"\" TERM; echo \$\$ >inner.new; mv inner.new inner; while :; do sleep 0.02; done'"
    wait_until '[ -s inner ]'
    rcli a del "$key"
    finish
    exits_76_or_killed
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
