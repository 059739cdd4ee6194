#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# A Redis Cluster of three masters: where keys are, redirections, slots that move while a lock is
# held.  Failovers are in tests/slow/cluster.bats.

load ../lib/services

setup_file() {
    redis_start a
    cluster_start c 3 0
}
setup() {
    test_begin
    DLOCK_NODES=redis+cluster://$(place c1)
}

owner() { cluster_owner "$1" c1 c2 c3; }

# another NAME: the name of the next master.
another() {
    case $1 in
        c1) echo c2 ;;
        c2) echo c3 ;;
        *) echo c1 ;;
    esac
}

@test "all keys of a lock are on the master of its slot, whatever the name of KEY" {
    for k in plain '{tag}' '{tag}x' 'a{b}c' '{}x' 'a}b' 'x{' '}{' a b c; do
        take "$k"
        at=$(owner "$k")
        [ "$(rcli "$at" get "$k")" = "$token" ] || fail "expected $k at $at"
        works release "$k" "$token"
        is_free "$k" "$at"
    done
}

@test "all slots of a KEY, and those who wait for them, are on the master of its hash slot" {
    local i at json=()
    for i in 0 1 2; do json[i]=$(dlock acquire --json --slots 3 "$key"); done
    at=$(owner "$key")
    for i in 1 2 3; do held "{$key}:slot-$i" "$at" || fail "expected slot $i at $at"; done
    refuses 75 'all 3 slots are held' run --slots 3 "$key" -- true
    start run --slots 3 --wait 60s "$key" -- sh -c 'echo "$DLOCK_KEY"'
    wait_until "[[ \$(rcli $at info clients) == *blocked_clients:1* ]]"
    works release "$(jq -r .key <<<"${json[1]}")" "$(jq -r .token <<<"${json[1]}")"
    finishes 0
    prints "$(jq -r .key <<<"${json[1]}")"
    gives 1 status --slots 3 "$key"
}

@test "readers share a lock, a writer waits for them, and they for the writer" { readers_and_writer "$(owner "$key")"; }

@test "status lists the locks of all masters" {
    for ((i = 0; i < 12; i++)); do take "list-$i"; done
    [ "$(for i in c1 c2 c3; do rcli "$i" --scan --pattern 'list-*' | grep -q . && echo "$i"; done | wc -l)" -eq 3 ]
    works status --json
    [ "$(jq -r .key <<<"$output" | grep -c '^list-')" -eq 12 ]
    works status --json 'list-*'
    [ "${#lines[@]}" -eq 12 ]
}

@test "any server can be given, and unavailable ones are skipped" {
    servers_start hung tcp/silent tcp/refused
    for name in c1 c2 c3; do
        works run -N "redis+cluster://$(place "$name")" "$key" -- true
    done
    works run -N "redis+cluster://127.0.0.1:$(cat "$(server_dir hung)/refused.port"),$(place c2)" "$key" -- true
    works run --node-timeout 10s -N "redis+cluster://127.0.0.1:$(cat "$(server_dir hung)/silent.port"),$(place c2)" "$key" -- true
}

@test "hung servers that are asked for the slots do not prevent a lock: they share the time of a round" {
    servers_start quiet1 tcp/silent
    servers_start quiet2 tcp/silent
    list="127.0.0.1:$(cat "$(server_dir quiet1)/silent.port"),127.0.0.1:$(cat "$(server_dir quiet2)/silent.port"),$(place c2)"
    DLOCK_NODES=redis+cluster://$list
    for timeout in 2s 500ms 250ms; do
        take "$key-$timeout"
        in_time renew --node-timeout "$timeout" "$key-$timeout" "$token"
        in_time release --node-timeout "$timeout" "$key-$timeout" "$token"
        in_time run --node-timeout "$timeout" "$key-$timeout-run" -- true
    done
}

@test "a slot without an owner: 69, and no server is asked repeatedly" {
    cluster_node_start lone --cluster-require-full-coverage no
    rcli lone cluster addslotsrange 0 8000 >/dev/null
    wait_until "rcli lone cluster info | grep -q '^cluster_state:ok'"
    refuses 69 'no server of the Cluster owns the slot of the key' acquire -N "redis+cluster://$(place lone)" foo
    [ "$(rcli lone info commandstats | sed -n 's/^cmdstat_cluster|slots:calls=\([0-9]*\).*/\1/p')" -lt 10 ]
}

@test "none of its servers can be reached, or one is not in a Cluster, or is behind redis://: 69, with advice" {
    refuses 69 '127.0.0.1:[12]: connection refused' acquire -N redis+cluster://127.0.0.1:1,127.0.0.1:2 "$key"
    refuses 64 '' acquire -N "redis+cluster:/$(node a)" "$key"
    redis_start_tcp single
    refuses 69 'this is not a Redis Cluster; use redis://' acquire -N "redis+cluster://$(place single)" "$key"
    at=$(another "$(owner "$key")")
    refuses 69 'use redis\+cluster://' acquire -N "redis://$(place "$at")" "$key"
}

@test "a Cluster that redirects in a circle: 69, and the message says so" {
    servers_start circle tcp/moved
    url=127.0.0.1:$(cat "$(server_dir circle)/moved.port")
    DLOCK_NODE_TIMEOUT=10s refuses 69 'none grants the lock' acquire -N "redis+cluster://$url" "$key"
    [[ $stderr != *'use redis+cluster'* ]] || fail "it is one already"
    DLOCK_NODE_TIMEOUT=10s refuses 69 'use redis\+cluster://' acquire -N "redis://$url" "$key"
}

@test "a slot that has moved is found again" {
    from=$(owner "$key")
    to=$(another "$from")
    take "$key"
    cluster_move "$key" "$from" "$to"
    works renew "$key" "$token"
    [ "$(rcli "$to" get "$key")" = "$token" ]
    works status "$key"
    works release "$key" "$token"
    is_free "$key" "$to"
}

# assign SLOT TO FROM: both know that the slot has moved, until a server that does not believe it tells TO.
assign() {
    local at
    for at in "$2" "$3"; do rcli "$at" cluster setslot "$1" node "$(cluster_id "$2")" >/dev/null; done
}

@test "a redirection is followed, although the server that was given does not know of it" {
    from=$(owner "$key")
    to=$(another "$from")
    given=$(another "$to")
    # The epoch of the last owner is greater, so the third server does not believe the next one.
    rcli "$from" cluster bumpepoch >/dev/null
    slot=$(rcli "$from" cluster keyslot "$key")
    DLOCK_NODES=redis+cluster://$(place "$given")
    for ((tries = 0; tries < 20; tries++)); do
        assign "$slot" "$to" "$from"
        rcli "$given" cluster setslot "$slot" node "$(cluster_id "$from")" >/dev/null
        try run "$key" -- "$REDIS_CLI" -p "$(port_of "$to")" exists "$key"
        # They go on talking to each other: what is to be seen counts while the one knows nothing and the other has the slot.
        [[ $status$output != 01 || $(rcli "$to" get "$key" 2>&1) == *MOVED* ||
        $(rcli "$given" get "$key" 2>&1) != *":$(port_of "$from")"* ]] || break
    done
    succeeds
    [ "$output" = 1 ]
    wait_until "assign $slot $to $from; free '$key' $to"
    assign "$slot" "$to" "$from"
    rcli "$to" cluster bumpepoch >/dev/null
}

@test "a slot moves while a lock is held: its renewals follow" {
    from=$(owner "$key")
    to=$(another "$from")
    start_holding "$key" -v --ttl 10s --node-timeout 2s 'exec sleep 60'
    token=$(rcli "$from" get "$key")
    cluster_move "$key" "$from" "$to"
    wait_until "[ \"\$(rcli $to get '$key')\" = '$token' ]" || fail "$(rcli "$to" get "$key")"
    wait_until "[ \"\$(rcli $to pttl '$key')\" -le 8000 ]"
    wait_until "[ \"\$(rcli $to pttl '$key')\" -ge 8300 ]"
    terminate_command
    is_free "$key" "$to"
}

@test "while a slot moves dlock waits for it, and the message says so" {
    from=$(owner "$key")
    to=$(another "$from")
    start_holding "$key" -v --ttl 30s 'while [ ! -e stop ]; do sleep 0.2; done'
    holder=$bg
    start acquire --wait 60s --node-timeout 1s "$key"
    wait_until "[[ \$(rcli $from info clients) == *blocked_clients:1* ]]"
    # The lock's own keys go first; what asks for more than there is on either side has to wait.
    cluster_move_begin "$key" "$from" "$to"
    rcli "$from" migrate 127.0.0.1 "$(port_of "$to")" '' 0 5000 keys "$key" "{$key}:dlock" >/dev/null
    # When its time is over, a busy machine may just owe it an answer.
    for _ in 1 2 3 4 5; do
        try acquire --node-timeout 1s "$key"
        [[ $stderr == *'no answer in time' ]] || break
    done
    fails 69 "the key's slot is moving"
    wait_until "grep -q \"the key's slot is moving\" bg.1.err" 25
    cluster_move "$key" "$from" "$to"
    wait_until "[ \"\$(rcli $to pttl '$key')\" -gt 22000 ]" 25
    stops 0 "$holder"
    finishes_well "$bg"
    [ "$(rcli "$to" get "$key")" = "$output" ]
}

@test "a wait continues when the slot moves" {
    from=$(owner "$key")
    to=$(another "$from")
    take "$key"
    start acquire --wait 60s "$key"
    wait_until "[[ \$(rcli $from info clients) == *blocked_clients:1* ]]"
    cluster_move "$key" "$from" "$to"
    works release "$key" "$token"
    finishes_well
    [ "$(rcli "$to" get "$key")" = "$output" ]
}

@test "a Cluster is one node among several, whichever of its servers are given" {
    redis_start b
    DLOCK_NODES="redis+cluster://$(places c1 c2 c3) $(node a) $(node b)"
    take_on_all 3
    works release "$key" "$token"
    refuses 64 'same server' acquire -N "redis+cluster://$(place c1)" -N "redis+cluster://$(place c2)" "$key"
    # One of three may be down.  The release may have been too slow for the Cluster.
    redis_stop b
    works run "$key-2" -- true
}

@test "user and password, on every server of the Cluster" {
    for name in c1 c2 c3; do
        rcli "$name" acl setuser locker on '>hidden-word' '~*' '+@all' >/dev/null
        rcli "$name" acl setuser default resetpass '>other' >/dev/null
    done
    try run -N "redis+cluster://locker:hidden-word@$(place c1)" "$key" -- true
    for name in c1 c2 c3; do
        REDISCLI_AUTH=other rcli "$name" acl setuser default nopass >/dev/null
    done
    succeeds
    refuses 77 'wrong user or password' run -N "redis+cluster://locker:wrong-word@$(place c1)" "$key" -- true
}

@test "the owner of the slot is gone, and so is its host: a holder and a waiter find the next one" {
    local holder
    servers_start liar tcp/says tcp/unanswered
    redis_start_tcp first
    redis_start_tcp next
    owns() { says CLUSTER "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$(bulk 127.0.0.1):$1\r\n"; }
    owns "$(port_of first)"
    DLOCK_NODES=redis+cluster://$(liar_tcp)
    start_holding "$key" -v --ttl 12s --node-timeout 1s 'until [ -e stop ]; do sleep 0.2; done'
    holder=$bg token=$(rcli first get "$key")
    start run -v --wait 60s --node-timeout 1s "$key" -- true
    wait_until 'grep -q "in the queue" bg.2.err'
    # For a while the others still call it the owner.
    owns "$(cat "$(server_dir liar)/unanswered.port")"
    redis_stop first
    wait_until 'grep -q "no connection in time" bg.1.err && grep -q "no connection in time" bg.2.err'
    rcli next set "$key" "$token" px 12000
    owns "$(port_of next)"
    is_renewed "$key" next
    wait_until 'grep -q "is not dlock" bg.2.err'
    stops 0 "$holder"
    finishes 0
}
