#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# dlock break --ask: the holder ends its command, and releases the lock when that has ended.

load ../lib/quorum

redis_servers=a

me="$(id -un)@$(uname -n)"

# ask: break --ask of $key in the background; $asker is its pid.
ask() {
    start break --ask --wait forever "$key"
    asker=$bg
}

# same_start TEXT TEXT: both say "held since" the same second, or almost.
same_start() {
    local first second
    [[ $1 =~ held\ since\ ([0-9:]+) ]] && first=$(date -d "${BASH_REMATCH[1]}" +%s)
    [[ $2 =~ held\ since\ ([0-9:]+) ]] && second=$(date -d "${BASH_REMATCH[1]}" +%s)
    [[ $((second - first)) =~ ^-?[0-2]$ ]] || fail "$1"$'\n'"$2"
}

@test "the holder ends its command, and holds the lock until the last process of the group has ended" {
    traps="(trap '' TERM; until [ -e stop ]; do sleep 0.2; done) & trap 'exit 0' TERM"
    start_holding "$key" --ttl 3s -k 60s --report report --label job 'while :; do sleep 0.1; done'
    holder=$bg token=$(rcli a get "$key")
    ask
    wait_until "! alive $command_pid"
    grep -q "^dlock: $key: asked to end by $me:$asker; ending the command" bg.1.err
    is_renewed "$key"
    [ "$(rcli a get "$key")" = "$token" ]
    alive "$asker"
    touch stop
    finishes 76 "$holder"
    [[ $stderr != *continues* ]]
    finishes 0 "$asker"
    [[ $output == "$key: ended; it was held by $me:$holder (job), "* && $stderr == "dlock: $key: asked to end; held by "* ]]
    same_start "$stderr" "$output"
    is_free "$key"
    jq -e ".outcome == \"asked\" and .child.exit == 0 and .asked_by.pid == $asker" report
    try history "$key"
    [[ $output == *"asked to end by $me:$asker"* ]]
    history_is ".outcome == \"asked\" and .asked_by == \"$me:$asker\" and .broken_by == null"
    gives 1 status --max-age 1h "$key"
}

@test "a command that does not end gets SIGKILL after --kill-after" {
    traps='trap "" TERM' start_holding "$key" --ttl 3s -k 1s 'while :; do sleep 0.1; done'
    works break --ask --quiet "$key"
    has_ended "$command_pid"
    finishes 76
}

@test "break --ask: 75 after --wait, and the holder declines with --on-lost warn" {
    start_holding "$key" --ttl 3s --on-lost warn --exec-on-lost 'touch hook' 'until [ -e stop ]; do sleep 0.2; done'
    gives 75 break --ask --wait 2s "$key"
    [[ $stderr == *"$key: asked to end, and it still holds the lock; waited 2.0s" ]] || fail "expected why"
    wait_until "grep -q 'asked to end by .*; the command continues' bg.1.err"
    tells 75 '.outcome == "asked" and .key == $key' break --ask --wait 0 --json "$key"
    stops 0
    [ "$(grep -c 'asked to end' bg.1.err)" = 1 ]
    [ ! -e hook ]
}

@test "break --ask: 0 when the lease of a holder ends that cannot end itself" {
    start_holding "$key" --ttl 3s 'sleep 60'
    kill -KILL "$bg"
    works break --ask --quiet "$key"
    is_free "$key"
    finishes 137
}

@test "break --ask of a lock that nobody can end: free 1, of another client 64, kept after its command 75" {
    refuses 1 'the lock is free' break --ask "$key"
    rcli a set "$key" "$(printf 'ab%.0s' {1..6})1$(printf 'ab%.0s' {1..9})8" px 60000
    refuses 64 'only dlock can be asked' break --ask "$key"
    rcli a del "$key"
    works run --min-hold 20s "$key" -- true
    refuses 75 'nothing runs: kept until .*--min-hold' break --ask "$key"
    tells 75 '.outcome == "kept"' break --ask --json "$key"
    dlock break --force "$key"
    start_holding "$key" --ttl 3s --min-hold 60s 'sleep 60'
    gives 75 break --ask "$key"
    [[ $stderr == *$'\n'"dlock: $key: nothing runs: kept until "* ]] || fail 'expected that it ended, and is kept'
    finishes 76
}

@test "break --ask is no break: not with --force, and --wait is for it" {
    refuses 64 'cannot be used together' break --ask --force "$key"
    refuses 64 'only with --ask' break --wait 1s --force "$key"
}

@test "the mark belongs to one token: the next holder runs on" {
    start_holding "$key" --ttl 3s 'sleep 60'
    start run --wait 20s --ttl 3s "$key" -- sh -c 'touch second; until [ -e stop ]; do sleep 0.2; done'
    next=$bg
    wait_until "[[ \$(dlock status --json '$key') == *'\"waiting\":1,'* ]]"
    works break --ask --quiet "$key"
    wait_until '[ -e second ]'
    is_renewed "$key"
    is_renewed "$key"
    stops 0 "$next"
}

@test "acquire --keep: the process gets the signal, and holds the lock until it has ended" {
    start_script='trap "echo asked >>told" TERM; dlock acquire --keep $$ --ttl 3s '"$key"' >/dev/null || exit
        touch held; until [ -e stop ]; do sleep 0.2; done'
    PATH=${DLOCK%/*}:$PATH sh -c "$start_script" 3>&- 4>&- &
    script_pid=$!
    wait_until '[ -e held ]'
    ask
    wait_until '[ -s told ]'
    is_renewed "$key"
    touch stop
    finishes 0 "$asker"
    has_ended "$script_pid"
    history_is '.outcome == "asked"'
}

@test "a script that holds the lock by acquire learns of it by renew" {
    take "$key"
    ask
    wait_until "[[ \$(cat bg.1.err) == *'its script learns of it by renew' ]]"
    warns 0 "$key: asked to end by $me:$asker; release it" renew "$key" "$token"
    quietly 0 renew --json --quiet "$key" "$token"
    json_is ".asked_by.pid == $asker"
    works release "$key" "$token"
    finishes 0 "$asker"
}

@test "five nodes, two of them dead: the mark of the others is enough" {
    use 5
    start_holding "$key" --ttl 3s 'sleep 60'
    holder=$bg
    redis_stop n1 n2
    tells 0 '.outcome == "ended" and .ends_within_ms == null' break --ask --quiet --json "$key"
    has_ended "$command_pid"
    finishes 76 "$holder"
}

@test "three nodes: of several that contend nobody is asked" {
    use 3
    rcli n1 set "$key" "$OTHER_TOKEN" px 60000
    rcli n2 set "$key" "$THIRD_TOKEN" px 60000
    refuses 75 'not asked: several contend' break --ask "$key"
}

@test "three nodes: the mark of one of them does not count" {
    use 3
    start_holding "$key" --ttl 3s --node-timeout 2s 'until [ -e stop ]; do sleep 0.2; done'
    token=$(rcli n1 get "$key")
    rcli n1 hset "{$key}:dlock" asked "$token 1 me@here:1"
    is_renewed "$key" n1
    is_renewed "$key" n1
    rcli n2 hset "{$key}:dlock" asked "$OTHER_TOKEN 1 me@here:1" # nor that of another token
    is_renewed "$key" n2
    is_renewed "$key" n2
    stops 0
}
