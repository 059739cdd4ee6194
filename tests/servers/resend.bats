#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# A connection is closed while a request is on its way: the request is sent again, and counts once.  Or something in
# between has forgotten it, as a firewall that was restarted does: nothing arrives any more, in either direction, and nobody
# says so.  A renewal is retried anyway; a release has one round only, in which it is sent again on a new connection.

load ../lib/quorum

redis_servers=a node_count=3
teardown() {
    local name
    for name in p1 p2 p3; do rm -f "$(server_dir "$name")/rules"; done
    test_end
}

@test "a request whose connection is closed before it is executed is sent again" {
    for call in 1 2; do
        proxy_start before a "before@$call"
        DLOCK_NODES=$(proxy_node before) quietly 5 run "$key-$call" -- sh -c 'exit 5'
        is_free "$key-$call"
    done
    take "$key"
    for call in 1 2 3; do
        proxy_start before a "before@$call"
        DLOCK_NODES=$(proxy_node before) works renew "$key" "$token"
        DLOCK_NODES=$(proxy_node before) works status "$key"
    done
    proxy_start before a 'before@3'
    DLOCK_NODES=$(proxy_node before) works break --force "$key"
    is_free "$key"
    proxy_start before a 'before@2'
    DLOCK_NODES=$(proxy_node before) try doctor
    [[ $output == *'a test lock was acquired, renewed and released'* ]] || fail "expected no fault"
}

@test "a request that was executed before its connection was closed is sent again" {
    for call in 1 2; do
        proxy_start cut a "cut@$call"
        DLOCK_NODES=$(proxy_node cut) quietly 5 run "$key-$call" -- sh -c 'exit 5'
        is_free "$key-$call"
    done
    # A granted attempt leaves no entry in the queue, to which the release would hand over.
    proxy_start cut a 'cut@1'
    DLOCK_NODES=$(proxy_node cut) works acquire --wait 5s "$key"
    [ "$(rcli a exists "{$key}:dlock:waiting")" = 0 ]
    DLOCK_NODES=$(proxy_node cut) works release "$key" "$output"
    is_free "$key"
    # Its fence is that of the metadata.
    proxy_start cut a 'cut@1'
    DLOCK_NODES=$(proxy_node cut) try run "$key" -- sh -c 'echo $DLOCK_FENCE'
    prints "$(rcli a hget "{$key}:dlock" fence)"
    for call in 1 2 3; do
        take "$key"
        proxy_start cut a "cut@$call"
        DLOCK_NODES=$(proxy_node cut) works break --force "$key"
        is_free "$key"
    done
}

@test "a release whose reply is lost was a release, though others have released the lock since" {
    export DLOCK_TTL=1h DLOCK_NODE_TIMEOUT=30s
    for history in 20 0; do
        for n in 1 3; do
            for i in 1 2 3; do proxy_start "p$i" "n$i"; done
            DLOCK_NODES="$(proxy_node p1) $(proxy_node p2) $(proxy_node p3)"
            calls=2
            if [ "$n" = 3 ]; then
                proxy_rules p3 delay@1=30 # then a renewal follows at once, and the next one long after this test
            else
                DLOCK_NODES=$(proxy_node p1) calls=1
            fi
            start_holding "$key-$n" --history "$history" 'until [ -e go ]; do sleep 0.1; done'
            wait_until "proxy_log p1 | grep -qx 'EVAL $calls'"
            [ "$n" = 1 ] || wait_until "proxy_log p2 | grep -qx 'EVAL $calls'"
            for i in 1 2 3; do proxy_rules "p$i" "cut@$((calls + 1))" "hold@$((calls + 2))"; done
            [ "$n" = 1 ] || wait_until "proxy_log p3 | grep -qx 'EVAL $calls'"
            : >go
            use "$n"
            wait_until "free_everywhere '$key-$n' $n"
            rm go
            works run --wait 10s --history "$history" "$key-$n" -- true
            refuses 1 '' break --force "$key-$n"
            works run --history "$history" "$key-$n" -- true
            proxy_rules p1
            proxy_rules p2
            proxy_rules p3
            finishes 0
            [ -z "$stderr" ] || fail "expected no loss"
        done
    done
    # By its token; and a lock that was broken meanwhile, or that others took after its end, was not released.
    use 1
    for history in released broken expired; do
        take "$key"
        proxy_start p1 n1 'cut@1 hold@2'
        [ "$history" = released ] || proxy_rules p1 'before@1 hold@2'
        DLOCK_NODES=$(proxy_node p1) start release "$key" "$token"
        [ "$history" != broken ] || dlock break --force "$key"
        [ "$history" != expired ] || rcli n1 del "$key" >/dev/null
        wait_until "free '$key' n1"
        dlock run "$key" -- true
        dlock run "$key" -- true
        proxy_rules p1
        finish
        if [ "$history" = released ]; then exits 0; else exits 1; fi
    done
}

@test "a node that grants and closes the connection is asked again, and counts once" {
    proxy_start p1 n1 'cut@1'
    DLOCK_NODES="$(proxy_node p1) $(node n2) $(node n3)"
    gives 5 run -v "$key" -- sh -c 'exit 5'
    [[ $stderr == *'for the lock'*'the lock is ours'* ]]
    wait_until "free_everywhere '$key' 3" # the proxy may pass it on later
    # Two of them are a majority if the third node is down.
    proxy_start p1 n1 'cut@1'
    proxy_start p2 n2 'cut@1'
    DLOCK_NODES="$(proxy_node p1) $(proxy_node p2) $BATS_TEST_TMPDIR/nobody"
    works acquire --ttl 1m "$key"
    [ "$(rcli n1 get "$key")" = "$output" ]
    [ "$(rcli n2 get "$key")" = "$output" ]
    works release "$key" "$output"
    rolled_back "$key" n1
    rolled_back "$key" n2
}

@test "two names of one server are one vote, also if a connection is closed" {
    proxy_start p1 n1
    proxy_start p2 n1 'cut@1'
    DLOCK_NODES="$(proxy_node p1) $(proxy_node p2) $(node n3)"
    rcli n3 set "$key" foreign >/dev/null
    try acquire "$key"
    rcli n3 del "$key" >/dev/null
    [ "$status" -ne 0 ] || fail "expected no lock"
    wait_until "free '$key' n1"
}

# ends_well: the run ended with the 5 of its command and without a word.
ends_well() {
    exits 5
    [ -z "$stderr" ] || fail "expected nothing on standard error"
}

@test "a release on a forgotten connection is sent again on a new one" {
    proxy_start p1 a 'hold@2'
    DLOCK_NODES=$(proxy_node p1) try run --node-timeout 5s "$key" -- sh -c 'sleep 0.3; exit 5'
    ends_well
    is_free "$key"
}

@test "releases on forgotten connections to all of three nodes are sent again on new ones" {
    nodes=
    for i in 1 2 3; do
        proxy_start "p$i" "n$i" 'hold@2'
        nodes+=" $(proxy_node "p$i")"
    done
    DLOCK_NODES=$nodes try run --restart-guard 0 --node-timeout 5s "$key" -- sh -c 'sleep 0.3; exit 5'
    ends_well
    wait_until "free_everywhere '$key' 3" # a proxy may pass it on later
}
