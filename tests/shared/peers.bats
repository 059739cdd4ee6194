#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# What the tests of Redisson's RReadWriteLock check, of shared locks.  Its other cases are in the files beside this one.

load ../lib/shared

node_count=1

@test "the lease of a reader that died ends neither that of another, nor keeps a writer out any longer" {
    local long short
    share --ttl 60s
    long=$token
    share --ttl 500ms
    has_holders 1
    refuses 75 shared run "$key" -- true
    works renew "$key" "$long"
    works release "$key" "$long"
    works run "$key" -- true
    # The same where the first of the group dies.
    share --ttl 500ms
    short=$token
    share --ttl 60s
    has_holders 1
    try release "$key" "$short"
    refuses 75 shared run "$key" -- true
    works release "$key" "$token"
    works run "$key" -- true
}

@test "the release of a reader, also a second one, ends no hold of another" {
    local first
    share
    first=$token
    share
    works release "$key" "$first"
    gives 1 release "$key" "$first"
    gives 1 renew "$key" "$first"
    has_holders 1
    refuses 75 shared run "$key" -- true
    works release "$key" "$token"
    gives 1 release "$key" "$token"
    works run "$key" -- true
}
