#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# Locks on ZooKeeper while single requests and replies are lost.

load ../lib/zookeeper

# lost_once WHAT KIND COMMAND...: the first request of that kind, or its reply, is lost.
lost_once() {
    local what=$1 kind=$2
    shift 2
    zk rules "$what:$kind@1"
    "$@"
    zk rules
}

@test "any request or reply of run is lost: it runs once, and nothing is left behind" {
    for kind in connect multi getChildren2 exists closeSession; do
        for what in before cut drop; do
            rm -f ran
            lost_once "$what" "$kind" try run "$key" -- sh -c 'echo "$DLOCK_FENCE" >>ran'
            [ "$status" -eq 0 ] || fail "$what $kind"
            [ "$(wc -l <ran)" -eq 1 ]
            [ "$(cat ran)" -gt 0 ] || fail "$what $kind: no fence"
            wait_until "[ \"\$(entry_count '$key')\" -eq 0 ]" 4 || fail "$what $kind: $(entries "$key")"
        done
    done
}

@test "any request or reply of run with a slot is lost: it runs once, and nothing is left behind" {
    for which in multi@1 multi@2 multi@3 multi@4 getChildren2@2 getChildren2@3; do
        for what in before cut drop; do
            rm -f ran
            zk rules "$what:$which"
            try run --slots 1 "$key" -- sh -c 'echo >>ran'
            zk rules
            [ "$status" -eq 0 ] || fail "$what $which: $stderr"
            [ "$(wc -l <ran)" -eq 1 ]
            wait_until '[ -z "$(leases)" ] && [ "$(entry_count "$key/locks")" -eq 0 ]' 4 || fail "$what $which: $(leases)"
        done
    done
}

@test "any request or reply of a renewal is lost: the lock is kept" {
    hold_beating --ttl 6s --node-timeout 1s
    for kind in connect setData; do
        for what in before cut drop; do
            requests_reset
            zk rules "$what:$kind@1"
            wait_until '[ "$(requests setData)" -ge 2 ]' 20 || fail "no renewal"
            alive "$holder" || fail "the lock was lost: $(cat bg.*.err)"
        done
    done
    stops 0 "$holder"
}

@test "any request or reply of acquire and release is lost" {
    for what in before cut drop; do
        for kind in connect:connect multi:multi getChildren2:closeSession; do
            zk rules "$what:${kind%:*}@1"
            take "$key"
            [ "$(entry_count "$key")" -eq 1 ] || fail "$what $kind: $(entries "$key")"
            zk rules "$what:${kind#*:}@1"
            works release "$key" "$token"
            zk rules
            zk_is_free "$key"
        done
    done
}

@test "any request or reply of renew is lost" {
    take "$key"
    for what in before cut drop; do
        for lost in setData connect; do
            zk rules "$what:$lost@1"
            try renew "$key" "$token"
            # With a connection that stays silent the node's time is over.
            if [ "$what" = drop ]; then
                fails 69 'no answer in time'
                try renew "$key" "$token"
            fi
            succeeds
        done
    done
}

@test "a waiter whose replies are lost keeps its place" {
    for what in cut drop; do
        for kind in exists getChildren2 multi ping; do
            take "$key"
            rm -f entered
            requests_reset
            zk rules "$what:$kind@1"
            start_next --ttl 6s
            queue_length_is 2
            place=$(entries "$key" | sort -t- -k 7 | tail -n 1)
            wait_until '[ "$(requests sync)" -ge 1 ]' # on another connection, before it looks for its place
            [[ $(entries "$key") == *"$place"* ]] || fail "$what $kind: it has lost its place"
            dlock release "$key" "$token"
            zk rules
            finishes 0 "$next" 180
        done
    done
}

@test "a lost request or reply of an inner hold: the outer lock is kept" {
    take "$key"
    for what in before cut drop; do
        zk rules "$what:setData@1"
        try acquire --token "$token" "$key"
        inner=$output
        [ "$status" -eq 0 ] || exits 69
        zk rules
        works renew "$key" "$token"
        [ -n "$inner" ] || inner=$(dlock acquire --token "$token" "$key")
        status_is '.holds == 2'
        zk rules "$what:setData@1"
        tells 0 '.outcome == "still-held"' release --json "$key" "$inner"
        zk rules
        works renew "$key" "$token"
        dlock run --token "$token" "$key" -- true
    done
    status_is '.holds == 1'
}

@test "the node of KEY is removed just before the lock nodes are created" {
    zk_ask 1 create "$chroot/$key" ''
    zk rules hold:multi@1
    requests_reset
    # Time enough to remove the node: when its time is over it would make it again.
    start run --node-timeout 15s "$key" -- touch ran
    wait_until '[ "$(requests connect)" -ge 1 ]'
    zk_ask 1 delete "$chroot"
    zk rules
    finishes 0
    [ -e ran ]
}

@test "another client makes the node of KEY at the same time" {
    zk rules hold:createContainer@1
    requests_reset
    start run --node-timeout 15s "$key" -- touch ran
    wait_until '[ "$(requests exists)" -ge 1 ]'
    zk_ask 1 create "$chroot/$key" ''
    zk rules
    finishes 0
    [ -e ran ]
}
