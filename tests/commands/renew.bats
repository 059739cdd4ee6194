#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# dlock renew: gives a lease its full length again.

load ../lib/redis

@test "renew restores the full length of the lease, by default that of the acquire, and prints nothing" {
    take "$key" --ttl 20s
    rcli a pexpire "$key" 10000
    silently renew --ttl 20s "$key" "$token"
    lasts 15000 20000
    [ "$(rcli a get "$key")" = "$token" ]
    rcli a pexpire "$key" 10000
    works renew --json "$key" "$token"
    json_is '.outcome == "renewed" and .ttl_ms == 20000 and .valid_ms > 10000 and .valid_ms < 20000'
    lasts 15000 20000
}

@test "renew can make a lease longer than it was, and never shortens it" {
    take "$key" --ttl 20s
    works renew --ttl 60s "$key" "$token"
    lasts 55000 60000
    DLOCK_TTL=90s works renew "$key" "$token"
    lasts 85000 90000
    works renew --ttl 10s --node-timeout 2s "$key" "$token"
    lasts 80000 90000
}

@test "the token of a lock that --min-hold keeps after its release exits 1, with the reason" {
    works run --min-hold 20s "$key" -- sh -c 'echo "$DLOCK_TOKEN" >token'
    refuses 1 "gone: it expired, was broken or was released\$" renew "$key" "$(cat token)"
    tells 1 '.outcome == "gone" and .holder == null' renew --json "$key" "$(cat token)"
}

@test "a lock of another client or type is not renewed" {
    rcli a set "$key" 0123456789abcdef px 20000
    refuses 1 "held by another" renew --ttl 60s "$key" "$OTHER_TOKEN"
    lasts 1 20000
    rcli a del "$key"
    rcli a rpush "$key" element
    refuses 1 '' renew "$key" "$OTHER_TOKEN"
    [ "$(rcli a pttl "$key")" = -1 ]
}

@test "renew keeps the fence and prolongs the metadata" {
    take "$key" --ttl 20s
    fence=$(rcli a hget "{$key}:dlock" fence)
    rcli a pexpire "{$key}:dlock" 60000
    dlock renew --ttl 20s "$key" "$token"
    [ "$(rcli a hget "{$key}:dlock" fence)" = "$fence" ]
    [ "$(rcli a pttl "{$key}:dlock")" -ge 3600000 ]
}

@test "too few nodes that have the lock, and too few that do not: 69" {
    for n in b c d; do redis_start "$n"; done
    DLOCK_NODES="$(node a) $(node b) $(node c) $(node d)"
    take "$key"
    rcli c set "$key" foreign
    rcli d set "$key" foreign
    refuses 69 'fewer than a majority' renew "$key" "$token"
    gives 69 renew --json "$key" "$token"
    prints ''
}
