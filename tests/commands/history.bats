#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# dlock history: who held a lock before, and how that ended.

load ../lib/fences

redis_servers=a node_count=3

# outcomes: those in the JSON on standard input, with the exit status or the signal.
outcomes() { jq -r '.outcome + (.child | if . == null then "" else " \(to_entries[0].key) \(to_entries[0].value)" end)'; }

@test "every end of a holder is shown, the newest first" {
    dlock run "$key" -- true
    try run "$key" -- sh -c 'exit 3'
    try run "$key" -- sh -c 'kill -KILL $$'
    try run --max-run 100ms "$key" -- sleep 20
    gives 127 run "$key" -- ./missing
    take "$key" --label mine
    dlock release "$key" "$token"
    take_for 100 "$key"
    wait_until "free '$key'"
    works history --json "$key"
    [ "$(outcomes <<<"$output" | paste -sd ,)" = \
        'expired,released,exec-failed exit 127,max-run signal 15,ran signal 9,ran exit 3,ran exit 0' ] || fail "other outcomes"
    printf 'output key\nwatch\n' >config # which are for status
    works history --config config "$key"
    [ "$(tr -s ' ' <<<"${lines[0]}")" = 'START END HELD WAITED OUTCOME OWNER LABEL FENCE' ] || fail "other columns"
    [[ ${lines[1]} =~ ^[0-9-]{10}\ [0-9:]{8}\ .*\ expired\  ]] || fail "expected a time"
    [[ ${lines[2]} == *' released '*' mine '* && ${lines[5]} == *' SIGKILL '*' sh '* ]] || fail "other rows"
    [[ ${lines[6]} == *' exit 3 '* && ${lines[7]} == *' exit 0 '*@*:*' true '* ]] || fail "other rows"
}

@test "a lock that is held is shown, and who broke one" {
    start_holding "$key" --ttl 10s 'exec sleep 30'
    history_is '.outcome == "held" and .end_ms == null and .held_ms >= 0 and .label == "sh"'
    dlock break --force "$key" >/dev/null
    finishes 76
    history_is '.outcome == "broken" and .child == null and (.broken_by | test("@.*:[0-9]+$")) and .end_ms >= .start_ms'
    try history "$key"
    [[ ${lines[1]} == *' broken by '*@*:* ]] || fail "expected who broke it"
}

@test "a lock that is lost, a wait, and a command under --min-hold or --once-per" {
    start_holding "$key" --label first 'while [ ! -e stop ]; do sleep 0.2; done'
    start run --wait 60s --once-per 1h --label second "$key" -- true
    queue_length_is 1
    short_sleep 0.4
    stops 0
    try history --json "$key"
    [ "$(jq -s '.[0] | .label == "second" and .waited_ms > 300 and .waited_ms < 60000 and .held_ms < 60000 and .outcome == "ran"' <<<"$output")" = true ] ||
        fail "expected the wait, and the end of the command"
    rcli a del "$key" "{$key}:dlock:history" >/dev/null
    start_holding "$key" --ttl 10s 'exec sleep 30'
    rcli a del "$key" >/dev/null
    finishes 76
    history_is '.outcome == "lost" and .child.signal == 15'
}

@test "--history limits how many holders are recorded, and 0 omits this one" {
    export DLOCK_HISTORY=2
    for i in 1 2 3 4; do dlock run --label "run-$i" "$key" -- true; done
    try history --json "$key"
    [ "$(jq -r .label <<<"$output" | paste -sd ,)" = run-4,run-3 ]
    dlock run --history 0 --label secret "$key" -- true
    try history --json "$key"
    [ "$(jq -r .label <<<"$output" | paste -sd ,)" = run-4,run-3 ]
    dlock run --history 1 --label run-5 "$key" -- true
    dlock run --history 1 --label run-6 "$key" -- true
    try history --json "$key"
    [ "$(jq -r .label <<<"$output" | paste -sd ,)" = run-6 ]
    refuses 64 'invalid number' run --history 256 "$key" -- true
}

@test "a lease that ended is as long as it was, also if the next holder is not recorded" {
    take "$key" --ttl 3s
    wait_until "free '$key'"
    short_sleep 2
    history_is '.outcome == "expired" and .end_ms - .start_ms < 5000'
    start_holding "$key" --history 0 --ttl 10s 'exec sleep 30'
    is_renewed "$key"
    terminate_command
    history_is '.outcome == "expired" and .end_ms - .start_ms < 5000'
}

@test "a lock without a history: exit status 1, also if others have one, which are shown with their keys" {
    refuses 1 "^dlock: $key: no history: " history "$key"
    refuses 1 "^dlock: $key: no history: " history --json "$key"
    gives 1 history --quiet "$key"
    prints ''
    [ -z "$stderr" ] || fail "--quiet: $stderr"
    dlock run "$key" -- true
    dlock run "$key-2" -- true
    works history "$key" "$key-2"
    [[ ${lines[0]} == KEY* && ${lines[1]} == "$key "* && ${lines[2]} == "$key-2 "* ]] || fail "expected both keys"
    for pattern in "*$key*" ''; do
        works status ${pattern:+"$pattern"}
        [[ $output != *history* ]] || fail "expected no history among the locks"
    done
    gives 1 history "$key" "$key-3"
    [ ${#lines[@]} -eq 2 ]
    [[ $stderr == "dlock: $key-3: no history: "* ]] || fail "expected which key has none"
    DLOCK_NODES=$PWD/nowhere refuses 69 "$PWD/nowhere" history "$key"
}

@test "labels of any bytes, and hostile entries" {
    dlock run --label $'a b\n\e[1mc' "$key" -- true
    works history "$key"
    [[ $output == *'a b\n\e[1mc'* ]] || fail "expected the label, escaped"
    # Which entries are malformed is in tests/unit/history.c.
    rcli a lpush "{$key}:dlock:history" '' "$OTHER_TOKEN 1 ran 0 1 1 0" "$OTHER_TOKEN 5 "$'\e[2J'" 0 1 1 0 1 0 1 1 1 xy" >/dev/null
    works history --no-headings "$key"
    [ ${#lines[@]} -eq 2 ]
    [[ $output == *'\e[2J'* ]] || fail "expected the outcome, escaped"
    rcli a set "{$key}:dlock:history" x >/dev/null
    refuses 69 '' history "$key"
    refuses 69 "$key: " history "$key" "$key-2"
}

@test "over several nodes: holders that a majority recorded are shown, in one row each" {
    use 3
    dlock run --label one "$key" -- true
    redis_stop n1
    dlock run --label two "$key" -- true
    redis_start n1
    works history --json "$key"
    [ "$(jq -r .label <<<"$output" | paste -sd ,)" = two,one ]
    redis_stop n2
    try history --json "$key" # n1 has lost everything
    [ "$(jq -r .label <<<"$output" | paste -sd ,)" = two,one ]
    take "$key" --label three # on n1 and n3
    redis_stop n3
    redis_start n2
    tells 0 '.label == "three"' history --json "$key"
    redis_stop n2 n1
    refuses 69 'no quorum' history "$key"
}

# -------------------------------------------------------------------- --max-age

@test "status --max-age: 0 while the last success is not older, else 1, and 1 if none is known" {
    gives 1 status --max-age 1h "$key"
    prints "$key: late: no success is known, the maximum is 1h00m"
    dlock run --history 1 "$key" -- true
    try run --history 1 "$key" -- false
    try run --history 1 "$key" -- false
    try run --history 1 "$key" -- false
    dlock acquire --history 1 "$key" >/dev/null
    works status --max-age 1h "$key"
    [[ $output =~ ^$key:\ ok:\ the\ last\ success\ was\ [0-9.]+m?s\ ago,\ the\ maximum\ is\ 1h00m$ ]] || fail "other words"
    try status --max-age 1h --json "$key"
    json_is '.key == $key and .state == "ok" and .age_ms >= 0 and .last_success_ms > 1700000000000'
    wait_until "! dlock status --max-age 100ms '$key'"
    gives 1 status --max-age 100ms "$key"
    [[ $output == "$key: late: the last success was "* ]] || fail "expected late"
    gives 1 status -q --max-age 100ms "$key"
    prints ''
    gives 1 status --max-age 1h "$key" "$key-never"
    gives 1 status --max-age 1h "$key-never" "$key"
    [ ${#lines[@]} -eq 2 ]
    tells 1 '.state == "late" and .age_ms == null and .last_success_ms == null' status --max-age 1h --json "$key-never"
}

@test "status --max-age and --waiters need a KEY, and no other form of output" {
    refuses 64 'needs a KEY or a PATTERN$' status --max-age 1h
    refuses 64 'needs a KEY$' status --waiters
    refuses 64 'not a PATTERN' status --waiters "$key*"
    for option in --prometheus --watch -oKEY --all --failed '--max-age 1h'; do
        refuses 64 'together' status --waiters $option "$key"
    done
    DLOCK_NODES=$PWD/nowhere refuses 69 "$PWD/nowhere" status --max-age 1h "$key"
}

# ------------------------------------------------------------------- --prometheus

# sample NAME: its value for $key in $output.
sample() { sed -n "s/^dlock_$1{key=\"$key\"} //p" <<<"$output"; }

@test "--prometheus: a run that --max-run ended, or whose lock was lost, has not 0, though COMMAND has" {
    start run --max-run 100ms --signal WINCH "$key" -- sh -c 'until [ -e go ]; do sleep 0.1; done'
    wait_until "grep -q max-run bg.$bg_count.err"
    : >go
    finishes 124
    try status --prometheus "$key"
    [ "$(sample last_run_exit_status)" = 124 ] || fail 'expected the status of dlock'
    yields 137 env --ignore-signal=TERM "$DLOCK" run --max-run 100ms -k 100ms "$key" -- sleep 60
    try status --prometheus "$key"
    [ "$(sample last_run_exit_status)" = 137 ]
    traps='trap "exit 0" TERM' start_holding "$key" --ttl 6s 'while :; do sleep 0.1; done'
    rcli a del "$key" >/dev/null
    finishes 76
    try status --prometheus "$key"
    [ "$(sample last_run_exit_status)" = 76 ] || fail 'expected the status of dlock'
    [ "$(dlock history --json "$key" | jq -sc '[.[:3][] | .outcome, .child.exit, .child.signal]')" = '["lost",0,null,"max-run",null,9,"max-run",0,null]' ]
    gives 1 status --max-age 1h "$key" # none of them was a success
}

@test "--prometheus: where it is not known how long a holder had the lock, the one before it counts" {
    begun=$(($(date +%s) - 60))000
    rcli a rpush "{$key}:dlock:history" "$OTHER_TOKEN - open - - - - $begun 0 5 9 5 me@here:1label" \
        "$THIRD_TOKEN $begun ran 0 - - - $((begun - 5000)) 0 4 9 5 me@here:1label" >/dev/null
    try status --prometheus "$key"
    [ "$(sample last_held_seconds)" = 5.000 ] || fail 'expected 5 s'
}

@test "--prometheus: the last success and run, although the lock is free, and how long it was held" {
    gives 1 status --prometheus "$key"
    [ -z "$(sample last_run_exit_status)$(sample last_success_timestamp_seconds)$(sample last_held_seconds)" ]
    dlock run "$key" -- true
    try status --prometheus "$key"
    success=$(sample last_success_timestamp_seconds)
    [ "$success" = "$(sample last_run_timestamp_seconds)" ]
    [ "$(sample last_run_exit_status)" = 0 ]
    [ $(($(date +%s) - ${success%.*})) -lt 60 ]
    try run "$key" -- sleep 0.5
    try run "$key" -- sh -c 'exit 7'
    try status --prometheus "$key"
    [ "$(sample last_run_exit_status)" = 7 ]
    [ "$(sample last_run_timestamp_seconds)" != "$(sample last_success_timestamp_seconds)" ]
    try run "$key" -- sh -c 'sleep 0.4; kill -KILL $$'
    start_holding "$key" 'exec sleep 30'
    start run --wait 60s "$key" -- true
    waiting=$bg
    wait_until "[ \"\$(rcli a zcard '{$key}:dlock:waiting')\" = 1 ]"
    works status --prometheus "$key"
    [ "$(sample last_run_exit_status)" = 137 ]
    [ "$(sample waiters)" = 1 ]
    [[ $(sample last_held_seconds) =~ ^[0-9]+\.[0-9]{3}$ && $(sample last_held_seconds) != 0.0* ]] || fail "held too short"
    # A busy machine may have delayed its attempt by a millisecond.
    waited=$(sample last_waited_seconds)
    [ "$((10#${waited/./}))" = "$(dlock history --json "$key" | jq -s '.[1].waited_ms')" ] || fail "waited $waited"
    kill "$command_pid"
    finish "$waiting"
}

# ---------------------------------------------------------------------- --waiters

# For waiters.bash: the queue of the node.
queue_length() { rcli a zcard "{$key}:dlock:waiting"; }
queue_length_is() { wait_until "[ \"\$(queue_length)\" = $1 ]" || fail "expected $1 entries"; }

@test "status --waiters shows who waits, in order, and only as long as they wait" {
    gives 1 status --waiters "$key"
    prints ''
    take "$key"
    two_waiters
    # One that was killed long ago.
    rcli a zadd "{$key}:dlock:waiting" "$(($(date +%s) - 60))000" "$OTHER_TOKEN 5 5 5 u@h:1other" >/dev/null
    two_are_listed
    the_second_leaves 1
    dlock release "$key" "$token"
    finishes 0 "${waiter[0]}"
    gives 1 status --waiters "$key"
}

@test "the waiters are in the order of the queue, also if their clocks are wrong, and over several nodes" {
    need_clock
    use 3
    pids=() n=0
    start_holding "$key" 'exec sleep 60'
    for offset in +2h 0 -2h; do
        at "$offset" start run --wait 60s --label "n$((++n))" "$key" -- true
        pids+=("$bg")
        wait_until "[ \"\$(rcli n1 zcard '{$key}:dlock:waiting')\" = $n ]"
    done
    try status --waiters --json "$key"
    [ "$(jq -r .label <<<"$output" | paste -sd ,)" = n1,n2,n3 ] || fail "another order"
    redis_freeze n2
    try status --waiters --json "$key"
    redis_thaw n2
    [ "$(jq -r .label <<<"$output" | paste -sd ,)" = n1,n2,n3 ] || fail "another order"
    kill "$command_pid"
    for n in "${pids[@]}"; do finish "$n"; done
}
