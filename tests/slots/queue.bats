#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# Those who wait for one of several slots, on one node: their order, what they cost, and what happens when one of them, or a
# holder, goes away.

# shellcheck disable=SC2046
load ../lib/slots

node_count=1

# A release with this leaves a window of 20 seconds: whatever ends sooner did not wait for it.
long_window=--node-timeout=10s
at_once=8000

# said WORDS: how many lines of the clients in the background contain them.
said() { cat bg.*.err | grep -c -- "$1"; }

@test "30 waiters for one of three slots are served in order, each with one wake-up" {
    take_slots 3 --ttl 10m
    rcli n1 config resetstat
    queue_for 3 30 -v
    end_slot 2
    for bg in "${waiter[@]}"; do finishes 0 "$bg" 60; done
    served_are $(seq 30)
    [ "$(cut -d ' ' -f 2 served | sort -u)" = 2 ] || fail 'expected that all had slot 2'
    # Each of them: an attempt, a look, BLPOP, an attempt, a release.  A client that waits for seconds looks from time to time.
    [ "$(said 'asking 1 node')" -eq 60 ] || fail "$(said 'asking 1 node') attempts"
    [ "$(calls n1 blpop)" -eq 30 ]
    [ "$(calls n1 lpop)" -eq 0 ]
    [ "$(calls n1 eval)" -eq $((60 + $(said 'looking at') + 31)) ] || fail "$(calls n1 eval) scripts"
}

@test "a slot costs two requests, and two more for one that is held; the refusal of all costs two" {
    local evals
    rcli n1 config resetstat
    take_slot 64
    dlock release "$name" "$token"
    [ "$(calls n1 eval)" -eq 2 ] || fail "$(calls n1 eval) scripts"
    take_slot 2
    rcli n1 config resetstat
    take_slot 2
    # The first one that it tries may be the one that is held.
    evals=$(calls n1 eval)
    [ "$evals" = 1 ] || [ "$evals" = 3 ] || fail "$evals scripts"
    rcli n1 config resetstat
    refuses 75 'all 2 slots' run --slots 2 "$key" -- true
    [ "$(calls n1 eval blpop lpop zadd)" -eq 2 ] || fail "$(calls n1 eval) scripts"
}

@test "--max-waiters of slots: 75 at once if so many wait for any of them; a waiter says its place" {
    take_slots 2
    queue_for 2 1 --max-waiters 1
    within 3000 refuses 75 '1 waits already .--max-waiters 1.; all 2 slots are held' \
        run --wait 60s --max-waiters 1 --slots 2 "$key" -- true
    queue_for 2 1
    grep -q 'waiting, 1 before us; all 2 slots' bg.*.err || fail "$(cat bg.*.err)"
    end_slot 1
    for bg in "${waiter[@]}"; do finishes 0 "$bg" 60; done
    served_are 1 2
}

@test "two slots that are released at once serve two waiters at once" {
    take_slots 2
    : >stay
    queue_for 2 4
    end_slot 1 &
    end_slot 2 &
    wait_until '[ -e served ] && [ "$(wc -l <served)" -eq 2 ]'
    [ "$(cut -d ' ' -f 1 served | sort | paste -sd ' ')" = '1 2' ] || fail "$(cat served)"
    [ "$(cut -d ' ' -f 2 served | sort | paste -sd ' ')" = '1 2' ] || fail "$(cat served)"
    rm stay
    for bg in "${waiter[@]}"; do finishes 0 "$bg"; done
}

@test "callers with different N never share a slot, and each waits for its own" {
    local low
    take_slots 3
    refuses 75 'all 2 slots' run --slots 2 "$key" -- true
    outputs 4 run --slots 4 "$key" -- sh -c 'echo "$DLOCK_SLOT"'
    queue_for 1 1
    low=${waiter[0]}
    waiter=()
    queue_for 3 1
    end_slot 3
    finishes 0 "${waiter[0]}"
    end_slot 1
    finishes 0 "$low"
    [ "$(paste -sd , served)" = '1 3,1 1' ] || fail "served: $(cat served)"
}

@test "a holder that was killed: its slot is free when its lease ends, and the others never stall" {
    local killed left
    start_holding "$key" --slots 2 --ttl 60s 'sleep 60'
    end_process "$bg"
    killed=$(rcli n1 keys "{$key}:slot-?")
    take_slot 2 --ttl 60s
    queue_for 2 3
    within "$at_once" dlock release "$name" "$token"
    for bg in "${waiter[@]}"; do finishes 0 "$bg"; done
    served_are 1 2 3
    [ "$(cut -d ' ' -f 2 served | sort -u)" = "$slot" ] || fail "$(cat served)"
    held "$killed" n1
    # The next one waits for the end of the lease.
    take_slot 2
    rcli n1 pexpire "$killed" 3000 >/dev/null
    outputs "$killed" run --slots 2 --wait 30s "$key" -- sh -c 'echo "$DLOCK_KEY"'
}

@test "a waiter that was killed costs other waiters nothing" {
    take_slots 2
    queue_for 2 3
    end_process "${waiter[@]:0:2}"
    end_slot 1 "$long_window"
    within "$at_once" finishes 0 "${waiter[2]}"
    served_are 3
}

@test "a waiter that gives up while it is served passes the slot on at once" {
    take_slots 3
    queue_for 3 2
    kill -STOP "${waiter[0]}"
    wait_until "[ \"\$(process_state ${waiter[0]})\" = T ]"
    end_slot 3 "$long_window"
    kill -TERM "${waiter[0]}"
    kill -CONT "${waiter[0]}"
    within "$at_once" finishes 0 "${waiter[1]}"
    [ "$(cat served)" = '2 3' ] || fail "served: $(cat served)"
    finishes 143 "${waiter[0]}"
}

@test "two slots are released while one client waits: the second is for the next who comes, at once" {
    take_slots 2
    queue_for 2 1
    kill -STOP "${waiter[0]}"
    wait_until "[ \"\$(process_state ${waiter[0]})\" = T ]"
    end_slot 1 "$long_window"
    end_slot 2 "$long_window"
    within "$at_once" works run --wait 60s --slots 2 "$key" -- sh -c 'echo "$DLOCK_SLOT"'
    prints 2
    kill -CONT "${waiter[0]}"
    finishes 0 "${waiter[0]}"
    no_slot_is_left n1
}

@test "a slot that is kept after its command wakes nobody who waits for another one" {
    start_holding "$key" --slots 2 --min-hold 3m 'while [ ! -e stop ]; do sleep 0.2; done'
    local holder=$bg
    take_slot 2
    queue_for 2 2
    stops 0 "$holder"
    [ -z "$(rcli n1 keys '*:leave:*')" ] || fail "$(rcli n1 keys '*')"
    [ "$(blocked)" -eq 2 ]
    dlock release "$name" "$token"
    for bg in "${waiter[@]}"; do finishes 0 "$bg"; done
    served_are 1 2
    # Where all slots are kept for longer than the wait, nobody waits.
    works run --slots 2 --min-hold 3m "$key" -- true
    within "$at_once" refuses 75 'kept until' run --slots 2 --wait 20s "$key" -- true
}

@test "a wait that a signal ends leaves nothing" {
    take_slots 2
    queue_for 2 2
    kill -TERM "${waiter[0]}"
    within "$at_once" finishes 143 "${waiter[0]}"
    [ "$(rcli n1 zcard "{$key}:slots:dlock:waiting")" -eq 1 ]
    end_slot 1
    finishes 0 "${waiter[1]}"
    end_slot 2
    no_slot_is_left n1
}

@test "a string and a hash of other clients in slots count as held, and are noticed when they go" {
    rcli n1 set "{$key}:slot-1" foreign
    rcli n1 hset "{$key}:slot-2" a b
    refuses 75 'all 2 slots are held; the first to end is held by ' run --slots 2 "$key" -- true
    start run --slots 2 --wait 60s -v "$key" -- sh -c 'echo "$DLOCK_SLOT"'
    wait_until '[ "$(said "looking at")" -ge 8 ]' # nobody would wake it
    rcli n1 del "{$key}:slot-2"
    within 4000 finishes 0
    prints 2
    [ "$(rcli n1 get "{$key}:slot-1")" = foreign ]
}
