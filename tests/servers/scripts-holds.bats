#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# The scripts of src/lua as they are: holds of a lock that was entered again.

load ../lib/scripts

@test "renew.lua enters a lock again, and release.lua ends one hold after the other" {
    inner=$one.12345678
    acquire "$one"
    release() { give_back "$@"; }
    returns 0 renew "$two.12345678"
    returns 1 renew "$inner"
    [ "$(rcli a zcard "$meta:holds")" -eq 2 ]
    # Its lease is never made shorter.
    renew "$inner" 1000 1
    [ "$(rcli a zcard "$meta:holds")" -eq 2 ]
    [[ " ${lines[4]} " =~ \ $inner\ (20000|1[0-9]{4})\  ]] || fail "expected that the holds are told"
    [[ " ${lines[4]} " =~ \ $one\ (20000|1[0-9]{4})\  ]] || fail "expected that the holds are told"
    returns 2 release "$one" 0
    returns -1 release "$one" 0
    returns 2 release "$one" 0 1
    returns 0 renew "$one"
    returns 1 renew "$one.abcdefgh"
    returns 2 release "$one.abcdefgh" 0
    returns 0 renew "$one.abcdefgh"
    [ "$(rcli a zscore "$meta:holds" "$one.abcdefgh")" -lt "-$((($(rcli a time | head -n 1) + 500) * 1000))" ]
    is_held "$key"
    returns 1 release "$inner" 0
    is_free "$key"
    returns -1 renew "$inner"
}

@test "a further hold that ends before it arrives does not free the lock of the first one" {
    acquire "$one"
    returns -1 give_back "$one.lost-001" 0
    returns 1 renew "$one.12345678"
    returns 2 give_back "$one.12345678" 0
    # Nor does it restore a first hold that has ended, or that died beside another one.
    renew "$one.abcdefgh"
    returns 2 give_back "$one" 0
    returns 1 renew "$one.abcdefgh"
    returns 0 renew "$one"
    returns 1 give_back "$one.abcdefgh" 0
    is_free "$key"
    acquire "$two"
    renew "$two.12345678"
    rcli a zrem "$meta:holds" "$two" >/dev/null
    renew "$two.abcdefgh"
    [ -z "$(rcli a zscore "$meta:holds" "$two")" ] || fail "expected no hold that died"
}

@test "renew.lua returns the holds that end latest if there are too many" {
    acquire "$one"
    for ((i = 1; i <= 45; i++)); do
        returns 1 renew "$one.$i" $((100000 + i * 1000)) 0
    done
    # With the first holder's own there are 46, and it ends first.
    told=${lines[4]}
    [ "$(wc -w <<<"$told")" -eq 80 ] || fail "expected 40 holds"
    [[ " $told " == *" $one.45 "* && " $told " == *" $one.6 "* ]] || fail "expected the last of them"
    [[ " $told " != *" $one.5 "* && " $told " != *" $one "* ]] || fail "expected the first of them to be left out"
}

@test "a hold that is not renewed ends with its own lease, and keeps the lock for no longer" {
    acquire "$one"
    renew "$one.12345678" 3000 1
    returns 2 give_back "$one" 0
    [ "$(rcli a pttl "$key")" -le 3000 ]
    returns 0 acquire "$two"
    wait_until "[ \"\$(rcli a exists '$key')\" = 0 ]"
    acquire "$two"
    renew "$two.12345678"
    now=$(($(rcli a time | head -n 1) * 1000))
    rcli a zadd "$meta:holds" "$((now - 1))" "$two.12345678" "$((now - 1))" "$two.abcdefgh" >/dev/null
    rcli a zadd "$meta:holds" "-$((now - 1))" "$two.ended-00" >/dev/null
    returns 1 give_back "$two" 0
    is_free "$key"
    [ "$(rcli a zrange "$meta:holds" 0 -1)" = "$two" ] || fail "expected that what is over is forgotten"
}

@test "release.lua with ALL ends all holds" {
    acquire "$one"
    renew "$one.12345678"
    renew "$one.abcdefgh"
    returns 2 give_back "$one.abcdefgh" 15000
    kept=$(rcli a hget "$meta" keep)
    returns -1 give_back "$one.abcdefgh" 60000
    [ "$(rcli a hget "$meta" keep)" = "$kept" ] || fail 'it has ended already'
    acquire "$two"
    [ "${lines[12]}" = '' ] || fail 'others hold it'
    inspect
    [ "${lines[10]} ${lines[12]}" = '2 ' ] || fail 'others hold it'
    returns 1 give_back "$one" 0 0 0 1000 1
    is_free "$key"
}

@test "heal.lua restores the holds that others know, unless they have ended" {
    soon=$(($(rcli a time | head -n 1) * 1000 + 60000)) inner=$one.12345678
    heal() { script heal "$key" "$meta" "$meta:holds" , "$1" 20000 5 "$soon" me@here:1 label 3000 "${2-}"; }
    # has HOLD: it is a hold that has not ended.
    has() { [[ $(rcli a zscore "$meta:holds" "$1") == [1-9]* ]]; }
    returns 1 heal "$one"
    [ "$(rcli a exists "$meta:holds")" = 0 ]
    rcli a del "$key" "$meta"
    rcli a zadd "$meta:holds" "$soon" "$two.12345678" >/dev/null # of another lock
    returns 1 heal "$one" " $one 13000 $inner 40000 $two.12345678 15000 $one 12900 junk"
    [ "$(rcli a pttl "$key")" -gt 20000 ] || fail 'expected the longest of its holds'
    has "$one"
    has "$inner"
    [ "$(rcli a zcard "$meta:holds")" = 2 ]
    [ "$(rcli a zscore "$meta:holds" "$one")" -gt $((soon - 45000)) ] || fail 'expected its new lease'
    [ "$(rcli a zscore "$meta:holds" "$inner")" -gt $((soon - 25000)) ] || fail 'expected what others know'
    [ "$(rcli a pttl "$meta:holds")" -gt 3600000 ]
    rcli a del "$key" "$meta"
    returns 1 heal "$inner" " $one 13000"
    [ "$(rcli a get "$key")" = "$one" ]
    has "$one"
    has "$inner"
    returns 2 give_back "$one" 0
    rcli a del "$key"
    returns 0 heal "$one"
    returns 1 heal "$inner" " $one 13000"
    has "$inner"
    ! has "$one" || fail "expected that it stays ended"
}
