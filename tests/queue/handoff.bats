#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# A release hands the lock to the first waiter with a token: who may use it, and what a wrong one does.

# shellcheck disable=SC2005,SC2116
load ../lib/queue

# A release with this leaves a window of 20 seconds: whatever ends sooner did not wait for it.
long_window=--node-timeout=10s
at_once=8000

# hang_served: the first waiter is stopped, and then it is handed the lock, with a long window.
hang_served() {
    kill -STOP "${waiter[0]}"
    wait_until "[ \"\$(process_state ${waiter[0]})\" = T ]"
    dlock release "$long_window" "$key" "$token"
}

# ---------------------------------------------------------------- hand-over

@test "during a handoff all others see the lock held" {
    take "$key"
    queue_waiters 1
    hang_served
    status_is '.state == "handover" and .waiting == 1 and .ttl_ms > 10000'
    gives 0 status "$key"
    [[ $output == *handover* ]]
    refuses 75 held acquire --no-wait "$key"
    refuses 64 'released already.*; its command has ended\.' break "$key" </dev/null
    client=$(rcli n1 set "$key" foreign nx px 1000)
    [ -z "$client" ]
    start run --wait 60s "$key" -- sh -c "$queued_command" sh newcomer
    queue_length_is 1
    kill -CONT "${waiter[0]}"
    waiter+=("$bg")
    all_served 1 newcomer
    nothing_is_left "$key" n1
}

@test "a waiter that gives up while it is served passes the lock on at once" {
    for n in 1 5; do
        rm -f served
        unset waiter
        use "$n"
        take "$key"
        queue_waiters 2
        hang_served
        kill -TERM "${waiter[0]}"
        kill -CONT "${waiter[0]}"
        within "$at_once" finishes 0 "${waiter[1]}"
        [ "$(cat served)" = 2 ]
        finishes 143 "${waiter[0]}"
        nothing_stays "$key" $(node_names "$n")
    done
}

@test "a waiter that gives up while it asks for what it was handed passes the lock on at once" {
    take "$key"
    proxy_start p1 n1
    DLOCK_NODES=$(proxy_node p1) start acquire --wait 60s --node-timeout 10s "$key"
    queue_length_is 1
    first=$bg
    queue_waiters 1
    proxy_rules p1 "hold=$token"
    dlock release "$long_window" "$key" "$token"
    wait_until 'proxy_log p1 | grep -q HOLD' # its request is on the way, with the handoff token
    queue_length_is 1
    kill -TERM "$first"
    proxy_rules p1
    within "$at_once" finishes 0 "${waiter[0]}"
    finishes 143 "$first"
    prints ''
    [ "$(rcli n1 llen "$metadata:history")" = 3 ] || fail "expected that it was granted and released, not rolled back"
    nothing_stays "$key" n1
}

@test "a handoff token that nobody has popped is for the next waiter, and for nobody else until the window ends" {
    for n in 1 5; do
        use "$n"
        key=job-$BATS_TEST_NUMBER-$n
        take "$key"
        unset waiter
        queue_waiters 1
        end_process "${waiter[0]}"
        queue_length_is 0
        dlock release "$long_window" "$key" "$token"
        status_is '.state == "handover"'
        refuses 75 '' acquire "$key"
        [ -z "$(rcli n1 set "$key" foreign nx px 1000)" ]
        within "$at_once" take "$key" --wait 20s
        status_is '.state == "held"'
        dlock release "$key" "$token"
    done
    [ ! -e served ]
}

# ---------------------------------------------------------- handoff tokens by hand

@test "stale, duplicate and invalid handoff tokens do no harm" {
    take "$key" --ttl 10m
    queue_waiters 1 --node-timeout 2s
    fastest=1700
    for junk in "$OTHER_TOKEN" "$token" leave '' $'\xff\r\n' "$(printf '%05000d' 0)"; do
        began=$(now_ms)
        rcli n1 rpush "$metadata:wake" "$junk" >/dev/null
        wait_until "[ \"\$(rcli n1 llen '$metadata:wake')\" = 0 ]"
        queue_length_is 1
        took=$(($(now_ms) - began))
        if [[ $junk != "$OTHER_TOKEN" && $junk != "$token" && $took -lt $fastest ]]; then fastest=$took; fi
        [ "$(rcli n1 get "$key")" = "$token" ]
    done
    # After what is no token it waits again at once, not only after its next attempt, two seconds later at least.
    [ "$fastest" -lt 1700 ] || fail "each took $fastest ms or more"
    [ ! -e served ]
    dlock release "$key" "$token"
    rcli n1 rpush "$metadata:wake" "$token" "$token" "$OTHER_TOKEN"
    all_served 1
    unset waiter
    rm served
    take "$key" --wait 20s
    queue_waiters 2
    dlock release "$key" "$token"
    all_served 1 2
}

@test "a wake or waiting key of another type does no harm" {
    take "$key" --ttl 60s
    rcli n1 config resetstat
    rcli n1 set "$metadata:wake" x
    start run --wait 60s "$key" -- sh -c "$queued_command" sh 1
    waiter=("$bg")
    wait_until '[ "$(calls n1 blpop)" -ge 1 ]'
    dlock release "$key" "$token"
    all_served 1
    rcli n1 del "$metadata:wake"
    take "$key"
    queue_waiters 1
    rcli n1 del "$metadata:waiting"
    rcli n1 set "$metadata:waiting" x
    dlock release "$key" "$token"
    all_served 1 2
    rcli n1 del "$metadata:waiting"
    nothing_is_left "$key" n1
}
