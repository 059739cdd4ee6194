#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# What a holder on ZooKeeper learns, and when: that it is asked to end, that its lock is broken, released or over.

load ../lib/zookeeper
load ../lib/fences

setup_file() {
    zk_start --one
    clock_build
}
setup() { zk_begin; }

me="$(id -un)@$(uname -n)"

# ---------------------------------------------------------------- break --ask, run --replace: a watch brings the mark at once

@test "break --ask: the holder learns of it at once, and holds the lock until its command has ended" {
    traps="trap 'until [ -e stop ]; do sleep 0.2; done; exit 0' TERM"
    start_holding "$key" --ttl 30s -k 60s --report report 'while :; do sleep 0.1; done'
    holder=$bg
    start break --ask "$key"
    asker=$bg
    wait_until "grep -q 'asked to end by $me:$asker; ending the command' bg.1.err" 5 # and not after a third of the lease
    zk_is_held "$key"
    alive "$asker"
    requests_reset
    gives 75 break --ask --wait 1s --quiet "$key"
    [ "$(requests setData)" -le 1 ] || fail 'who asked first is replaced' # and not only by a renewal
    touch stop
    finishes 76 "$holder"
    finishes 0 "$asker"
    [[ $output == "$key: ended; it was held by $me:$holder "* ]] || fail "expected whom"
    zk_is_free "$key"
    jq -e ".outcome == \"asked\" and .asked_by.pid == $asker" report
}

@test "break --ask: free 1, kept 75, declined 75" {
    refuses 1 'the lock is free' break --ask "$key"
    works run --min-hold 4s --ttl 8s "$key-kept" -- true
    refuses 75 'nothing runs: kept' break --ask "$key-kept"
    start_holding "$key-warn" --on-lost warn 'until [ -e stop ]; do sleep 0.2; done'
    gives 75 break --ask --wait 1s --quiet "$key-warn"
    wait_until "grep -q 'continues' bg.1.err"
    stops 0
}

@test "break --ask: a lock that is kept once its command has ended, and so the last one of readers: 75" {
    start_holding "$key" --min-hold 30s 'sleep 60'
    tells 75 '.outcome == "kept"' break --ask --json --quiet "$key"
    finishes 76
    for kept in first second; do
        k=$key-$kept
        [ $kept = second ] || dlock run --shared --min-hold 30s "$k" -- true
        start_holding "$k" --shared 'sleep 60'
        [ $kept = first ] || dlock run --shared --min-hold 30s "$k" -- true
        tells 75 '.outcome == "kept"' break --ask --json --quiet "$k"
        finishes 76
    done
}

@test "break --ask waits for all readers" {
    start_holding "$key" --shared 'sleep 60'
    first=$bg
    traps="trap 'until [ -e stop ]; do sleep 0.2; done; exit 0' TERM"
    start_holding "$key" --shared -k 60s 'while :; do sleep 0.1; done'
    second=$bg
    start break --ask --quiet "$key"
    asker=$bg
    finishes 76 "$first"
    short_sleep 2 # it asks each second
    alive "$asker" || fail 'the second reader still runs'
    touch stop
    finishes 76 "$second"
    finishes 0 "$asker"
}

@test "break --ask: a lock that was entered again is asked for all its holds" {
    start_holding "$key" --ttl 30s "\"\$DLOCK\" run '$key' -- sh -c 'touch inner; sleep 60'"
    wait_until '[ -e inner ]'
    works break --ask --quiet "$key"
    finishes 76
    zk_is_free "$key"
}

@test "break --ask of a slot: its holder ends, and the other one stays" {
    start_holding "$key" --slots 2 'sleep 60'
    other=$bg
    start_holding "$key" --slots 2 'sleep 60'
    works break --ask --quiet "$key/leases/slot-2"
    finishes 76
    alive "$other"
}

@test "run --replace: the old command has ended before the new one starts, and HELD does not count the wait" {
    start_holding "$key" --ttl 30s 'trap "sleep 1; date +%s%3N >ended; exit" TERM; while :; do sleep 0.1; done'
    works run --replace "$key" -- sh -c '"$DLOCK" status --json "$1" >state && date +%s%3N' sh "$key"
    [ $((output - $(jq .held_ms state) + 50)) -ge "$(<ended)" ] || fail "held for longer: $(<state)"
    finishes 76
}

@test "break --ask and run --replace ask each of the readers" {
    for args in "break --ask --quiet $key" "run --replace $key -- true"; do
        start_holding "$key" --shared --on-lost warn 'until [ -e stop ]; do sleep 0.2; done'
        first=$bg
        start_holding "$key" --shared --ttl 30s 'sleep 60'
        second=$bg
        start $args
        asker=$bg
        finishes 76 "$second"
        stops 0 "$first"
        finishes 0 "$asker"
        rm stop
    done
}

# begin_and_hold ARG...: dlock ARG... in the background, which has looked at the lock and waits before it does more.
begin_and_hold() {
    zk rules hold:sync@2
    requests_reset
    start "$@"
    wait_until '[ "$(requests getData)" -ge 2 ]'
}

@test "break --ask: a renewal at the same time does not hide it" {
    take "$key"
    zk rules hold:setData@1
    requests_reset
    start break --ask --quiet --node-timeout 15s "$key"
    wait_until '[ "$(requests getData)" -ge 3 ]'
    works renew -N "zk://127.0.0.1:${zk_direct[0]}$chroot" "$key" "$token"
    zk rules
    wait_until 'zk_ask 1 get "$chroot/$key/$(entries "$key")" | grep -q ^asked'
    works release "$key" "$token"
    finishes 0
}

@test "break and break --ask: a holder that came after the look is left alone, and so is a lock that is kept by now" {
    direct=zk://127.0.0.1:${zk_direct[0]}$chroot
    for how in --force --ask; do
        take "$key" -N "$direct"
        begin_and_hold break "$how" "$key"
        dlock release -N "$direct" "$key" "$token"
        take "$key" -N "$direct"
        zk rules
        finish
        if [ "$how" = --force ]; then
            fails 75 'not broken: the holder has changed'
        else
            exits 0 # the one that it saw has ended
            [[ $output == "$key: ended; it was held by "* ]] || fail 'expected that it ended'
        fi
        works renew "$key" "$token" # and does not say that it is asked
        works release "$key" "$token"
    done
    start_holding "$key" -N "$direct" --min-hold 20s 'until [ -e stop ]; do sleep 0.2; done'
    holder=$bg
    begin_and_hold break --ask "$key"
    stops 0 "$holder"
    zk rules
    finish
    fails 75 'nothing runs: kept'
}

@test "run --replace: one whose turn comes just when a newer one has asked it gives way" {
    start_holding "$key" --on-lost warn 'until [ -e end ]; do sleep 0.2; done'
    holder=$bg
    start run --replace --wait 60s "$key" -- touch first
    first=$bg
    wait_until "grep -q waiting 'bg.$bg_count.err'"
    kill -STOP "$first"
    start run --replace --wait 60s "$key" -- true
    wait_until 'zk_ask 1 get "$chroot/$key/$(entries "$key" | sort -t- -k 7 | sed -n 2p)" | grep -q ^asked'
    touch end
    finishes 0 "$holder"
    kill -CONT "$first"
    finishes 0
    finishes 75 "$first"
    [ ! -e first ]
}

@test "run --replace: the newest wins, also over one that only waits, and over a waiter that is not asked" {
    start_holding "$key" --on-lost warn 'until [ -e end ]; do sleep 0.2; done'
    holder=$bg
    start run --on-lost warn --wait 60s "$key" -- touch plain # asked when it holds the lock
    plain=$bg
    wait_until "[[ \$(dlock status --json '$key') == *'\"waiting\":1,'* ]]"
    start run --replace --wait 60s "$key" -- touch first
    first=$bg
    wait_until "[[ \$(dlock status --json '$key') == *'\"waiting\":2,'* ]]"
    start run --replace --wait 60s "$key" -- touch second
    second=$bg
    finishes 75 "$first"
    complains "gives way to a newer dlock run --replace, by $me:$second"
    touch end
    finishes 0 "$holder"
    finishes 0 "$plain"
    finishes 0 "$second"
    [ -e plain ] && [ -e second ] && [ ! -e first ]
}

# ---------------------------------------------------------------- broken, released, stopped

@test "a lock that is broken ends the command at once, 76" {
    hold_beating --kill-after 100ms
    zk_ask 1 delete "$chroot/$key/$(entries "$key")"
    start=$(now_ms)
    finish "$holder"
    # Its next renewal comes after 6.7 s.
    took_at_most 3000 "$start"
    exits_76_or_killed
}

@test "renewals by another process do not affect the holder, and a release by it is detected" {
    hold_beating --kill-after 1s
    token_of_command
    for ((i = 0; i < 20; i++)); do
        works renew "$key" "$token"
        short_sleep "0.$((RANDOM % 2))"
    done
    alive "$holder"
    works release "$key" "$token"
    start=$(now_ms)
    finish "$holder"
    took_at_most 3000 "$start"
    exits_76_or_killed
}

@test "dlock is stopped until its session is over: the command is dead before another enters, 76" {
    # Long enough for a late renewal not to be confirmed when it is stopped, so that it would go on.
    hold_beating --ttl 9s
    start_next --ttl 9s
    queue_length_is 2
    kill -STOP "$holder"
    # It continues when its lease ends.
    finish "$holder"
    exits_76_or_killed
    dead_before_entered
}

@test "the time of day jumps by hours while the lock is held" {
    need_clock
    clock_set clock 0
    with_clock "$PWD/clock" hold_beating --ttl 6s
    start_next --ttl 6s
    for offset in +2h -2h; do
        clock_set clock "$offset"
        stays_held 6
    done
    stops 0 "$holder"
    finishes 0 "$next" 180
}
