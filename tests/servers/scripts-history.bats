#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# The scripts of src/lua, run with EVAL: the history, and undo.lua.

load ../lib/scripts

# remember TOKEN HISTORY: acquire with a history.
remember() {
    script acquire "$key" "$meta" "$meta:holds" "$meta:wake" "$meta:waiting" "$meta:history" , "$1" 20000 0 me@here:1 label \
        0 1 '' '' 0 0 7 "$2"
}

# outcomes: the outcomes and exit statuses in the history, the newest first.
outcomes() { rcli a lrange "$meta:history" 0 -1 | cut -d ' ' -f 3,4 | paste -sd ,; }

# last_run: the exit status of the last dlock run.
last_run() { rcli a lindex "$meta:history" 0 | cut -d ' ' -f 7; }

@test "undo.lua deletes for the token only, with its entry in the history" {
    remember "$one" 5
    returns 0 script undo "$key" "$meta:history" , "$two"
    is_held "$key"
    [ "$(rcli a llen "$meta:history")" -eq 1 ]
    returns 1 script undo "$key" "$meta:history" , "$one"
    is_free "$key"
    [ "$(rcli a llen "$meta:history")" -eq 0 ]
    # Those before it stay.
    remember "$three" 5
    give_back "$three"
    remember "$two" 5
    returns 1 script undo "$key" "$meta:history" , "$two"
    [[ $(rcli a lrange "$meta:history" 0 -1) == "$three "* ]] || fail 'expected the entry before it'
}

@test "the history: acquire.lua adds an entry, release.lua completes it once, history.lua reads it" {
    remember "$one" 5
    [ "$(outcomes)" = 'open -' ]
    [ "$(rcli a pttl "$meta:history")" -gt 2592010000 ]
    remember "$one" 5 # sent again
    [ "$(outcomes)" = 'open -' ]
    returns 1 fence "$one" "$(($(rcli a hget "$meta" fence) + 1))"
    [ "$(rcli a lindex "$meta:history" 0 | cut -d ' ' -f 10)" = "$(rcli a hget "$meta" fence)" ]
    give_back "$one" 0 0 0 1000 0 '' 'ran 0'
    give_back "$one" 0 1 0 1000 0 '' 'ran 0'
    give_back "$one" 0 0 1 1000 0 '' 'lost 7'
    [ "$(outcomes)" = 'ran 0' ]
    remember "$two" 5
    give_back "$two" 0 0 0 1000 1 '' 'broken -' '' you@there:2
    give_back "$two" 0 0 0 1000 0 '' 'lost 143'
    script history "$key" "$meta" "$meta:waiting" "$meta:history" ,
    [[ ${lines[3]} == "$two "*' broken - '*' me@here:1labelyou@there:2' ]] || fail "expected who broke it"
    [[ ${lines[4]} == "$one "*' ran 0 '*' 7 '*' 9 5 me@here:1label' ]] || fail "expected the run"
    [ "$(rcli a pttl "$meta:history")" -gt 2591990000 ]
    [ "$(last_run)" = 76 ] # so its dlock run has ended
    rcli a hset "$meta" gone '' freed '' >/dev/null
    remember "$three" 5
    rcli a hset "$meta" owner me@here:1/acquire >/dev/null
    give_back "$three" 0 0 0 1000 1 '' 'broken -' '' you@there:2
    [ "$(outcomes)" = 'broken -,broken -,ran 0' ]
    [ "$(last_run)" = 76 ] # still that of the run before
}

@test "the history: last.lua reads the newest entry of a lock that is free, and no other" {
    remember "$one" 5
    script last "$key" "$meta:history" "$key-2" "{$key-2}:dlock:history" ,
    [ "${lines[1]},${lines[2]}" = 0, ] # one is held, one has none
    give_back "$one" 0 0 0 1000 0 '' 'ran 3'
    script last "$key" "$meta:history" ,
    [[ ${lines[1]} == "$one "*' ran 3 '* ]] || fail "expected the run"
    remember "$two" 5
    rcli a del "$key" >/dev/null
    script last "$key" "$meta:history" ,
    [ "${lines[1]}" = 0 ] # the entry is open
}

@test "the history: a holder that never released is expired, when its lease ended" {
    remember "$one" 5
    rcli a del "$key" >/dev/null
    rcli a pexpire "$meta:history" $((2592000000 - 5000)) >/dev/null
    remember "$two" 5
    [ "$(outcomes)" = 'open -,expired -' ]
    ended=$(rcli a lindex "$meta:history" 1 | cut -d ' ' -f 2)
    now=$(rcli a time | head -n 1)
    [ $((now - ended / 1000)) -ge 4 ]
    [ $((now - ended / 1000)) -le 30 ]
    # A command whose release finds no lock has lost it, whatever outcome it reports.
    rcli a del "$key" >/dev/null
    give_back "$two" 0 0 0 1000 0 '' 'ran 0'
    [ "$(outcomes)" = 'lost 0,expired -' ]
    # Without a command that only means that it has expired.
    remember "$three" 5
    rcli a del "$key" >/dev/null
    give_back "$three" 0 0 0 1000 0 '' 'released -'
    [ "$(outcomes)" = 'open -,lost 0,expired -' ]
    # Somebody has deleted its key: it ended before its lease.
    remember "$one" 5
    [ "$(rcli a lindex "$meta:history" 1 | cut -d ' ' -f 2)" -le $((($(rcli a time | head -n 1) + 1) * 1000)) ]
}

@test "the history: the status of the last run is that of dlock, and only a command succeeds" {
    while read -r word code expected; do
        remember "$one" 5
        give_back "$one" 0 0 0 1000 0 '' "$word $code"
        [ "$(last_run)" = "$expected" ] || fail "another status of $word $code"
        [ "$(rcli a lindex "$meta:history" 0 | cut -d ' ' -f 5)" = - ] || fail "$word is no success"
        rcli a hdel "$meta" gone freed token >/dev/null
    done <<<$'asked 0 76\nmax-run 0 124\nmax-run -9 -9\nexec-failed 0 0\nran 3 3'
    remember "$one" 5
    rcli a del "$key" >/dev/null
    give_back "$one" 0 0 0 1000 0 '' 'ran 0'
    [ "$(last_run)" = 76 ] # it was lost
}

@test "the history: it has its length, and the last success and command outlive it" {
    remember "$one" 2
    give_back "$one" 0 0 0 1000 0 '' 'ran 0'
    success=$(rcli a lindex "$meta:history" 0 | cut -d ' ' -f 2)
    for _ in 1 2 3 4; do
        remember "$two" 2
        give_back "$two" 0 0 0 1000 0 '' 'ran 3'
        rcli a hdel "$meta" gone freed token >/dev/null # so that this token may come again
    done
    remember "$three" 2
    [ "$(outcomes)" = 'open -,ran 3' ]
    [ "$(rcli a lindex "$meta:history" 0 | cut -d ' ' -f 5)" = "$success" ]
    [ "$(rcli a lindex "$meta:history" 0 | cut -d ' ' -f 7)" = 3 ]
    give_back "$three" 0 0 0 1000 0 '' 'released -'
    remember "$one" 0
    [ "$(outcomes)" = 'released -,ran 3' ]
    rcli a del "$key" >/dev/null
    remember "$two" 1
    [ "$(outcomes)" = 'open -' ]
}

@test "the history: a key of another type costs nobody the lock" {
    rcli a set "$meta:history" something
    returns 1 remember "$one" 5
    returns 1 renew "$one"
    returns 1 give_back "$one" 0 0 0 1000 0 '' 'ran 0'
    is_free "$key"
    remember "$two" 5
    returns 1 script undo "$key" "$meta:history" , "$two"
}

@test "the history: a renewal keeps it for 30 days after the lease" {
    remember "$one" 5
    rcli a pexpire "$meta:history" 100000 >/dev/null
    renew "$one" 60000 1
    [ "$(rcli a pttl "$meta:history")" -gt 2592050000 ]
}

@test "release.lua that is sent again does not count a lock that was broken as released" {
    acquire "$one"
    returns 1 give_back "$one" 0 0 0 1000 1 '' 'broken -' '' 'root@ops'
    returns -1 give_back "$one" 0 1 0
    renew "$one"
    [ "${lines[0]} ${lines[3]}" = '-1 0' ] || fail 'nor does renew.lua'
    # The one who broke it may have lost the reply.
    returns 1 give_back "$one" 0 1 0 1000 1 '' 'broken -' '' 'root@ops'
    # Nor once another one has been released.
    acquire "$two"
    give_back "$two"
    returns -1 give_back "$one" 0 1 0
    # One who would have broken what was released has broken nothing.
    acquire "$three"
    give_back "$three"
    returns -1 give_back "$two" 0 1 0 1000 1 '' 'broken -' '' 'root@ops'
}

@test "release.lua that is sent again: the history tells whether it was released" {
    again() { give_back "$1" 0 1 0 1000 "${3-0}" '' "${2-released -}"; }
    remember "$one" 5
    rcli a del "$key"
    returns -1 again "$one" # its entry is open
    remember "$two" 5
    returns 0 again "$one" # expired
    rcli a del "$key"
    give_back "$two" 0 0 0 1000 0 '' 'ran 0'
    returns -1 again "$two" 'ran 0' # lost
    remember "$three" 5
    give_back "$three"
    remember DDDDDDDDDDDDDDDDDDDDDD 5
    rcli a hdel "$meta" freed earlier
    returns 1 again "$three"
    returns 0 again "$three" 'broken -' 1
}
