#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# The scripts of src/lua, run with EVAL: shared locks.

# shellcheck disable=SC2154
load ../lib/scripts

# Tokens and waiters of readers are marked by their last character.
group=DDDDDDDDDDDDDDDDDDDDDB
reader=ReaderAReaderAReaderAx
other=ReaderBReaderBReaderBh
writer=WriterAWriterAWriterAA

# writers_are COUNT, holds_are COUNT: what a reader that was refused is told.
writers_are() { [ "${lines[13]}" = "$1" ] || fail "expected $1 writers before it"; }
holds_are() { [ "${lines[14]}" = "$1" ] || fail "expected $1 holds"; }

@test "share.lua acquires as acquire.lua does, and says of a shared lock only who is before a reader" {
    acquire "$one"
    returns 0 share "$group"
    [ "${#lines[@]}" -le 13 ] || fail 'expected what acquire.lua returns'
    give_back "$one"
    returns 1 share "$group"
    returns 0 share "$reader"
    writers_are 0
    holds_are 1
    returns 1 enter "$group.x"
    share "$reader"
    holds_are 2
    # Released, and being handed over.
    share_queue "$two" '' "$reader" 60000
    give_back "$group.x" 0 0 0 60000
    give_back "$group" 0 0 0 60000
    returns 0 share "$reader"
    [ "${#lines[@]}" -le 13 ] || fail 'expected that it is not shared any more'
}

@test "share.lua counts the writers whose tickets are before that of a reader" {
    share "$group"
    share_queue "$two" '' "$reader a" 60000
    writers_are 0
    queue "$one" '' "$writer a" 60000
    share_queue "$two" '' "$other a" 60000
    writers_are 1
    share_queue "$two" '' "$reader a" 60000 1
    writers_are 0
    share "$two"
    writers_are 1
    # Tickets are known by their remainder.
    rcli a hset "$meta" ticket 2047
    queue "$one" '' "${writer}2 a" 60000
    share_queue "$two" '' "${reader}2 a" 60000
    writers_are 2
}

@test "unshare.lua deletes what nobody has entered, with its entry in the history" {
    share "$group"
    answers 1 unshare "$group"
    is_free "$key"
    share "$group"
    answers 0 unshare "$reader"
    is_held "$key"
}

@test "unshare.lua ends only the hold of the caller where others have entered; the last one hands over" {
    share "$group"
    enter "$group.x"
    answers 2 unshare "$group"
    is_held "$key"
    returns 1 enter "$group.x"
    unshare "$group"
    [ "$(rcli a get "$key")" = "$group" ] || fail 'expected that it can be sent again'
    queue "$one" '' "$writer a" 60000
    give_back "$group.x" 0 0 0 60000
    [ "$(rcli a lrange "$meta:wake" 0 -1)" = "$group" ]
    answers 0 unshare "$group"
}

@test "invite.lua tells the readers that no writer is before, of a shared lock" {
    share "$group"
    share_queue "$two" '' "$reader a" 60000
    queue "$one" '' "$writer a" 60000
    share_queue "$two" '' "$other a" 60000
    answers 1 invite
    [ "$(words_of "$reader")" = try ]
    [ -z "$(words_of "$other")$(words_of "$writer")" ] || fail 'expected one word'
    [ "$(rcli a pttl "$meta:leave:$reader")" -ne -1 ] || fail 'expected an end'
    script leave "$key" "$meta:waiting" "$meta:leave:$writer" , "$writer a" 0
    answers 2 invite
    [ "$(rcli a zcard "$meta:waiting")" -eq 2 ] || fail 'expected that they keep their places'
    give_back "$group" 0 0 0 60000
    answers 0 invite
    rcli a del "$key"
    acquire "$one"
    answers 0 invite
}
