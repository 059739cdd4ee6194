#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# A hostile ZooKeeper: whatever it replies, dlock ends in time, with a documented status, and prints nothing that a
# terminal obeys.  It needs no ZooKeeper.

# shellcheck disable=SC2016,SC2030,SC2031,SC2154
bats_require_minimum_version 1.5.0
load ../lib/redis

setup_file() {
    local dir
    dir=$(server_dir liar)
    spawn liar "$PYTHON" "$lib_dir/zkservers.py" "$dir"
    wait_until "grep -q '^READY' '$dir/out'"
}
setup() {
    test_begin
    stalls_note
    lie
    DLOCK_NODES=zk://127.0.0.1:$(<"$(server_dir liar)/port")
    export DLOCK_NODES DLOCK_TTL=6s
}

# lie [KIND=LIE...]: see zkservers.py.
lie() { echo "$*" >"$(server_dir liar)/lie"; }

# survives ARG...: dlock ARG... ends in time, with a documented status, and prints no control characters.
survives() {
    local began
    began=$(now_ms)
    try "$@"
    [[ " 0 1 64 69 71 75 76 77 " == *" $status "* ]] || fail "$(cat "$(server_dir liar)/lie"): status $status"
    took_at_most 5000 "$began"
    ! LC_ALL=C grep -qP '[\x00-\x08\x0b-\x1f\x7f-\xff]' <<<"$output$stderr" || fail 'control characters'
}

# each_lie KIND...: each lie in reply to each KIND of request, for the commands that send it.
each_lie() {
    local kind name
    export DLOCK_NODE_TIMEOUT=100ms
    for kind in "$@"; do
        while read -r name; do
            lie "$kind=$name"
            survives run "$key" -- true
            case $kind in
                getChildren2 | getData)
                    survives status "$key"
                    survives break --force "$key"
                    ;;
                connect | setData) survives renew "$key" "$token" ;;
            esac
        done < <("$PYTHON" "$lib_dir/zkservers.py" --lies)
    done
}

@test "a fake server that does not lie grants a lock" {
    try run "$key" -- sh -c 'echo "$DLOCK_FENCE"'
    succeeds
    prints 21474836481
    take "$key"
}

@test "a connection that is closed at once: the message suggests maxClientCnxns" {
    local name
    for name in close reset; do
        lie "connect=$name"
        try run "$key" -- true
        fails 69 maxClientCnxns
    done
}

@test "any reply to connect does no harm" {
    take "$key"
    each_lie connect
}

@test "any reply to multi and getChildren2 does no harm" { each_lie multi getChildren2; }

@test "any reply to exists and closeSession does no harm" { each_lie exists closeSession; }

@test "any reply to createContainer, sync, getData and delete does no harm" {
    take "$key"
    each_lie createContainer
    each_lie sync getData delete
}

@test "any reply to a renewal does no harm" {
    take "$key"
    each_lie setData
}

@test "a lock node of another session, or without a fence, is no lock" {
    local name
    for name in not-ours no-fence negative-fence far-fence short-stat; do
        lie "exists=$name"
        try run "$key" -- touch begun
        [ ! -e begun ] || fail "$name: the command was started"
        [ "$status" -ne 0 ]
    done
}

@test "a reply for another session does not renew: the command is dead by the end of the lease" {
    local name start
    for name in other expired nothing; do
        lie
        start_holding "$key" --ttl 3s --node-timeout 2s 'sleep 60'
        lie "connect=$name"
        # No renewal that was sent later is answered.
        start=$(now_ms)
        wait_until "! alive $command_pid"
        took_at_most 3500 "$start"
        finish
        exits_76_or_killed
        # The lease, and two times a node's time to give back what may be left.
        took_at_most 11000 "$start"
    done
}
