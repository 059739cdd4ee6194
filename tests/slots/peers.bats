#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# What the tests of other semaphores check, of slots: those of consul lock -n and of Redisson's RPermitExpirableSemaphore.
# Their other cases are in the files beside this one.

load ../lib/slots

node_count=1
setup() {
    test_begin
    rcli n1 flushall >/dev/null
}

@test "an operator deletes a slot: its command ends, the others run on, and the slot is free" {
    local first name
    start_holding "$key" --slots 2 --ttl 3s 'echo "$DLOCK_KEY" >name; exec sleep 60'
    first=$bg
    name=$(cat name)
    start_holding "$key" --slots 2 --ttl 3s 'while [ ! -e stop ]; do sleep 0.2; done'
    rcli n1 del "$name" >/dev/null
    finishes 76 "$first"
    outputs "$name" run --slots 2 "$key" -- sh -c 'echo "$DLOCK_KEY"'
    stops 0
}

@test "a slot that has expired: its token neither renews nor releases it, nor that of the next holder" {
    local old next
    take_slot 1
    old=$token
    rcli n1 pexpire "$name" 1 >/dev/null
    wait_until 'free "$name" n1'
    gives 1 release "$name" "$old"
    take_slot 1
    next=$token
    gives 1 renew "$name" "$old"
    gives 1 release "$name" "$old"
    [ "$(rcli n1 get "$name")" = "$next" ]
    works release "$name" "$next"
    gives 1 release "$name" "$next"
}
