#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# The scripts of src/lua, run with EVAL: waiters, and the handoff token.

load ../lib/scripts

@test "acquire.lua adds one entry per waiter, for the requested time, and gives it a number" {
    acquire "$one"
    returns 0 queue "$two" '' w1 60000
    [ "${lines[8]} ${lines[10]} ${lines[11]}" = '1 1 0' ] || fail 'expected one waiter, ticket 1, nobody before it'
    queue "$two" '' w2 60000
    [ "${lines[8]} ${lines[10]} ${lines[11]}" = '2 2 1' ] || fail 'expected two waiters, ticket 2, one before it'
    queue "$two" '' w1 60000 1
    [ "${lines[8]} ${lines[10]} ${lines[11]}" = '2 1 0' ] || fail 'expected the same number again'
    [ "$(rcli a zcard "$meta:waiting")" -eq 2 ]
    queue "$two" '' w2 90000 2
    [ "$(rcli a pttl "$meta:waiting")" -gt 80000 ]
    queue "$two" '' w3 1
    queue "$two" '' '' 0
    wait_until "[ \"\$(rcli a zcount '$meta:waiting' 0 '($(($(now_ms) + 1000))')\" -eq 1 ]"
    queue "$two" '' w1 60000 1
    [ "${lines[8]}" = 2 ] || fail 'expected that a note ends'
    [ "$(rcli a zcard "$meta:waiting")" -eq 2 ] || fail 'expected that old notes are removed'
}

@test "acquire.lua: of those before a waiter, the ones that have given up do not count" {
    acquire "$one"
    for waiter in w1 w2 w3 w4; do queue "$two" '' "$waiter" 60000; done
    rcli a zrem "$meta:waiting" w2 w3
    queue "$two" '' w4 60000 4
    [ "${lines[8]} ${lines[10]} ${lines[11]}" = '2 4 1' ] || fail 'expected one before it'
    queue "$two" '' w5 60000
    [ "${lines[10]} ${lines[11]}" = '5 2' ] || fail 'expected two before it'
    queue "$two" '' w4 60000 4
    [ "${lines[8]} ${lines[11]}" = '3 1' ] || fail 'expected one before it, and one behind'
}

@test "acquire.lua: no more waiters than the caller allows, and whoever is one of them stays" {
    acquire "$one"
    queue "$two" '' w1 60000 0 1
    queue "$two" '' w2 60000 0 1
    [ "${lines[8]} ${lines[10]} ${lines[11]}" = '1 -1 0' ] || fail 'expected that w2 may not wait'
    queue "$two" '' w2 60000 0 2
    queue "$two" '' w1 60000 0 1 # the reply to the first request was lost
    [ "${lines[8]} ${lines[10]}" = '2 3' ] || fail 'expected w1'
    queue "$two" '' w1 60000 1 1
    [ "${lines[8]} ${lines[10]}" = '2 1' ] || fail 'expected w1'
    queue "$two" '' w3 60000 2 1 # its entry has expired
    [ "${lines[8]} ${lines[10]}" = '3 2' ] || fail 'expected w3'
    queue "$two" '' '' 0 0 1
    [ "${lines[8]} ${lines[10]}" = '3 0' ] || fail 'expected that this one does not wait'
}

@test "acquire.lua: a grant removes the entry of the waiter" {
    acquire "$one"
    queue "$two" '' w1 60000
    queue "$two" '' w2 60000
    rcli a del "$key"
    returns 1 queue "$two" '' w1 60000 1
    [ "$(rcli a zrange "$meta:waiting" 0 -1)" = w2 ]
    queue "$one" '' w2 60000 2
    [ "${lines[11]}" = 0 ] || fail 'expected nobody before it any more'
}

@test "acquire.lua keeps the number and the metadata for longer than the wait" {
    acquire "$one"
    rcli a pexpire "$meta" 100
    queue "$two" '' w1 60000
    [ "$(rcli a pttl "$meta")" -gt 3600000 ]
}

@test "release.lua hands over if there is a waiter: one handoff token, for the window" {
    hand_over
    [ "$(rcli a get "$key")" = "$one" ]
    [ "$(rcli a pttl "$key")" -gt 50000 ]
    [ "$(rcli a lrange "$meta:wake" 0 -1)" = "$one" ]
    [ "$(rcli a pttl "$meta:wake")" -gt 50000 ]
    inspect 0
    [ "${lines[3]} ${lines[8]}" = '1 1' ] || fail 'expected a hand-over and one waiter'
}

@test "release.lua: a second release pushes no second handoff token, nor one of another client" {
    hand_over
    rcli a lpop "$meta:wake"
    for again in 0 1; do
        give_back "$one" 0 "$again" 0 60000
        prints $((again == 1 ? 1 : -1))
        [ "$(rcli a llen "$meta:wake")" -eq 0 ]
    done
    returns 0 give_back "$two" 0 0 1 60000
    [ "$(rcli a llen "$meta:wake")" -eq 0 ]
    [ "$(rcli a hget "$meta" gone)" = "$one" ] || fail 'the hand-over must stay one'
    [ "$(rcli a get "$key")" = "$one" ]
}

@test "release.lua releases what the handoff token left where its release came late" {
    acquire "$one"
    queue "$two" '' w1 60000
    returns 0 give_back "$two" 0 0 1 60000 0 "$one"
    [ "$(rcli a get "$key")" = "$one" ] || fail 'it was not given back yet'
    give_back "$one" 0 0 0 60000
    returns 0 give_back "$two" 0 0 1 60000 0 ''
    returns 1 give_back "$two" 0 0 1 60000 0 "$one"
    [ "$(rcli a get "$key")" = "$two" ]
    [ "$(rcli a hget "$meta" gone)" = "$two" ]
    [ "$(rcli a lrange "$meta:wake" 0 -1)" = "$two" ]
    inspect 0
    [ "${lines[3]} ${lines[8]}" = '1 1' ] || fail 'expected a hand-over and one waiter'
    leave w1 0
    returns 1 give_back "$one" 0 0 1 60000 0 "$two"
    is_free "$key"
    [ "$(rcli a llen "$meta:wake")" -eq 0 ] || fail 'that handoff token is good for nothing any more'
}

@test "release.lua: what the handoff token left has no holds of the earlier lock" {
    acquire "$one"
    renew "$one" 60000 0 1 0 me@here:1 label "$one.abcdefgh"
    queue "$two" '' w1 60000
    give_back "$one" 0 0 0 60000 1
    rcli a zadd "$meta:holds" 99999999999999 "$one.abcdefgh"
    returns 1 give_back "$two" 0 0 1 60000 0 "$one"
    [ "$(rcli a lrange "$meta:wake" 0 -1)" = "$two" ]
    [ "$(rcli a hget "$meta" owner)" = '' ] || fail 'they are not of the one who had it then'
}

@test "release.lua deletes if the waiters are gone" {
    acquire "$one"
    queue "$two" '' w1 60000
    leave w1 0
    returns 1 give_back "$one" 0 0 0 60000
    is_free "$key"
    acquire "$two"
    queue "$one" '' w1 1
    wait_until "[ \"\$(rcli a exists '$meta:waiting')\" -eq 0 ]"
    returns 1 give_back "$two" 0 0 0 60000
    is_free "$key"
    # The entry of one that was killed is there until the next attempt of another, but its time is over.
    acquire "$three"
    rcli a zadd "$meta:waiting" 1000 w1
    returns 1 give_back "$three" 0 0 0 60000
    is_free "$key"
}

@test "release.lua deletes if it cannot hand over" {
    for sabotage in "set $meta:waiting x" "set $meta x"; do
        rcli a del "$key" "$meta" "$meta:wake" "$meta:waiting"
        acquire "$one"
        queue "$two" '' w1 60000
        rcli a $sabotage
        returns 1 give_back "$one" 0 0 0 60000
        is_free "$key"
    done
}

@test "release.lua with a time to keep hands nothing over, and tells the waiters" {
    acquire "$one"
    queue "$two" '' w1 60000
    rcli a zadd "$meta:waiting" 1000 w2 # its time is over
    give_back "$one" 5000 0 0 60000
    [ "$(rcli a llen "$meta:wake")" -eq 0 ]
    [ "$(rcli a lrange "$meta:leave:w1" 0 -1)" = kept ]
    [ "$(rcli a exists "$meta:leave:w2")" -eq 0 ]
    [ "$(rcli a pttl "$meta:leave:w1")" -le 60000 ]
    [ "$(rcli a pttl "$key")" -le 5000 ]
}

@test "acquire.lua: only the handoff token can be replaced, and only once it is released" {
    acquire "$one"
    returns 0 queue "$two" "$one" w1 60000
    [ "${lines[3]}" = 0 ]
    give_back "$one" 0 0 0 60000
    returns 0 queue "$two" '' w2 60000
    [ "${lines[3]}" = 1 ] || fail 'expected that it says of the hand-over'
    returns 0 queue "$two" "$two" w2 60000
    returns 1 queue "$two" "$one" w1 60000
    [ "$(rcli a get "$key")" = "$two" ]
    [ "$(rcli a pttl "$key")" -gt 10000 ]
    [ "$(rcli a exists "$meta:wake")" -eq 0 ] || fail 'the handoff token is used up'
    returns 0 queue "$one" "$one" w2 60000
    [ "$(rcli a get "$key")" = "$two" ]
}

@test "acquire.lua leaves the handoff token of another release in the list, the next release does not" {
    hand_over
    rcli a del "$key"
    returns 1 queue "$two" AAAA w2 60000
    [ "$(rcli a lrange "$meta:wake" 0 -1)" = "$one" ]
    returns 1 give_back "$two" 0 0 0 60000
    [ "$(rcli a lrange "$meta:wake" 0 -1)" = "$two" ]
}

@test "a handoff token renews, releases and heals nothing" {
    soon=$(($(rcli a time | head -n 1) * 1000 + 60000))
    hand_over
    returns 0 renew "$one" 900000 1
    returns 0 fence "$one" 4503599627370497
    [ "$(rcli a pttl "$key")" -le 60000 ]
    queue "$two" "$one" w1 60000
    left=$(rcli a pttl "$key")
    returns 0 renew "$one" 900000 1
    returns 0 give_back "$one" 0 0 1 60000
    returns 0 script heal "$key" "$meta" "$meta:holds" , "$one" 900000 5 "$soon" me@here:1 label 3000
    returns 0 script undo "$key" "$meta:history" , "$one"
    returns 0 pass "$one"
    [ "$(rcli a get "$key")" = "$two" ]
    [ "$(rcli a pttl "$key")" -le "$left" ]
    [ "$(rcli a exists "$meta:wake")" -eq 0 ]
}

@test "pass.lua passes on a handoff token that is still valid, once" {
    hand_over
    returns 0 pass "$one"
    [ "$(rcli a llen "$meta:wake")" -eq 1 ]
    rcli a del "$meta:wake"
    rcli a pexpire "$key" 30000
    returns 1 pass "$one"
    [ "$(rcli a lrange "$meta:wake" 0 -1)" = "$one" ]
    [ "$(rcli a pttl "$meta:wake")" -le 30000 ]
    [ "$(rcli a pttl "$meta:wake")" -gt 10000 ]
    rcli a del "$meta:wake"
    returns 0 pass "$two"
    rcli a del "$key"
    returns 0 pass "$one"
    rcli a set "$key" "$one"
    rcli a hset "$meta" gone "$two"
    returns 0 pass "$one"
    [ "$(rcli a exists "$meta:wake")" -eq 0 ]
}

@test "leave.lua removes the entry and unblocks, and leaves nothing" {
    acquire "$one"
    queue "$two" '' w1 60000
    queue "$two" '' w2 60000
    rcli a blpop "$meta:wake" "$meta:leave:w1" 20 >popped 3>&- 4>&- &
    client=$!
    wait_until "[[ \$(rcli a info clients) == *blocked_clients:1* ]]"
    returns 1 leave w1 1
    wait "$client"
    [ "$(cat popped)" = "$meta:leave:w1"$'\nleave' ]
    [ "$(rcli a exists "$meta:leave:w1")" -eq 0 ]
    [ "$(rcli a zrange "$meta:waiting" 0 -1)" = w2 ]
    leave w2 0
    [ "$(rcli a exists "$meta:leave:w2" "$meta:waiting")" -eq 0 ]
    # Where it was not blocked any more, nobody would take it.
    leave w2 1
    wait_until "[ \"\$(rcli a exists '$meta:leave:w2')\" -eq 0 ]"
}

@test "slots: the holder of each, and an entry only where all are held" {
    local slots=("{$key}:slots:dlock:waiting" "$key" "$meta" "{$key}2" "{$key}2:dlock")
    acquire "$one"
    script slots "${slots[@]}" , w1 60000
    [[ ${lines[*]} == "0 $one "*' me@here:1 label '*' 0 string 0 0  0  -2 0 '*' none 0 0'* ]] || fail 'expected one that is held'
    [ "$(rcli a exists "${slots[0]}")" = 0 ] || fail 'expected no entry'
    rcli a set "{$key}2" foreign >/dev/null
    rcli a zadd "${slots[0]}" 1000 w0 # its time is over
    script slots "${slots[@]}" , w1 60000
    script slots "${slots[@]}"
    [[ ${lines[*]} == "0 $one "*' 1 string 0 0  0 foreign -1 0 '*' 1 string 0 0'* ]] || fail 'expected both, and one who waits'
    [ "$(rcli a zrange "${slots[0]}" 0 -1)" = w1 ] || fail 'expected one entry'
    script slots "${slots[@]}" , w2 60000 1
    [ "${lines[8]} ${lines[10]}" = '1 -1' ] || fail 'expected that w2 may not wait'
    script slots "${slots[@]}" , w1 60000 1 # the reply to the first request was lost
    [ "${lines[8]} ${lines[10]} ${lines[11]}" = '1 0 0' ] || fail 'expected w1, with nobody before it'
    script slots "${slots[@]}" , w2 90000
    [ "$(rcli a pttl "${slots[0]}")" -gt 80000 ]
}

# ------------------------------------------------------------- asking to end

# replace TOKEN WAITER NUMBER [HANDOFF MOST]: a caller that replaces the holder, and waits.
replace() {
    script acquire "$key" "$meta" "$meta:holds" "$meta:wake" "$meta:waiting" "$meta:history" , "$1" 20000 0 "$2@here:1" label 0 0 "${4-}" \
        "$2 1 0 0 " 60000 0 0 9 "${5-0}" "$3"
}

@test "ask marks the token that holds the lock, and its renewal shows who asked first" {
    acquire "$one"
    answers 0 ask "$two" you@there:1
    answers 1 ask "$one" you@there:1
    answers 1 ask "$one" her@there:1
    renew "$one"
    [ "${lines[5]}" = you@there:1 ]
    give_back "$one"
    answers -1 ask "$one" you@there:1
    acquire "$two"
    renew "$two"
    [ "${lines[5]-}" = '' ]
    answers 1 ask "$two" her@there:1
    renew "$two"
    [ "${lines[5]}" = her@there:1 ] || fail 'that its former holder was asked does not count'
}

@test "ask finds a token that was released and keeps the lock: 0; a lock without metadata gets some that expires" {
    acquire "$one"
    give_back "$one" 20000
    answers 0 ask "$one" you@there:1
    rcli a del "$meta"
    answers 1 ask "$one" you@there:1
    [ "$(rcli a pttl "$meta")" -gt 3610000 ]
    rcli a del "$key"
    rcli a hset "$key" field 1
    answers 0 ask "$one" you@there:1
}

@test "acquire: who replaces marks the holder; of several the newest counts" {
    acquire "$one"
    queue "$two" '' w0 60000
    replace "$two" w1 0 '' 1
    [ "${lines[10]}" = -1 ] && [ -z "$(rcli a hmget "$meta" asked replace)" ] || fail 'it may not wait'
    leave w0 0
    returns 0 replace "$two" w1 0
    number=${lines[13]}
    [ "$number" -gt 1700000000000000 ]
    [[ $(rcli a hget "$meta" asked) == "$one "*' w1@here:1' ]]
    replace "$two" w1 $((number += 60000000)) # of another node, whose clock is ahead
    [ "${lines[13]}" = "$number" ]
    replace "$two" w2 0
    [ "${lines[13]}" -gt "$number" ]
    [[ $(rcli a hget "$meta" asked) == "$one "*' w1@here:1' ]] || fail 'expected who asked first'
    replace "$two" w1 "$number"
    [ "${lines[*]}" = '-3 w2@here:1' ]
    give_back "$one"
    returns 1 replace "$three" w1 "$number" "$one" # it must release what it was handed
    [ "${lines[2]}" = w2@here:1 ]
    replace "$three" w1 "$number" "$one" # sent again
    [ "${lines[0]} ${lines[2]}" = '1 w2@here:1' ]
    give_back "$three"
    replace "$two" w2 "$number" "$three"
    [ "${#lines[@]}" -eq 2 ]
    [[ $(rcli a lrange "$meta:history" 0 -1) =~ ^"$two "[^$'\n']*$ ]] || fail 'expected one holder'
    returns -3 replace "$one" w1 "$number"
}

@test "acquire: who replaces and does not wait is the newest only if the lock is granted" {
    acquire "$one"
    replace "$two" w1 0
    number=${lines[13]}
    replace "$three" w2 -1
    returns 0 replace "$two" w1 "$number"
    give_back "$one"
    rcli a del "$key"
    returns 1 replace "$three" w2 -1
    returns -3 replace "$two" w1 "$number"
}
