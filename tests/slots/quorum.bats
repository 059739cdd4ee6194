#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# Slots over several nodes.

# shellcheck disable=SC2046
load ../lib/slots

proxied=3

# A release with this leaves a window of 20 seconds: whatever ends sooner did not wait for it.
long_window=--node-timeout=10s
at_once=8000

@test "20 contenders on five nodes, two of which are killed and restarted empty: never a fourth inside" {
    one() { storms --slots 3 "$key" -- sh -c "$in_slot" sh 3; }
    storm 20 24 one
    [ "$(sort -u ran | wc -l)" -eq "$(visits)" ] || fail 'expected a fence for each visit of a slot'
    [ "$(cut -d ' ' -f 1 ran | sort -u | paste -sd ' ')" = '1 2 3' ]
}

@test "a waiter blocks at the first node where each slot is held by whom a majority names" {
    use 3
    take_slots_on_all 3 2 --ttl 60s
    # There nobody would release slot 2.
    rcli n1 set "{$key}:slot-2" "$OTHER_TOKEN" px 60000 >/dev/null
    start run --slots 2 --wait 60s "$key" -- sh -c 'echo "$DLOCK_SLOT"'
    queue_length_is 1 n2
    end_slot 2 "$long_window"
    within "$at_once" finishes 0
    prints 2
}

# On each of three nodes another slot is held by another client, so no node has all of the holders; a waiter tries again.
wait_where_nobody_may_block() {
    local i
    use 3
    take_slots_on_all 3 3 --ttl 60s
    for i in 1 2 3; do rcli "n$i" set "{$key}:slot-$i" "$OTHER_TOKEN" px 60000 >/dev/null; done
    start run -v --slots 3 --wait 60s "$key" -- sh -c 'echo "$DLOCK_SLOT"'
    wait_until '[ "$(grep -c "looking at" bg.1.err)" -ge 3 ]'
}

@test "where no node has all of the holders, a waiter leaves no entry, and gets what is released" {
    local i
    wait_where_nobody_may_block
    for i in 1 2 3; do queue_length_is 0 "n$i"; done
    end_slot 3 "$long_window"
    within "$at_once" finishes 0
    prints 3
}

@test "where no node has all of the holders, a slot that was handed over to a waiter as it left is taken at once" {
    local i
    wait_where_nobody_may_block
    # As if the release came between a look, which adds the waiter, and its leaving.
    for i in 1 2; do rcli "n$i" zadd "{$key}:slots:dlock:waiting" "$(($(now_ms) + 60000))" 'nobody 0 1 1 xy' >/dev/null; done
    end_slot 3 "$long_window"
    within "$at_once" finishes 0
    prints 3
}

@test "after a split vote a waiter looks for the handoff token of a slot that one node hands over to nobody" {
    use 1
    take_slot 1
    rcli n1 zadd "{$key}:slots:dlock:waiting" "$(($(now_ms) + 60000))" 'nobody 0 1 1 xy' >/dev/null
    dlock release "$long_window" "$name" "$token"
    rcli n3 set "$name" foreign >/dev/null
    use 3
    within "$at_once" works run --slots 1 --wait 40s "$key" -- true
}

@test "a slot that is handed over to a client while it acquires another one is for the next who comes, at once" {
    local call taker
    DLOCK_NODES=$(node n3)
    take_slot 1 --ttl 60s
    rcli n3 set "{$key}:slot-2" foreign >/dev/null
    DLOCK_NODES=$(proxy_node p3) start run --slots 2 --wait 60s "$long_window" "$key" -- sh -c 'until [ -e stop ]; do sleep 0.2; done'
    taker=$bg
    queue_length_is 1 n3
    proxy_rules p3 hold
    wait_until 'call=$(proxy_log p3 | tail -n 1); [[ $call == HOLD* ]]'
    # Its look finds slot 2 free, and its attempt takes that after it has been handed slot 1.
    rcli n3 del "{$key}:slot-2" >/dev/null
    proxy_rules p3 "hold@$((${call#HOLD } + 1))"
    wait_until 'proxy_log p3 | grep -qx "HOLD $((${call#HOLD } + 1))"'
    dlock release "$long_window" "$name" "$token"
    queue_length_is 0 n3
    proxy_rules p3
    wait_until "held '{$key}:slot-2' n3"
    within "$at_once" works run --slots 2 --wait 60s "$key" -- sh -c 'echo "$DLOCK_SLOT"'
    prints 1
    stops 0 "$taker"
}

@test "a waiter that gives up leaves nothing on any node" {
    use 5
    take_slots_on_all 5 2
    queue_for 2 1
    terminate "${waiter[0]}"
    wait_until "! on_all 5 keys '{$key}:slots:*' | grep ."
}

@test "the queue node dies or hangs: the waiters queue at the next one, and are served" {
    local how
    for how in redis_stop redis_freeze; do
        use 5
        key=job-$how
        rm -f served
        unset waiter
        take_slots_on_all 5 2 --ttl 60s
        queue_for 2 3 --node-timeout 2s
        "$how" n1
        wait_until '[ "$(blocked n2)" = 3 ]' 25
        end_slot 1 --node-timeout 2s
        for bg in "${waiter[@]}"; do finishes 0 "$bg"; done
        [ "$(wc -l <served)" -eq 3 ] || fail "$(cat served)"
        nodes_restore
    done
}

@test "what a node grants of one slot is rolled back there, also once another slot is tried" {
    local first other
    use 3
    take_slots_on_all 3 2 --ttl 60s
    rcli n3 flushall >/dev/null
    proxy_rules p3 hold
    DLOCK_NODES="$(node n1) $(node n2) $(proxy_node p3)" queue_for 2 1 --ttl 60s --node-timeout 2s
    # The request for one of them arrives late, and what takes it back does not.
    proxy_rules p3 before
    wait_until '[ -n "$(rcli n3 keys "{$key}:slot-?")" ]'
    first=$(rcli n3 keys "{$key}:slot-?")
    first=${first##*-}
    other=$((3 - first))
    proxy_rules p3
    : >stay
    use 2
    end_slot "$other"
    wait_until '[ -s served ]'
    [ "$(cat served)" = "1 $other" ] || fail "served: $(cat served)"
    wait_until "free '{$key}:slot-$first' n3"
    rm stay
    finishes 0 "${waiter[0]}"
}
