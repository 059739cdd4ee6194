#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# A hostile ZooKeeper: whatever it answers, dlock ends in time, with a status of the contract, and prints nothing that a
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

# survives ARG...: dlock ARG... ends in time, well or with a status of the contract, and says nothing that harms.
survives() {
    local began
    began=$(now_ms)
    try "$@"
    [[ " 0 1 64 69 71 75 76 77 " == *" $status "* ]] || fail "$(cat "$(server_dir liar)/lie"): status $status"
    took_at_most 5000 "$began"
    ! LC_ALL=C grep -qP '[\x00-\x08\x0b-\x1f\x7f-\xff]' <<<"$output$stderr" || fail 'control characters'
}

# each_lie KIND... : each of these with each lie, for what uses them.
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

@test "the server without a lie grants a lock" {
    try run "$key" -- sh -c 'echo "$DLOCK_FENCE"'
    succeeds
    prints 21474836481
    take "$key"
}

@test "a connection that is closed at once: perhaps the server has too many from this host" {
    lie connect=close
    try run "$key" -- true
    fails 69 maxClientCnxns
}

@test "any answer to a connect harms nobody" {
    take "$key"
    each_lie connect
}

@test "any answer to multi and getChildren2 harms nobody" { each_lie multi getChildren2; }

@test "any answer to exists and closeSession harms nobody" { each_lie exists closeSession; }

@test "any answer to createContainer, sync, getData and delete harms nobody" {
    take "$key"
    each_lie createContainer
    each_lie sync getData delete
}

@test "any answer to a renewal harms nobody" {
    take "$key"
    each_lie setData
}

@test "a lock whose node is another's, or has no fence, is not held" {
    local name
    for name in not-ours no-fence negative-fence far-fence short-stat; do
        lie "exists=$name"
        try run "$key" -- touch begun
        [ ! -e begun ] || fail "$name: the command was started"
        [ "$status" -ne 0 ]
    done
}

@test "a session that is another's proves nothing: the command is dead by the end of the lease" {
    local name start
    for name in other expired nothing; do
        lie
        start_holding "$key" --ttl 3s --node-timeout 2s 'sleep 60'
        start=$(now_ms)
        lie "connect=$name"
        wait_until "! alive $command_pid"
        took_at_most 3500 "$start"
        finish
        exits_76_or_killed
        # The lease, and two times a node's time to give back what may be left.
        took_at_most 8500 "$start"
    done
}
