#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# Shared locks on one node: who enters, who stands behind whom, what it costs, and what happens when one of them goes away.

# shellcheck disable=SC2034,SC2154
load ../lib/shared
load ../lib/peers

node_count=1 proxied=1

# Those who wait try by themselves after 2 seconds or later: what is sooner was woken.
at_once=1900

@test "readers hold a lock together, with one fence; writers are alone, and fences grow between them" {
    local first tokens=() writer
    works run --json "$key" -- true
    writer=$(jq .fence <<<"$output")
    share
    tokens+=("$token")
    works run --json --shared "$key" -- true
    first=$(jq .fence <<<"$output")
    [ "$first" -gt "$writer" ]
    share
    tokens+=("$token")
    has_holders 2
    [ "${tokens[1]%.*}" = "${tokens[0]}" ] || fail 'expected a further hold'
    refuses 75 "$key: shared by 2 readers, the first was .*, .* of the lease left" run "$key" -- true
    works release "$key" "${tokens[0]}"
    refuses 75 "$key: shared by 1 reader, " run "$key" -- true
    tells 0 ".fence == $first" run --shared --json "$key" -- true
    works release "$key" "${tokens[1]}"
    works run --json "$key" -- true
    [ "$(jq .fence <<<"$output")" -gt "$first" ]
}

@test "the first reader costs two requests, one that joins three; a writer that is refused one" {
    rcli n1 config resetstat
    works run --shared "$key" -- true
    [ "$(calls n1 eval)" -eq 2 ] || fail "$(calls n1 eval) scripts"
    share
    rcli n1 config resetstat
    works run --shared "$key" -- true
    [ "$(calls n1 eval)" -eq 3 ] || fail "$(calls n1 eval) scripts"
    rcli n1 config resetstat
    refuses 75 shared run "$key" -- true
    [ "$(calls n1 eval)" -eq 1 ] || fail "$(calls n1 eval) scripts"
}

@test "a reader stands behind a writer that waits; readers that stand together enter together" {
    share --ttl 60s
    : >stay
    writers_wait 1
    refuses 75 "shared by 1 reader, the first was .*, and a writer waits" run --shared "$key" -- true
    readers_wait 20
    writers_wait 1
    readers_wait 2
    works release "$key" "$token"
    served_are 1
    touch end-1
    # shellcheck disable=SC2046
    within 8000 served_are $(seq 21)
    has_holders 20
    rm stay
    for bg in "${waiter[@]}"; do finishes 0 "$bg"; done
    [ "$(sed -n 22p served)" = 22 ] || fail "$(paste -sd ' ' served)"
    nothing_is_left "$key" n1
}

@test "a writer that gives up: the readers behind it enter at once" {
    share --ttl 60s
    : >stay
    writers_wait 1
    readers_wait 3
    kill -TERM "${waiter[0]}"
    within "$at_once" served_are 2 3 4
    finishes 143 "${waiter[0]}"
    has_holders 4
    rm stay
    for bg in "${waiter[@]:1}"; do finishes 0 "$bg"; done
    works release "$key" "$token"
    nothing_is_left "$key" n1
}

@test "a writer that waited was killed: the readers behind it enter by themselves" {
    share --ttl 60s
    writers_wait 1
    readers_wait 2
    end_process "${waiter[0]}"
    # As if 15 seconds were over.
    rcli n1 zremrangebyrank "{$key}:dlock:waiting" 0 0 >/dev/null
    for bg in "${waiter[@]:1}"; do finishes 0 "$bg" 30; done
    works release "$key" "$token"
}

@test "the last reader that leaves hands over, whichever that is" {
    local first
    share --ttl 60s
    first=$token
    share --ttl 60s
    writers_wait 1
    works release "$key" "$first"
    has_holders 1
    works release "$key" "$token"
    within "$at_once" finishes 0 "${waiter[0]}"
    served_are 1
}

@test "readers that died end with their leases, and then a writer has the lock" {
    start_holding "$key" --shared --ttl 60s 'sleep 60'
    end_process "$bg"
    share --ttl 3s
    works release "$key" "$token"
    refuses 75 shared run "$key" -- true
    rcli n1 pexpire "$key" 2000 >/dev/null
    works run --wait 30s "$key" -- true
}

@test "a first reader that gets no reply is taken back without the lock of one that has entered" {
    DLOCK_NODES=$(proxy_node p1)
    proxy_rules p1 drop
    start run --shared --node-timeout 4s "$key" -- true
    first=$bg
    wait_until "held '$key' n1"
    use 1
    start_holding "$key" --shared --ttl 60s 'while [ ! -e stop ]; do sleep 0.2; done'
    finishes 69 "$first"
    is_held "$key" n1
    has_holders 1
    refuses 75 shared run "$key" -- true
    works renew "$key" "$(tr '\0' '\n' <"/proc/$command_pid/environ" | sed -n 's/^DLOCK_TOKEN=//p')"
    stops 0
    works run "$key" -- true
}

@test "redis-py as a writer: each kind keeps the other out" {
    need_redis_py
    local lock='lock = redis.Redis(unix_socket_path=sys.argv[2]).lock(sys.argv[1], timeout=20, blocking_timeout=float(sys.argv[3]))'
    share
    yields 1 "$PYTHON" -c "import redis, sys; $lock; sys.exit(not lock.acquire())" "$key" "$(node n1)" 0
    works run --shared "$key" -- true
    "$PYTHON" -c "import redis, sys; $lock; assert lock.acquire(); open('has', 'w'); input(); lock.release()" \
        "$key" "$(node n1)" 20 < <(
            wait_until '[ -e refused ]' 20
            echo
        ) &
    works release "$key" "$token"
    wait_until '[ -e has ]'
    refuses 75 'not dlock' run --shared "$key" -- true
    touch refused
    wait "$!"
    works run --shared "$key" -- true
}

@test "a reader that was served from the queue stays as long as those that it invites need" {
    proxy_rules p1 far=0.1
    take "$key"
    DLOCK_NODES=$(proxy_node p1) readers_wait 1
    works release "$key" "$token"
    # 100 ms to hear of it, 200 ms for the lock, 400 ms for the others, 200 ms for the release.
    within 20000 finishes 0 "${waiter[0]}"
    at_least 700
}
