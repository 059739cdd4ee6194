#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# The scripts of src/lua as they are: run by redis-cli --eval, as their headers say.

# shellcheck disable=SC2016,SC2030,SC2031,SC2094,SC2154
bats_require_minimum_version 1.5.0
load ../lib/redis

setup_file() { redis_start a; }
setup() {
    test_begin
    facts="{$key}:dlock"
    one=$OTHER_TOKEN
    two=$THIRD_TOKEN
    three=CCCCCCCCCCCCCCCCCCCCCC
}

# script NAME ARG...: run it on our key; the answer's values are in $lines.
script() {
    local name=$1
    shift
    attempt rcli a --eval "$top_srcdir/src/lua/$name.lua" "$@"
    exits 0
    case $output in ERR* | *WRONGTYPE*) fail "an error" ;; esac
}

# first VALUE: the answer's first value.
first() { [ "${lines[0]}" = "$1" ] || fail "expected first: $1"; }

acquire() { script acquire "$key" "$facts" "$facts:holds" "$facts:wake" "$facts:waiting" , "$1" 20000 "${2:-0}" me@here:1 label; }

# queue TOKEN HANDOFF WAITER WAIT_MS [TICKET]: the same for one that waits.
queue() {
    script acquire "$key" "$facts" "$facts:holds" "$facts:wake" "$facts:waiting" , "$1" 20000 0 me@here:1 label 0 0 \
        "$2" "$3" "$4" "${5:-0}"
}

# give_back TOKEN [KEEP_MS AGAIN NOTE WINDOW_MS]
give_back() { script release "$key" "$facts" "$facts:holds" "$facts:wake" "$facts:waiting" , "$@"; }

# hand_over: a lock of $one that $one gives back, and a waiter w1 is told of.
hand_over() {
    acquire "$one"
    queue "$two" '' w1 60000
    give_back "$one" 0 0 0 60000
    prints 1
}

pass() { script pass "$key" "$facts" "$facts:wake" , "$1"; }
leave() { script leave "$key" "$facts:waiting" "$facts:leave:$1" , "$1" "$2"; }

@test "the head of every script says how redis-cli runs it, and what it returns" {
    local file name
    for file in "$top_srcdir"/src/lua/*.lua; do
        name=$(basename "$file")
        grep -q "^-- *redis-cli --eval $name KEY" "$file" || fail "expected a call in $name"
        grep -q '^--.*Returns' "$file" || fail "expected what it returns in $name"
    done
}

@test "this file runs every script" {
    local file name
    for file in "$top_srcdir"/src/lua/*.lua; do
        name=$(basename "$file" .lua)
        grep -qE "^ *(script|acquire) ?$name|script $name" "$BATS_TEST_FILENAME" || fail "not run: $name"
    done
}

@test "every script that dlock runs is its file without blanks and comments" {
    "$REDIS_CLI" -s "$(node a)" monitor >monitor 3>&- 4>&- &
    local monitor=$! file
    wait_until 'grep -q OK monitor'
    take "$key"
    dlock renew "$key" "$token"
    dlock status "$key" >out
    dlock release "$key" "$token"
    rcli a ping
    wait_until 'grep -q "\"ping\"" monitor'
    kill "$monitor"
    wait "$monitor" || true
    for file in acquire renew inspect release; do
        "$PYTHON" -c '
import sys
lines = [line.strip() for line in open(sys.argv[1])]
code = "\n".join(line for line in lines if line and not line.startswith("--"))
quoted = code.replace("\\", "\\\\").replace("\"", "\\\"").replace("\n", "\\n")
sys.exit(quoted not in open("monitor").read())' "$top_srcdir/src/lua/$file.lua" || fail "another $file.lua"
    done
}

@test "acquire.lua grants a free lock once" {
    acquire "$one"
    [ "${lines[0]}" = 1 ]
    [ "${lines[1]}" -gt 1000000000000000 ]
    [ "$(rcli a get "$key")" = "$one" ]
    [ "$(rcli a pttl "$key")" -le 20000 ]
    [ "$(rcli a hget "$facts" fence)" = "${lines[1]}" ]
    acquire "$two"
    [ "${lines[0]}" = 0 ]
    [ "${lines[1]}" = "$one" ]
    [ "$(rcli a get "$key")" = "$one" ]
}

# entry TOKEN NODE: acquire.lua for that one of the caller's nodes.
entry() {
    script acquire "$key" "$facts" "$facts:holds" "$facts:wake" "$facts:waiting" , "$1" 20000 0 me@here:1 label 0 "$2" \
        '' w1 60000
}

@test "acquire.lua: a repeated request is granted as before, but not for another node" {
    local fence before
    entry "$one" 2
    first 1
    fence=${lines[1]}
    script renew "$key" "$facts" "$facts:holds" , "$one.inner" 20000 "$fence"
    rcli a pexpire "$key" 9000
    before=$(rcli a hgetall "$facts")
    rcli a config resetstat
    entry "$one" 2
    rcli a info commandstats | grep -q 'cmdstat_pexpire:calls=1' || fail 'expected a write, which WAIT waits for'
    [ "${lines[*]}" = "1 $fence" ] || fail 'expected the same grant'
    entry "$one" 1
    [ "${lines[*]}" = '-2 2' ] || fail 'expected who has the vote'
    entry "$one" 3
    [ "${lines[*]}" = '-2 2' ] || fail 'expected who has the vote'
    # Nothing has changed, and nobody waits for itself.
    [ "$(rcli a pttl "$key")" -le 9000 ]
    [ "$(rcli a hgetall "$facts")" = "$before" ]
    [ "$(rcli a zcard "$facts:holds")" = 2 ]
    [ "$(rcli a exists "$facts:waiting")" = 0 ]
    # What was given back is not granted again.
    give_back "$one" 0 0 0 1000 1
    entry "$one" 2
    first 0
    [ "$(rcli a exists "$key")" = 0 ]
}

@test "acquire.lua: the fence is greater than the last one, near the server's time, never far ahead" {
    local now before
    acquire "$one"
    before=${lines[1]}
    now=$(rcli a time | head -n 1)000000
    [ "$before" -ge $((now - 1801000000)) ]
    rcli a del "$key"
    acquire "$two" 9007199254740991
    [ "${lines[1]}" -gt "$before" ]
    [ "${lines[1]}" -le $((now + 1860000000)) ]
    rcli a del "$key"
    acquire "$one" 5
    [ "${lines[1]}" = $(($(rcli a hget "$facts" fence))) ]
    [ "${lines[1]}" -gt $((now + 1700000000)) ]
}

@test "acquire.lua loses no digit of a fence" {
    rcli a hset "$facts" fence 4503599627370497
    acquire "$one"
    [ "${lines[1]}" = 4503599627370498 ]
    [ "$(rcli a hget "$facts" fence)" = 4503599627370498 ]
}

@test "renew.lua renews for the holder only" {
    acquire "$one"
    rcli a pexpire "$key" 5000
    script renew "$key" "$facts" "$facts:holds" , "$two" 20000 1
    first 0
    [ "$(rcli a pttl "$key")" -le 5000 ]
    script renew "$key" "$facts" "$facts:holds" , "$one" 20000 1
    first 1
    [ "$(rcli a pttl "$key")" -gt 10000 ]
    rcli a del "$key"
    script renew "$key" "$facts" "$facts:holds" , "$one" 20000 1
    first -1
    is_free "$key"
}

@test "renew.lua never shortens and never lowers the fence" {
    acquire "$one"
    local fence
    fence=$(rcli a hget "$facts" fence)
    script renew "$key" "$facts" "$facts:holds" , "$one" 10 1
    first 1
    [ "$(rcli a pttl "$key")" -gt 10000 ]
    [ "$(rcli a hget "$facts" fence)" = "$fence" ]
    script renew "$key" "$facts" "$facts:holds" , "$one" 10 $((fence + 10000000001))
    [ "$(rcli a hget "$facts" fence)" = $((fence + 10000000001)) ]
}

@test "release.lua deletes for the holder only, and repeats a lost reply" {
    acquire "$one"
    script release "$key" "$facts" "$facts:holds" "$facts:wake" "$facts:waiting" , "$two" 0
    prints 0
    is_held "$key"
    script release "$key" "$facts" "$facts:holds" "$facts:wake" "$facts:waiting" , "$one" 0
    prints 1
    is_free "$key"
    script release "$key" "$facts" "$facts:holds" "$facts:wake" "$facts:waiting" , "$one" 0 1
    prints 1
    script release "$key" "$facts" "$facts:holds" "$facts:wake" "$facts:waiting" , "$one" 0
    prints -1
    script release "$key" "$facts" "$facts:holds" "$facts:wake" "$facts:waiting" , "$two" 0
    prints -1
}

@test "release.lua keeps the lock for a while, and nothing prolongs it" {
    acquire "$one"
    script release "$key" "$facts" "$facts:holds" "$facts:wake" "$facts:waiting" , "$one" 5000
    prints 1
    [ "$(rcli a pttl "$key")" -le 5000 ]
    [ "$(rcli a get "$key")" = "$one" ]
    script renew "$key" "$facts" "$facts:holds" , "$one" 20000 1
    first 0
    [ "$(rcli a pttl "$key")" -le 5000 ]
}

@test "renew.lua enters a lock again, and release.lua ends one hold after the other" {
    local inner=$one.12345678
    acquire "$one"
    release() { script release "$key" "$facts" "$facts:holds" "$facts:wake" "$facts:waiting" , "$@"; }
    renew() { script renew "$key" "$facts" "$facts:holds" , "$1" 20000 1; }
    renew "$two.12345678"
    first 0
    renew "$inner"
    first 1
    [ "$(rcli a zcard "$facts:holds")" -eq 2 ]
    renew "$inner"
    [ "$(rcli a zcard "$facts:holds")" -eq 2 ]
    [[ " ${lines[4]} " =~ \ $inner\ (20000|1[0-9]{4})\  ]] || fail "expected that the holds are told"
    [[ " ${lines[4]} " =~ \ $one\ (20000|1[0-9]{4})\  ]] || fail "expected that the holds are told"
    release "$one" 0
    prints 2
    release "$one" 0
    prints -1
    release "$one" 0 1
    prints 2
    renew "$one"
    first 0
    renew "$one.abcdefgh"
    first 1
    release "$one.abcdefgh" 0
    prints 2
    renew "$one.abcdefgh"
    first 0
    is_held "$key"
    release "$inner" 0
    prints 1
    is_free "$key"
    renew "$inner"
    first -1
}

@test "renew.lua returns the holds that end latest if there are too many" {
    local i told
    acquire "$one"
    for ((i = 1; i <= 45; i++)); do
        script renew "$key" "$facts" "$facts:holds" , "$one.$i" $((100000 + i * 1000)) 0
        first 1
    done
    # With the first holder's own there are 46, and it ends first.
    told=${lines[4]}
    [ "$(wc -w <<<"$told")" -eq 80 ] || fail "expected 40 holds"
    [[ " $told " == *" $one.45 "* && " $told " == *" $one.6 "* ]] || fail "expected the last of them"
    [[ " $told " != *" $one.5 "* && " $told " != *" $one "* ]] || fail "expected the first of them to be left out"
}

@test "a hold that is not renewed ends with its own lease, and keeps the lock for no longer" {
    local now
    acquire "$one"
    script renew "$key" "$facts" "$facts:holds" , "$one.12345678" 3000 1
    give_back "$one" 0
    prints 2
    [ "$(rcli a pttl "$key")" -le 3000 ]
    acquire "$two"
    first 0
    wait_until "[ \"\$(rcli a exists '$key')\" = 0 ]"
    acquire "$two"
    script renew "$key" "$facts" "$facts:holds" , "$two.12345678" 20000 1
    now=$(($(rcli a time | head -n 1) * 1000))
    rcli a zadd "$facts:holds" "$((now - 1))" "$two.12345678" "$((now - 1))" "$two.abcdefgh" >/dev/null
    rcli a zadd "$facts:holds" "-$((now - 1))" "$two.ended-00" >/dev/null
    give_back "$two" 0
    prints 1
    is_free "$key"
    [ "$(rcli a zrange "$facts:holds" 0 -1)" = "$two" ] || fail "expected that what is over is forgotten"
}

@test "release.lua with ALL ends all holds" {
    acquire "$one"
    script renew "$key" "$facts" "$facts:holds" , "$one.12345678" 20000 1
    script release "$key" "$facts" "$facts:holds" "$facts:wake" "$facts:waiting" , "$one" 0 0 0 1000 1
    prints 1
    is_free "$key"
}

@test "acquire.lua adds one entry per waiter, for the requested time, and gives it a number" {
    acquire "$one"
    queue "$two" '' w1 60000
    first 0
    [ "${lines[8]} ${lines[10]} ${lines[11]}" = '1 1 0' ] || fail 'expected one waiter, ticket 1, nobody before it'
    queue "$two" '' w2 60000
    [ "${lines[8]} ${lines[10]} ${lines[11]}" = '2 2 1' ] || fail 'expected two waiters, ticket 2, one before it'
    queue "$two" '' w1 60000 1
    [ "${lines[8]} ${lines[10]} ${lines[11]}" = '2 1 0' ] || fail 'expected the same number again'
    [ "$(rcli a zcard "$facts:waiting")" -eq 2 ]
    [ "$(rcli a pttl "$facts:waiting")" -gt 50000 ]
    queue "$two" '' w3 1
    queue "$two" '' '' 0
    wait_until "[ \"\$(rcli a zcount '$facts:waiting' 0 '($(($(now_ms) + 1000))')\" -eq 1 ]"
    queue "$two" '' w1 60000 1
    [ "${lines[8]}" = 2 ] || fail 'expected that a note ends'
    [ "$(rcli a zcard "$facts:waiting")" -eq 2 ] || fail 'expected that old notes are removed'
}

@test "acquire.lua: a grant removes the entry of the waiter" {
    acquire "$one"
    queue "$two" '' w1 60000
    queue "$two" '' w2 60000
    rcli a del "$key"
    queue "$two" '' w1 60000 1
    first 1
    [ "$(rcli a zrange "$facts:waiting" 0 -1)" = w2 ]
    queue "$one" '' w2 60000 2
    [ "${lines[11]}" = 0 ] || fail 'expected nobody before it any more'
}

@test "acquire.lua keeps the number and the metadata for longer than the wait" {
    acquire "$one"
    rcli a pexpire "$facts" 100
    queue "$two" '' w1 60000
    [ "$(rcli a pttl "$facts")" -gt 60000 ]
}

@test "release.lua hands over if there is a waiter: one handoff token, for the window" {
    hand_over
    [ "$(rcli a get "$key")" = "$one" ]
    [ "$(rcli a pttl "$key")" -gt 50000 ]
    [ "$(rcli a lrange "$facts:wake" 0 -1)" = "$one" ]
    [ "$(rcli a pttl "$facts:wake")" -gt 50000 ]
    script inspect "$key" "$facts" "$facts:holds" "$facts:waiting" , 0
    [ "${lines[3]} ${lines[8]}" = '1 1' ] || fail 'expected a hand-over and one waiter'
}

@test "release.lua: a second release pushes no second handoff token, nor one of another client" {
    local again
    hand_over
    rcli a lpop "$facts:wake"
    for again in 0 1; do
        give_back "$one" 0 "$again" 0 60000
        prints $((again == 1 ? 1 : -1))
        [ "$(rcli a llen "$facts:wake")" -eq 0 ]
    done
    give_back "$two" 0 0 1 60000
    prints 0
    [ "$(rcli a llen "$facts:wake")" -eq 0 ]
    [ "$(rcli a hget "$facts" gone)" = "$one" ] || fail 'the hand-over must stay one'
    [ "$(rcli a get "$key")" = "$one" ]
}

@test "release.lua releases what the handoff token left where its release came late" {
    acquire "$one"
    queue "$two" '' w1 60000
    give_back "$two" 0 0 1 60000 0 "$one"
    prints 0
    [ "$(rcli a get "$key")" = "$one" ] || fail 'it was not given back yet'
    give_back "$one" 0 0 0 60000
    give_back "$two" 0 0 1 60000 0 ''
    prints 0
    give_back "$two" 0 0 1 60000 0 "$one"
    prints 1
    [ "$(rcli a get "$key")" = "$two" ]
    [ "$(rcli a hget "$facts" gone)" = "$two" ]
    [ "$(rcli a lrange "$facts:wake" 0 -1)" = "$two" ]
    script inspect "$key" "$facts" "$facts:holds" "$facts:waiting" , 0
    [ "${lines[3]} ${lines[8]}" = '1 1' ] || fail 'expected a hand-over and one waiter'
    leave w1 0
    give_back "$one" 0 0 1 60000 0 "$two"
    prints 1
    is_free "$key"
    [ "$(rcli a llen "$facts:wake")" -eq 0 ] || fail 'that handoff token is good for nothing any more'
}

@test "release.lua: what the handoff token left has no holds of the earlier lock" {
    acquire "$one"
    script renew "$key" "$facts" "$facts:holds" , "$one" 60000 0 1 0 me@here:1 label "$one.abcdefgh"
    queue "$two" '' w1 60000
    give_back "$one" 0 0 0 60000 1
    rcli a zadd "$facts:holds" 99999999999999 "$one.abcdefgh"
    give_back "$two" 0 0 1 60000 0 "$one"
    prints 1
    [ "$(rcli a lrange "$facts:wake" 0 -1)" = "$two" ]
    [ "$(rcli a hget "$facts" owner)" = '' ] || fail 'they are not of the one who had it then'
}

@test "release.lua deletes if the waiters are gone" {
    acquire "$one"
    queue "$two" '' w1 60000
    leave w1 0
    give_back "$one" 0 0 0 60000
    prints 1
    is_free "$key"
    acquire "$two"
    queue "$one" '' w1 1
    wait_until "[ \"\$(rcli a exists '$facts:waiting')\" -eq 0 ]"
    give_back "$two" 0 0 0 60000
    prints 1
    is_free "$key"
}

@test "release.lua deletes if it cannot hand over" {
    local sabotage
    for sabotage in "set $facts:waiting x" "set $facts x"; do
        rcli a del "$key" "$facts" "$facts:wake" "$facts:waiting"
        acquire "$one"
        queue "$two" '' w1 60000
        # shellcheck disable=SC2086
        rcli a $sabotage
        give_back "$one" 0 0 0 60000
        prints 1
        is_free "$key"
    done
}

@test "release.lua with a time to keep wakes nobody" {
    acquire "$one"
    queue "$two" '' w1 60000
    give_back "$one" 5000 0 0 60000
    [ "$(rcli a llen "$facts:wake")" -eq 0 ]
    [ "$(rcli a pttl "$key")" -le 5000 ]
}

@test "acquire.lua: only the handoff token can be replaced, and only once it is released" {
    acquire "$one"
    queue "$two" "$one" w1 60000
    first 0
    [ "${lines[3]}" = 0 ]
    give_back "$one" 0 0 0 60000
    queue "$two" '' w2 60000
    first 0
    [ "${lines[3]}" = 1 ] || fail 'expected that it says of the hand-over'
    queue "$two" "$two" w2 60000
    first 0
    queue "$two" "$one" w1 60000
    first 1
    [ "$(rcli a get "$key")" = "$two" ]
    [ "$(rcli a pttl "$key")" -gt 10000 ]
    [ "$(rcli a exists "$facts:wake")" -eq 0 ] || fail 'the handoff token is used up'
    queue "$one" "$one" w2 60000
    first 0
    [ "$(rcli a get "$key")" = "$two" ]
}

@test "acquire.lua leaves the handoff token of another release in the list" {
    hand_over
    rcli a del "$key"
    queue "$two" AAAA w2 60000
    first 1
    [ "$(rcli a lrange "$facts:wake" 0 -1)" = "$one" ]
}

@test "a handoff token renews, releases and heals nothing" {
    local soon=$(($(rcli a time | head -n 1) * 1000 + 60000)) left
    hand_over
    script renew "$key" "$facts" "$facts:holds" , "$one" 900000 1
    first 0
    [ "$(rcli a pttl "$key")" -le 60000 ]
    queue "$two" "$one" w1 60000
    left=$(rcli a pttl "$key")
    script renew "$key" "$facts" "$facts:holds" , "$one" 900000 1
    first 0
    give_back "$one" 0 0 1 60000
    prints 0
    script heal "$key" "$facts" "$facts:holds" , "$one" 900000 5 "$soon" me@here:1 label 3000
    prints 0
    script undo "$key" , "$one" "$facts"
    prints 0
    pass "$one"
    prints 0
    [ "$(rcli a get "$key")" = "$two" ]
    [ "$(rcli a pttl "$key")" -le "$left" ]
    [ "$(rcli a exists "$facts:wake")" -eq 0 ]
}

@test "pass.lua passes on a handoff token that is still valid, once" {
    hand_over
    pass "$one"
    prints 0
    [ "$(rcli a llen "$facts:wake")" -eq 1 ]
    rcli a del "$facts:wake"
    rcli a pexpire "$key" 30000
    pass "$one"
    prints 1
    [ "$(rcli a lrange "$facts:wake" 0 -1)" = "$one" ]
    [ "$(rcli a pttl "$facts:wake")" -le 30000 ]
    [ "$(rcli a pttl "$facts:wake")" -gt 0 ]
    rcli a del "$facts:wake"
    pass "$two"
    prints 0
    rcli a del "$key"
    pass "$one"
    prints 0
    rcli a set "$key" "$one"
    rcli a hset "$facts" gone "$two"
    pass "$one"
    prints 0
    [ "$(rcli a exists "$facts:wake")" -eq 0 ]
}

@test "leave.lua removes the entry and unblocks, and leaves nothing" {
    acquire "$one"
    queue "$two" '' w1 60000
    queue "$two" '' w2 60000
    rcli a blpop "$facts:wake" "$facts:leave:w1" 20 >popped 3>&- 4>&- &
    local client=$!
    wait_until "rcli a info clients | grep -q 'blocked_clients:1'"
    leave w1 1
    prints 1
    wait "$client"
    [ "$(cat popped)" = "$facts:leave:w1"$'\nleave' ]
    [ "$(rcli a exists "$facts:leave:w1")" -eq 0 ]
    [ "$(rcli a zrange "$facts:waiting" 0 -1)" = w2 ]
    leave w2 0
    [ "$(rcli a exists "$facts:leave:w2" "$facts:waiting")" -eq 0 ]
    # Where it was not blocked any more, nobody would take it.
    leave w2 1
    wait_until "[ \"\$(rcli a exists '$facts:leave:w2')\" -eq 0 ]"
}

@test "undo.lua deletes for the token only, with its entry in the history" {
    remember "$one" 5
    script undo "$key" , "$two" "$facts"
    prints 0
    is_held "$key"
    [ "$(rcli a llen "$facts:history")" -eq 1 ]
    script undo "$key" , "$one" "$facts"
    prints 1
    is_free "$key"
    [ "$(rcli a llen "$facts:history")" -eq 0 ]
}

# remember TOKEN HISTORY: acquire with a history.
remember() {
    script acquire "$key" "$facts" "$facts:holds" "$facts:wake" "$facts:waiting" , "$1" 20000 0 me@here:1 label \
        0 1 '' '' 0 0 7 "$2"
}

# outcomes: the outcomes and exit statuses in the history, the newest first.
outcomes() { rcli a lrange "$facts:history" 0 -1 | cut -d ' ' -f 3,4 | paste -sd ,; }

@test "the history: acquire.lua adds an entry, release.lua completes it once, history.lua reads it" {
    remember "$one" 5
    [ "$(outcomes)" = 'open -' ]
    remember "$one" 5 # sent again
    [ "$(outcomes)" = 'open -' ]
    give_back "$one" 0 0 0 1000 0 '' 'ran 0'
    give_back "$one" 0 1 0 1000 0 '' 'ran 0'
    give_back "$one" 0 0 1 1000 0 '' 'lost 7'
    [ "$(outcomes)" = 'ran 0' ]
    remember "$two" 5
    give_back "$two" 0 0 0 1000 1 '' 'broken -' '' you@there:2
    give_back "$two" 0 0 0 1000 0 '' 'lost 143'
    script history "$key" "$facts" "$facts:waiting" "$facts:history" ,
    [[ ${lines[3]} == "$two "*' broken - '*' me@here:1labelyou@there:2' ]] || fail "expected who broke it"
    [[ ${lines[4]} == "$one "*' ran 0 '*' 7 '*' 9 5 me@here:1label' ]] || fail "expected the run"
    [ "$(rcli a pttl "$facts:history")" -gt 2591990000 ]
}

@test "the history: a holder that never released is expired, when its lease ended" {
    local ended now
    remember "$one" 5
    rcli a del "$key" >/dev/null
    rcli a pexpire "$facts:history" $((2592000000 - 5000)) >/dev/null
    remember "$two" 5
    [ "$(outcomes)" = 'open -,expired -' ]
    ended=$(rcli a lindex "$facts:history" 1 | cut -d ' ' -f 2)
    now=$(rcli a time | head -n 1)
    [ $((now - ended / 1000)) -ge 4 ]
    [ $((now - ended / 1000)) -le 30 ]
    # A command that finds its lock gone has lost it, whatever it thought.
    rcli a del "$key" >/dev/null
    give_back "$two" 0 0 0 1000 0 '' 'ran 0'
    [ "$(outcomes)" = 'lost 0,expired -' ]
    # Without a command that only means that it has expired.
    remember "$three" 5
    rcli a del "$key" >/dev/null
    give_back "$three" 0 0 0 1000 0 '' 'released -'
    [ "$(outcomes)" = 'open -,lost 0,expired -' ]
}

@test "the history: it has its length, and the last success and command outlive it" {
    local i
    remember "$one" 2
    give_back "$one" 0 0 0 1000 0 '' 'ran 0'
    local success
    success=$(rcli a lindex "$facts:history" 0 | cut -d ' ' -f 2)
    for i in 1 2 3 4; do
        remember "$two" 2
        give_back "$two" 0 0 0 1000 0 '' 'ran 3'
        rcli a hdel "$facts" gone freed token >/dev/null # so that this token may come again
    done
    remember "$three" 2
    [ "$(outcomes)" = 'open -,ran 3,ran 3' ]
    [ "$(rcli a lindex "$facts:history" 0 | cut -d ' ' -f 5)" = "$success" ]
    [ "$(rcli a lindex "$facts:history" 0 | cut -d ' ' -f 7)" = 3 ]
    give_back "$three" 0 0 0 1000 0 '' 'released -'
    remember "$one" 0
    [ "$(outcomes)" = 'released -,ran 3,ran 3' ]
}

@test "the history: a key of another type costs nobody the lock" {
    rcli a set "$facts:history" something
    remember "$one" 5
    first 1
    script renew "$key" "$facts" "$facts:holds" , "$one" 20000 1
    first 1
    give_back "$one" 0 0 0 1000 0 '' 'ran 0'
    prints 1
    is_free "$key"
    remember "$two" 5
    script undo "$key" , "$two" "$facts"
    prints 1
}

@test "the history: a renewal keeps it for 30 days after the lease" {
    remember "$one" 5
    rcli a pexpire "$facts:history" 100000 >/dev/null
    script renew "$key" "$facts" "$facts:holds" , "$one" 60000 1
    [ "$(rcli a pttl "$facts:history")" -gt 2592050000 ]
}

@test "fence.lua raises the fence for the holder only" {
    acquire "$one"
    local raised=$((lines[1] + 10000000001))
    script fence "$key" "$facts" , "$one" "$raised"
    prints 1
    [ "$(rcli a hget "$facts" fence)" = "$raised" ]
    script fence "$key" "$facts" , "$one" 5
    prints 1
    [ "$(rcli a hget "$facts" fence)" = "$raised" ]
    script fence "$key" "$facts" , "$two" $((raised + 1))
    prints 0
    [ "$(rcli a hget "$facts" fence)" = "$raised" ]
}

@test "no script records a fence that is more than a day ahead of the server's clock" {
    local fence fine far now n
    acquire "$one"
    fence=${lines[1]}
    now=$(rcli a time | head -n 1)
    fine=$(((now + 86340) * 1000000)) far=$(((now + 86460) * 1000000))
    for n in "$far" 9007199254740990; do
        script fence "$key" "$facts" , "$one" "$n"
        prints 2
        script renew "$key" "$facts" "$facts:holds" , "$one" 20000 "$n"
        first 1
        [ "${lines[3]}" = "$fence" ] || fail "told another fence than the recorded one"
        [ "$(rcli a hget "$facts" fence)" = "$fence" ]
        rcli a del "$key"
        script heal "$key" "$facts" "$facts:holds" , "$one" 20000 "$n" "$((now + 60))000" me@here:1 label 3000
        prints 1
        [ "$(rcli a hget "$facts" fence)" = "$fence" ]
        [ "$(rcli a pttl "$facts")" -le 3620000 ] || fail "its facts are kept for too long"
    done
    script renew "$key" "$facts" "$facts:holds" , "$one" 20000 "$fine"
    [ "${lines[3]}" = "$fine" ]
    [ "$(rcli a hget "$facts" fence)" = "$fine" ]
    script fence "$key" "$facts" , "$one" $((fine + 1))
    prints 1
    rcli a del "$key"
    script heal "$key" "$facts" "$facts:holds" , "$one" 20000 $((fine + 2)) "$((now + 60))000" me@here:1 label 3000
    prints 1
    [ "$(rcli a hget "$facts" fence)" = $((fine + 2)) ]
    # What a server has told itself it goes on from, whatever its clock did since.
    rcli a del "$key"
    acquire "$two" "$far"
    [ "${lines[1]}" = $((fine + 3)) ]
}

@test "inspect.lua reads and changes nothing" {
    script inspect "$key" "$facts" "$facts:holds" "$facts:waiting" ,
    [ "${lines[0]}" = 0 ]
    acquire "$one"
    rcli a hgetall "$facts" >before
    script inspect "$key" "$facts" "$facts:holds" "$facts:waiting" ,
    [ "${lines[1]}" = "$one" ]
    [ "${lines[2]}" -le 20000 ]
    rcli a hgetall "$facts" | diff before -
}

@test "heal.lua restores the lock on a server that lost it, once and in time" {
    local late=$(($(rcli a time | head -n 1) * 1000 - 1000)) soon=$(($(rcli a time | head -n 1) * 1000 + 60000))
    heal() { script heal "$key" "$facts" "$facts:holds" , "$1" 20000 5 "$2" me@here:1 label 3000; }
    heal "$one" "$late"
    prints 0
    is_free "$key"
    heal "$one" "$soon"
    prints 1
    [ "$(rcli a get "$key")" = "$one" ]
    [ "$(rcli a pttl "$key")" -le 20000 ]
    heal "$two" "$soon"
    prints 0
    [ "$(rcli a get "$key")" = "$one" ]
    script release "$key" "$facts" "$facts:holds" "$facts:wake" "$facts:waiting" , "$one" 0
    heal "$one" "$soon"
    prints 0
    is_free "$key"
}

@test "heal.lua restores the holds that others know, unless they have ended" {
    local soon=$(($(rcli a time | head -n 1) * 1000 + 60000)) inner=$one.12345678
    heal() { script heal "$key" "$facts" "$facts:holds" , "$1" 20000 5 "$soon" me@here:1 label 3000 "${2-}"; }
    # has HOLD: is it one, and one that has not ended?
    has() { [[ $(rcli a zscore "$facts:holds" "$1") == [1-9]* ]]; }
    heal "$one"
    prints 1
    [ "$(rcli a exists "$facts:holds")" = 0 ]
    rcli a del "$key" "$facts"
    heal "$one" " $one 13000 $inner 14000 $two.12345678 15000 $one 12900 junk"
    prints 1
    has "$one"
    has "$inner"
    [ "$(rcli a zcard "$facts:holds")" = 2 ]
    rcli a del "$key" "$facts"
    heal "$inner" " $one 13000"
    prints 1
    [ "$(rcli a get "$key")" = "$one" ]
    has "$one"
    has "$inner"
    script release "$key" "$facts" "$facts:holds" "$facts:wake" "$facts:waiting" , "$one" 0
    prints 2
    rcli a del "$key"
    heal "$one"
    prints 0
    heal "$inner" " $one 13000"
    prints 1
    has "$inner"
    ! has "$one" || fail "expected that it stays ended"
}

@test "break.lua removes only what matches the fingerprint" {
    local mark
    script break "$key" , ''
    prints ''
    rcli a set "$key" 'a foreign token'
    script break "$key" , ''
    mark=$output
    [ ${#mark} -eq 40 ] || fail "expected a mark"
    rcli a set "$key" 'another'
    script break "$key" , "$mark"
    prints 0
    [ "$(rcli a get "$key")" = another ]
    rcli a set "$key" 'a foreign token' px 20000
    script break "$key" , "$mark"
    prints 1
    is_free "$key"
    script break "$key" , "$mark"
    prints -1
    script break "$key" , "$mark" 1
    prints 1
}

@test "break.lua: the fingerprint of a key of another type covers its content, not its expiry" {
    local mark
    rcli a hset "$key" 5dbf0eb8-6e4f-4a4c-9a20-fd7f0a0f7c5a:57 1
    script break "$key" , ''
    mark=$output
    rcli a pexpire "$key" 20000
    script break "$key" , ''
    prints "$mark"
    rcli a hincrby "$key" 5dbf0eb8-6e4f-4a4c-9a20-fd7f0a0f7c5a:57 1
    script break "$key" , "$mark"
    prints 0
    is_held "$key"
    rcli a hincrby "$key" 5dbf0eb8-6e4f-4a4c-9a20-fd7f0a0f7c5a:57 -1
    script break "$key" , "$mark"
    prints 1
    is_free "$key"
}

@test "break.lua does not read what is too large for a lock" {
    rcli a eval 'for i = 1, 5000 do redis.call("rpush", KEYS[1], "an element " .. i) end' 1 "$key"
    script break "$key" , ''
    prints -
    rcli a del "$key"
    rcli a eval 'redis.call("set", KEYS[1], string.rep("t", 50000))' 1 "$key"
    script break "$key" , ''
    [ ${#output} -eq 40 ] || fail "expected a mark"
    rcli a eval 'redis.call("set", KEYS[1], string.rep("t", 70000))' 1 "$key"
    script break "$key" , ''
    prints -
    script break "$key" , 0000000000000000000000000000000000000000
    prints 0
}

@test "inspect.lua returns the holder of a lock of Redisson" {
    rcli a hset "$key" mode write 5dbf0eb8-6e4f-4a4c-9a20-fd7f0a0f7c5a:57:write 1
    script inspect "$key" "$facts" "$facts:holds" "$facts:waiting"
    [ "${lines[1]}" = 5dbf0eb8-6e4f-4a4c-9a20-fd7f0a0f7c5a:57 ] || fail "expected the holder's field"
    rcli a hset "$key" 1 1 2 1 3 1 4 1 5 1 6 1 7 1 8 1
    script inspect "$key" "$facts" "$facts:holds" "$facts:waiting"
    [ -z "${lines[1]}" ] || fail "looked into a hash of many fields"
}

@test "no script makes a key without a TTL" {
    local k
    acquire "$one"
    script renew "$key" "$facts" "$facts:holds" , "$one" 20000 4503599627370497
    script fence "$key" "$facts" , "$one" 4503599627370498
    script release "$key" "$facts" "$facts:holds" "$facts:wake" "$facts:waiting" , "$one" 0
    queue "$two" '' w1 60000
    give_back "$two" 0 0 0 60000
    leave w2 1
    rcli a --raw keys "*$key*" >keys
    grep -q ':waiting$' keys && grep -q ':wake$' keys && grep -q ':leave:' keys
    while IFS= read -r k; do
        [ "$(rcli a pttl "$k")" -ne -1 ] || fail "$k has no TTL" # -2: it has ended already
    done <keys
}
