#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# A lock that is lost while a command runs: the command is ended before another can be
# granted the lock, and dlock exits 76.

load ../lib/lost

@test "a deleted lock ends the command, 76" {
    start_holding "$key" --ttl 6s -E 9 'sleep 30'
    rcli a del "$key"
    within 4800 finishes 76 # long before the lease would have ended
    complains 'lost: gone: it expired, was broken or was released'
    has_ended "$command_pid"
    is_free "$key"
}

@test "a lock that another client holds, or whose key has another type now, is lost and not changed" {
    for set in "set $key $OTHER_TOKEN px 20000" "hset $key field value px 20000"; do
        start_holding "$key" --ttl 6s 'sleep 30'
        rcli a del "$key"
        rcli a $set
        rcli a pexpire "$key" 20000
        finishes 76
        [ "$(rcli a pttl "$key")" -gt 10000 ]
        [ "$(rcli a type "$key")" = hash ] || [ "$(rcli a get "$key")" = "$OTHER_TOKEN" ]
        rcli a del "$key"
    done
}

@test "a server that comes back without the lock: the lock is lost, and the server is named, whoever holds it now" {
    for waits in '' yes; do
        start_holding "$key" --ttl 9s 'sleep 30'
        # Within the node timeout of a renewal that is under way, or before the next one.
        redis_stop a
        redis_start a
        [ -z "$waits" ] || dlock acquire "$key"
        finishes 76
        [ "$killed_by_timer" = yes ] || complains "lost: gone: $(node a) restarted [0-9.m]+s ago, perhaps without its data"
        rcli a del "$key"
    done
}

@test "a lost lock is 76, whatever the exit status of the command" {
    runs=()
    for code in 0 1 75; do
        traps="trap 'exit $code' TERM" start_holding "$key-$code" --ttl 6s 'while :; do sleep 0.1; done'
        runs+=("$bg")
        rcli a del "$key-$code"
    done
    for bg in "${runs[@]}"; do
        finishes 76 "$bg"
    done
}

@test "a loss that only the release can detect is 76, too" {
    gives 76 run "$key" -- sh -c "$REDIS_CLI -s $(node a) del $key"
    [[ $stderr == *lost* ]] || fail "expected a word about the loss"
    gives 76 run "$key" -- sh -c "$REDIS_CLI -s $(node a) set $key $OTHER_TOKEN px 20000; exit 3"
    [ "$(rcli a get "$key")" = "$OTHER_TOKEN" ]
}

@test "--on-lost warn lets the command continue, and the exit status is 76" {
    start_holding "$key" --ttl 3s --on-lost warn 'while [ ! -e stop ]; do sleep 0.2; done; echo done'
    rcli a del "$key"
    wait_until "[ -s bg.$bg_count.err ]"
    sleep 2.4 # the lease, if it had not been lost, ends
    alive "$command_pid"
    stops 76
    prints 'done'
    complains "$key.*(lost|renewed)"
    [[ $stderr != *'a renewal failed: gone'* ]]
}

# ------------------------------------------------------------ servers that go away

@test "a server that is killed, or whose replies come after the node timeout: the command ends before the lease does" {
    proxy_start late mortal
    for how in 'proxy_rules late delay=10' 'redis_stop mortal'; do
        DLOCK_NODES=$(proxy_node late) start_holding "$key" --ttl 9s -k 2s "$alive_line"
        $how
        from=$(now_ms)
        finishes 76
        complains "$key: the lease could not be renewed: .*; ending the command"
        ended_before $((from + 9000))
        proxy_rules late
        [[ $how != proxy* ]] || wait_until "free '$key' mortal"
    done
}

@test "a frozen server and a command that ignores TERM: killed before the lease ends" {
    redis_start frozen
    DLOCK_NODES=$(node frozen) traps='trap "" TERM' start_holding "$key" --ttl 6s "$alive_line"
    redis_freeze frozen
    from=$(now_ms)
    within 11000 loses
    ended_before $((from + 6000))
}

@test "a server that was frozen for a moment: the renewal is retried and the command continues" {
    redis_start frozen
    DLOCK_NODES=$(node frozen) start_holding "$key" -v --ttl 12s --node-timeout 1500ms \
        'while [ ! -e stop ]; do sleep 0.2; done; exit 5'
    redis_freeze frozen
    wait_until "[ \$(grep -c 'renewing the lease' bg.$bg_count.err) -ge 2 ]" 20
    redis_thaw frozen
    wait_until "[ \"\$(rcli frozen pttl $key)\" -gt 9000 ]"
    stops 5
    is_free "$key" frozen
}

@test "a server that is down for half of the lease and keeps its data: the command gets no signal" {
    redis_start mortal --appendonly yes --appendfsync always
    DLOCK_NODES=$(node mortal) DLOCK_NODE_TIMEOUT='' traps='trap "echo TERM >got" TERM' start_holding "$key" -v --ttl 18s \
        'while [ ! -e stop ]; do sleep 0.2; done; exit 5'
    from=$(now_ms)
    sleep_until 3600 "$from"
    end_process "$(server_pid mortal)"
    sleep_until 11700 "$from"
    redis_start mortal --appendonly yes --appendfsync always
    wait_until "[ \"\$(rcli mortal pttl $key)\" -gt 10500 ]" 20
    stops 5
    [ ! -e got ]
    is_free "$key" mortal
    # Each attempt is refused at once: it is repeated soon, but not in a busy loop.
    rounds=$(grep -c 'renewing the lease' <<<"$stderr")
    [ "$rounds" -gt 20 ] && [ "$rounds" -lt 1000 ] || fail "$rounds rounds"
}

@test "a lost lock ends a nested dlock and its command" {
    start_holding "$key" --ttl 3s "trap '' TERM
        $DLOCK run $key-2 -- sh -c 'trap \"\" TERM; echo \$\$ >inner.new; mv inner.new inner; while :; do sleep 0.1; done'"
    wait_until '[ -s inner ]'
    rcli a del "$key"
    loses
    wait_until '[ -z "$(leftovers)" ]'
}

@test "a command is not started if its lease has nearly ended" {
    proxy_start late behind delay=0.9
    DLOCK_NODES=$(proxy_node late) refuses 69 late run --ttl 1s --node-timeout 5s --report report "$key" -- touch begun
    [ ! -e begun ]
    jq -e '.outcome == "no-quorum" and .child == null' report
    wait_until "free '$key' behind"
}
