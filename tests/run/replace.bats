#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# dlock run --replace: the holder ends, then this command starts; of several the newest wins.

load ../lib/queue

redis_servers=a

# Commands that would notice another one beside them.
hold='mkdir inside || touch overlaps; trap "sleep 0.5; rmdir inside; exit 0" TERM; echo "$1" >>turns
    until [ -e stop ]; do sleep 0.2; done; rmdir inside'

# replace NAME ARG...: such a run in the background.
replace() { start run --replace --ttl 3s -k 10s "${@:2}" "$key" -- sh -c "$hold" sh "$1"; }
begun() { wait_until "[ \"\$(tail -n 1 turns)\" = $1 ]" 20; }

@test "--replace: the command of the holder has ended before the new one starts; without --wait, too" {
    replace old
    old=$bg
    begun old
    replace new
    begun new
    finishes 76 "$old"
    stops 0
    no_overlap
    [[ $stderr == *'waiting; held by '*'got it after '* ]]
}

@test "--replace of a reader, which ends, too" {
    start_holding "$key" --shared --ttl 3s 'sleep 60'
    works run --replace --quiet "$key" -- true
    finishes 76
}

@test "--replace over five nodes, two of them dead" {
    use 5
    replace old
    old=$bg
    begun old
    redis_stop n2 n4
    replace new --wait 20s
    begun new
    finishes 76 "$old"
    stops 0
    no_overlap
}

@test "the newest of several wins, and the others give way with 75" {
    start_holding "$key" --ttl 20s --on-lost warn 'until [ -e end ]; do sleep 0.2; done'
    holder=$bg
    replace first --wait 60s
    first=$bg
    queue_length_is 1 a
    replace second --wait 60s
    second=$bg
    finishes 75 "$first" # at its next try, though the holder is still there
    complains 'gives way to a newer dlock run --replace, by '
    touch end
    begun second
    finishes 0 "$holder"
    stops 0 "$second"
    [ "$(cat turns)" = second ]
}

@test "--replace that only tries once asks, and others do not give way to it" {
    start_holding "$key" --ttl 20s --on-lost warn 'until [ -e end ]; do sleep 0.2; done'
    replace first --wait 60s
    first=$bg
    queue_length_is 1 a
    gives 75 run --replace --no-wait "$key" -- true
    touch end
    begun first
    stops 0 "$first"
}

@test "--replace does not wait for longer than the lease and --kill-after, if the holder declines" {
    start_holding "$key" --ttl 3s --on-lost warn 'until [ -e stop ]; do sleep 0.2; done'
    within 6500 gives 75 run --replace -k 1s --quiet "$key" -- true
    stops 0
}

@test "a waiter without --replace asks nobody" {
    start_holding "$key" --ttl 3s 'until [ -e stop ]; do sleep 0.2; done'
    gives 75 run --wait 1s "$key" -- true
    [ -z "$(rcli a hget "{$key}:dlock" asked)" ]
    stops 0
}

@test "--replace is not for slots and readers" {
    refuses 64 '--replace and --slots cannot be used together' run --replace --slots 2 "$key" -- true
    refuses 64 '--replace and --shared cannot be used together' run --replace --shared "$key" -- true
}
