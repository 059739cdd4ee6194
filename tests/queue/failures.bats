#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# Waiters, holders, nodes and connections that fail: the next waiter gets the lock.

# shellcheck disable=SC2005,SC2116
load ../lib/queue

# A release with this leaves a window of 20 seconds: whatever ends sooner did not wait for it.
long_window=--node-timeout=10s
at_once=8000

# ---------------------------------------------------------------- waiters that go

# all_three_served: all of three waiters got the lock, in any order, one after the other.
all_three_served() {
    waiters_succeed
    [ "$(sort served | tr -d '\n')" = 123 ] || fail "expected 1 2 3, not $(paste -sd ' ' served)"
}

@test "a waiter that was killed costs other waiters nothing" {
    take "$key"
    queue_waiters 3
    end_process "${waiter[0]}" "${waiter[1]}"
    dlock release "$long_window" "$key" "$token"
    within "$at_once" finishes 0 "${waiter[2]}"
    [ "$(cat served)" = 3 ]
}

# entry_ms: how long the entry of the first waiter is valid.
entry_ms() {
    local entry
    mapfile -t entry < <(rcli n1 zrange "$metadata:waiting" 0 0 withscores)
    echo $((${entry[1]%.*} - $(now_ms)))
}

@test "the entry of a waiter lasts for longer than it waits between two attempts, 10 s" {
    take "$key"
    queue_waiters 1
    wait_until '[ "$(entry_ms)" -gt 11000 ]'
    dlock release "$key" "$token"
    all_served 1
}

@test "a waiter that hangs while it is served loses its turn, and does not enter when it resumes" {
    start_holding "$key" --ttl 10s 'while [ ! -e stop ]; do sleep 0.2; done'
    holder=$bg
    queue_waiters 2 --ttl 10s --node-timeout 2s
    kill -STOP "${waiter[0]}"
    : >stay
    stops 0 "$holder"
    wait_until '[ -s served ]' 20
    [ "$(cat served)" = 2 ]
    second=$(rcli n1 hget "$metadata" token)
    kill -CONT "${waiter[0]}"
    queue_length_is 1
    [ "$(rcli n1 hget "$metadata" token)" = "$second" ]
    rm stay
    all_served 2 1
}

@test "waiters that are unblocked, or whose connections are closed, queue again" {
    local last
    blocked_clients() { rcli n1 client list | sed -n 's/^id=\([0-9]*\) .* cmd=blpop .*/\1/p'; }
    newer() { wait_until "[ \"\$(blocked_clients | awk '\$1 > $last' | wc -l)\" -eq $1 ]"; }
    take "$key" --ttl 60s
    queue_waiters 3
    last=$(rcli n1 client id)
    rcli n1 client unblock "$(blocked_clients | head -n 1)" error
    newer 1
    last=$(rcli n1 client id)
    rcli n1 client kill type normal
    newer 3
    queue_length_is 3
    dlock release "$key" "$token"
    waiters_succeed
    [ "$(wc -l <served)" -eq 3 ]
    nothing_is_left "$key" n1
}

@test "a proxy that ends does not end a wait" {
    proxy_start p1 n1
    take "$key" --ttl 60s
    DLOCK_NODES=$(proxy_node p1) queue_waiters 1
    redis_stop p1
    queue_length_is 0
    proxy_start p1 n1
    queue_length_is 1
    within "$at_once" dlock release "$key" "$token"
    all_served 1
}

@test "a signal ends a wait at once and leaves nothing" {
    for name in TERM INT; do
        take "$key"
        unset waiter
        queue_waiters 2
        kill -s "$name" "${waiter[0]}"
        within "$at_once" finish "${waiter[0]}"
        exits $((128 + $(kill -l "$name")))
        queue_length_is 1
        [ "$(rcli n1 zcard "$metadata:waiting")" -eq 1 ]
        [ -z "$(rcli n1 keys '*:leave:*')" ]
        dlock release "$long_window" "$key" "$token"
        within "$at_once" finishes 0 "${waiter[1]}"
    done
    [ "$(paste -sd ' ' served)" = '2 2' ]
    nothing_is_left "$key" n1
}

@test "a wait that ends leaves nothing on any node" {
    use 5
    take "$key"
    stalls_note
    try run --wait 300ms "$key" -- true
    waited_in_vain 75
    nothing_waits "$key" $(node_names 5)
}

# ---------------------------------------------------------------- holders that go

@test "a holder that was killed: the waiters get the lock when its lease ends, and keep their places" {
    start_holding "$key" --ttl 8s 'sleep 60'
    holder=$bg
    queue_waiters 4
    end_process "$holder"
    held "$key" n1
    waiters_succeed
    # They try at intervals of 15 ms, so on a slow machine not the first waiter may be the first to try.
    first=$(head -n 1 served)
    [ "$(tail -n +2 served)" = "$(seq 4 | grep -vx "$first")" ] || fail "$(cat served)"
}

@test "a foreign release is noticed within a second, also after a long wait" {
    rcli n1 set "$key" foreign
    start run --wait 60s -v "$key" -- true
    wait_until '[ "$(grep -c asking bg.1.err)" -ge 4 ]'
    rcli n1 del "$key"
    within 4000 finishes 0
}

@test "waiters behind a foreign holder are served in order once a dlock holds the lock" {
    rcli n1 set "$key" foreign px 300
    take "$key" --wait 20s
    queue_waiters 2
    dlock release "$key" "$token"
    all_served 1 2
}

# ---------------------------------------------------------------- nodes that go

@test "waiters of a queue node that dies or hangs queue at the next node" {
    use 5
    for how in redis_stop redis_freeze; do
        rm -f begun stop served
        unset waiter
        start_holding "$key" --ttl 10s --node-timeout 2s 'while [ ! -e stop ]; do sleep 0.2; done'
        holder=$bg
        queue_waiters 3 --ttl 10s --node-timeout 2s
        "$how" n1
        # They find out at their next attempts.
        wait_until '[ "$(blocked n2)" = 3 ]' 25
        stops 0 "$holder"
        all_three_served
        nodes_restore
    done
    nothing_stays "$key" $(node_names 5)
}

@test "handoffs continue in order while a minority of the nodes is dead or hangs" {
    use 5
    take "$key" --ttl 60s
    queue_waiters 4 --node-timeout 4s
    redis_stop n4
    redis_freeze n5
    dlock release --node-timeout 4s "$key" "$token"
    all_served 1 2 3 4
    nodes_restore
    nothing_stays "$key" $(node_names 5)
}

@test "a node that receives a release late takes part in the next one" {
    use 3
    proxy_start p2 n2
    take "$key" --ttl 60s
    : >stay
    queue_waiters 2 "$long_window" --ttl 60s
    proxy_rules p2 hold
    DLOCK_NODES="$(node n1) $(proxy_node p2) $(node n3)" dlock release "$long_window" "$key" "$token"
    wait_until '[ -e served ]'
    proxy_rules p2
    wait_until '[ "$(rcli n2 lindex "{$key}:dlock:wake" 0)" = "$token" ]'
    rm stay
    all_served 1 2
    within "$at_once" nothing_stays "$key" $(node_names 3)
}

@test "a handoff token that arrives while others grant the lock is released at its node, too" {
    use 3
    proxy_start p1 n1
    proxy_start p2 n2
    take_on_all 3
    : >stay
    DLOCK_NODES="$(proxy_node p1) $(proxy_node p2) $(node n3)" queue_waiters 1 "$long_window" --ttl 60s
    proxy_rules p1 hold
    proxy_rules p2 hold
    rcli n2 del "$key" >/dev/null
    rcli n3 del "$key" >/dev/null
    wait_until 'proxy_log p1 | grep -q HOLD && proxy_log p2 | grep -q HOLD'
    DLOCK_NODES=$(node n1) dlock release "$long_window" "$key" "$token"
    queue_length_is 0
    proxy_rules p2
    wait_until '[ -e served ]'
    proxy_rules p1
    wait_until '[ "$(rcli n1 zcard "$metadata:waiting")" = 0 ]'
    rm stay
    all_served 1
    within "$at_once" wait_until "free '$key' n1"
}

@test "a node that refuses once the others have granted the lock keeps no entry" {
    use 3
    rcli n3 set "$key" "$OTHER_TOKEN" px 60000
    redis_freeze n3
    start_holding "$key" --wait 60s 'while [ ! -e stop ]; do sleep 0.2; done'
    redis_thaw n3
    wait_until '[ "$(rcli n3 hget "$metadata" ticket)" = 1 ]'
    wait_until '[ "$(rcli n3 zcard "$metadata:waiting")" = 0 ]'
    stops 0
}

@test "the only node restarts while many wait, and tries fail: all get the lock" {
    local other
    take "$key" --ttl 60s
    queue_waiters 3
    take "$key-2" --ttl 60s
    start acquire -v --wait 60s "$key-2"
    other=$bg
    wait_until "grep -q 'in the queue' bg.$bg_count.err"
    redis_stop n1
    wait_until "grep -q 'no such socket.*next try' bg.$bg_count.err"
    redis_start n1
    all_three_served
    finishes 0 "$other"
}

@test "--wait and signals end a wait in time when the queue node hangs" {
    take "$key" --ttl 60s
    start acquire --wait 60s "$long_window" --ttl 60s "$key"
    signalled=$bg
    queue_length_is 1
    start acquire --wait 5s "$long_window" --ttl 60s "$key"
    queue_length_is 2
    redis_freeze n1
    within 8500 finishes 69
    kill -TERM "$signalled"
    within 6000 finishes 143 "$signalled"
}

# ---------------------------------------------------------------- the server's settings

@test "a server that accepts no second connection does not break a wait" {
    redis_start m
    DLOCK_NODES=$(node m)
    take "$key" --ttl 9s
    start run -v --wait 60s "$key" -- sh -c "$queued_command" sh 1
    waiter=("$bg")
    queue_length_is 1 m
    # Both of its connections end, and when it comes back there is room for one.
    printf '%s\n' 'config set maxclients 1' 'client kill type normal' | "$REDIS_CLI" -s "$(node m)"
    wait_until 'grep -q "max number of clients" bg.1.err'
    all_served 1
}

# passes_on NODE SERVER: where BLPOP is refused, a released lock is not reserved for anybody, and the waiter gets it.
passes_on() {
    take "$key"
    DLOCK_NODES=$1 start run -v --wait 60s "$key" -- true
    wait_until 'grep -q "refuses BLPOP" bg.*.err'
    wait_until "[ \"\$(rcli '$2' zcard '$metadata:waiting')\" = 0 ]"
    # Further attempts leave no entry either.
    wait_until '[ "$(grep -c asking bg.*.err)" -ge 4 ]'
    [ "$(rcli "$2" zcard "$metadata:waiting")" -eq 0 ]
    dlock release "$long_window" "$key" "$token"
    within "$at_once" finishes 0
    nothing_is_left "$key" "$2"
}

@test "a user without the right to block waits without a place in the queue" {
    rcli n1 acl setuser worker on '>secret' '~*' '+@all' '-@blocking'
    passes_on "unix://worker:secret@$(server_dir n1)/s" n1
    # If one of several nodes refuses, no node keeps an entry.
    DLOCK_NODES="unix://worker:secret@$(server_dir n1)/s $(node n2) $(node n3)"
    take "$key"
    start run -v --wait 60s "$key" -- true
    wait_until "grep -q 'refuses BLPOP' bg.$bg_count.err"
    wait_until "[ \"\$(rcli n3 zcard '$metadata:waiting')\" = 0 ]"
    dlock release "$long_window" "$key" "$token"
    within "$at_once" finishes 0
    nothing_is_left "$key" n1 n2 n3
}

@test "a client behind twemproxy waits without a place in the queue" {
    command -v nutcracker >/dev/null || must_run "nutcracker (twemproxy) is not installed"
    dir=$(server_dir n1)
    printf '%s\n' 'pool:' "  listen: $dir/twem" '  redis: true' '  hash_tag: "{}"' '  distribution: ketama' \
        '  servers:' "    - $dir/s:1" >twem.yml
    twem_answers() { [ "$("$REDIS_CLI" -s "$dir/twem" get "$key" 2>&1)" = '' ]; }
    twem_starts() {
        runs twem ||
            spawn twem nutcracker -c "$PWD/twem.yml" -s $((20000 + RANDOM % 12768)) -a 127.0.0.1
        twem_answers
    }
    wait_until twem_starts
    passes_on "$dir/twem" n1
}

@test "a server that closes idle connections does not break a wait, and keepalive probes are on" {
    redis_start_tcp t 127.0.0.1 --timeout 1 --tcp-keepalive 1
    port=$(printf '%04X' "$(port_of t)")
    DLOCK_NODES=$(node t)
    take "$key" --ttl 60s
    start run --wait 60s "$key" -- sh -c "$queued_command" sh 1
    waiter=("$bg")
    queue_length_is 1 t
    # A keepalive timer (02) is active on dlock's connections.
    [ "$(awk -v port=":$port" '$3 ~ port "$" && $4 == "01" && $6 ~ /^02/' /proc/net/tcp | wc -l)" -ge 1 ] ||
        fail "$(grep -i ":$port" /proc/net/tcp)"
    # The connections of redis-cli and of the blocked waiter are left.
    wait_until '[ "$(rcli t info clients | sed -n "s/^connected_clients:\([0-9]*\).*/\1/p")" -eq 2 ]'
    dlock release "$key" "$token"
    all_served 1
}
