#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# --restart-guard: a node that started a short while ago may have forgotten a lock, so it grants
# nothing until every lease that it may have known is over.  By default that is on over several nodes.

load ../lib/quorum

used=3
setup() {
    test_begin
    unset DLOCK_RESTART_GUARD
}

# up NODE: the uptime in seconds.
up() { rcli "$1" info server | sed -n 's/^uptime_in_seconds:\([0-9]*\).*/\1/p'; }

@test "nodes that have just started grant nothing; the message names node and time" {
    gives 69 acquire --restart-guard 10m "$key"
    refusal='/n[123]/s: it started [0-9a-z.]+ ago and grants nothing for another (9m|10m)[0-9a-z.]* \(--restart-guard\)'
    complains "$refusal.*$refusal" # the third one need not be waited for
    wait_until "free_everywhere '$key' 3"
    DLOCK_RESTART_GUARD=10m warns 69 restart-guard run "$key" -- touch ran
    [ ! -e ran ]
}

@test "the guard is on with several nodes, for the requested lease; with one node it is off, unless it is asked for" {
    restart_empty n1 n2
    refuses 69 'it started .* ago and grants nothing for another (2[0-9]|30|31)[.]0s \(--restart-guard\)' acquire "$key"
    refuses 69 'another (9m|10m)' acquire --restart-guard auto --ttl 10m "$key"
    DLOCK_RESTART_GUARD=auto refuses 69 'another (9m|10m)' acquire --ttl 10m "$key"
    echo 'restart-guard auto' >config
    refuses 69 'another (9m|10m)' acquire --config config --ttl 10m "$key"
    free_everywhere "$key" 3
    works acquire --restart-guard 0 "$key"
    use 1
    works acquire --ttl 10m "$key-2"
    refuses 69 "$(node n1): it started" acquire --restart-guard 10m "$key-3"
    is_free "$key-3" n1
}

# bare_majority TTL: a lock that $token holds on n1 and n2 only, and n1 restarts empty.  The others have been up for longer
# than a lease of 8 s.
bare_majority() {
    wait_until "[ \$(up n2) -ge 9 ] && [ \$(up n3) -ge 9 ]" 20
    rcli n3 set "$key" "$OTHER_TOKEN" nx px 60000
    take "$key" --ttl "$1" --restart-guard 0
    rcli n3 del "$key"
    [ "$(holders "$key" 3)" -eq 2 ]
    restart_empty n1
}

@test "a lock on a bare majority, of which one node restarts empty: not granted twice" {
    bare_majority 30s
    gives 75 run --ttl 8s --node-timeout 2s "$key" -- touch ran
    complains "contended.*$(node n1): it started .* another [1-9][.]0s \(--restart-guard\)"
    [ ! -e ran ]
    is_free "$key" n1
    # Without the guard it is granted twice: the guard is needed.
    works run --restart-guard 0 "$key" -- touch ran
    [ -e ran ]
    [ "$(rcli n2 get "$key")" = "$token" ]
}

@test "the grant of a node that restarts empty before the attempt is decided does not count" {
    # Meanwhile it may have been healed for another holder.
    proxy_start p2 n2 delay@1=20
    DLOCK_NODES="$(node n1) $(proxy_node p2) $PWD/nobody" start acquire --restart-guard 0 --node-timeout 15s --ttl 60s "$key"
    wait_until "[ \$(holders '$key' 2) -eq 2 ]"
    restart_empty n1
    proxy_rules p2
    finishes 69
    complains 'n1/s: it closed the connection after it had granted the lock'
    [ -z "$output" ]
    wait_until "free_everywhere '$key' 3"
}

@test "a lock on a bare majority: a waiter gets it when its lease has ended, not before" {
    bare_majority 8s
    within 20000 works run --ttl 8s --node-timeout 2s --wait 25s "$key" -- "$REDIS_CLI" -s "$(server_dir n2)/s" get "$key"
    [ "$output" != "$token" ] || fail "two holders"
}

@test "a node that missed the grant soon gets the lock" {
    again=1
    # Again where a busy machine let the other's lock on n3 end before it could be in the way.
    while [ "$again" -eq 1 ]; do
        rm -f stop
        rcli n3 set "$key" "$OTHER_TOKEN" px 80
        start_holding "$key" --restart-guard 0 -v 'while [ ! -e stop ]; do sleep 0.2; done'
        token=$(rcli n1 get "$key")
        within 3000 wait_until "[ \"\$(rcli n3 get '$key')\" = '$token' ]"
        stops 0
        [[ $stderr != *"$(node n3): the lock was restored there"* ]] || again=0
    done
}

# old_handoff NAME...: the lock is a handoff token there: $OTHER_TOKEN, which was released, and whoever pops it may take
# its place.
old_handoff() {
    local name
    for name in "$@"; do
        rcli "$name" set "$key" "$OTHER_TOKEN" px 60000
        rcli "$name" hset "{$key}:dlock" token "$OTHER_TOKEN" gone "$OTHER_TOKEN" fence 1
        rcli "$name" rpush "{$key}:dlock:wake" "$OTHER_TOKEN"
        rcli "$name" pexpire "{$key}:dlock:wake" 60000
    done >/dev/null
}

@test "a node that has just started does not exchange a handoff token: its AOF may be from before a crash" {
    for name in m1 m2; do redis_start "$name" --appendonly yes --appendfsync always; done
    DLOCK_NODES="$(node m1) $(node m2)"
    old_handoff m1 m2
    for name in m1 m2; do
        mkdir "$name"
        cp -a "$(server_dir "$name")"/appendonly* "$name"
    done
    take "$key" --restart-guard 0 --wait 10s
    # Both come back with what was on their disks before that.
    for name in m1 m2; do
        redis_stop "$name"
        rm -r "$(server_dir "$name")"/appendonly*
        cp -a "$name"/appendonly* "$(server_dir "$name")"
        redis_start "$name" --appendonly yes --appendfsync always
    done
    pair="$OTHER_TOKEN $OTHER_TOKEN"
    [ "$(rcli m1 get "$key") $(rcli m2 get "$key")" = "$pair" ]
    stalls_note
    try run --wait 300ms -v "$key" -- touch ran
    [ "$status" -eq 75 ] || waited_in_vain 75
    [[ $stderr == *"(--restart-guard); next try"* ]] || fail "expected a refusal by the guard"
    [ ! -e ran ]
    [ "$(rcli m1 get "$key") $(rcli m2 get "$key")" = "$pair" ]
    # Without the guard there are two holders: the guard is needed.
    old_handoff m1 m2
    works run --wait 10s --restart-guard 0 "$key" -- touch ran
    [ -e ran ]
}

@test "with --wait the next attempt is made when the guard ends, not before" {
    restart_empty n1 n2
    gives 0 acquire --restart-guard 8s --wait 20s -v "$key"
    [ "$(up n1)" -ge 8 ] && [ "$(up n2)" -ge 8 ] || fail "granted too early"
    # It does not ask in a busy loop during the last second.
    [ "$(grep -c 'asking 3 nodes' <<<"$stderr")" -le 25 ] || fail "too many tries"
    [[ $stderr =~ "next try in "[1-8][0-9]{3}" ms" ]] || fail "expected a wait for the guard"
}

@test "servers without INFO: the default does not guard them, an explicit guard refuses" {
    for name in i1 i2 i3; do redis_start "$name" --rename-command INFO ''; done
    DLOCK_NODES="$(node i1) $(node i2) $(node i3)"
    refuses 69 'it has no INFO, which --restart-guard needs' run --restart-guard 10s "$key" -- touch ran
    [ ! -e ran ]
    works run --restart-guard auto "$key" -- touch ran
    [ -e ran ]
    works run --restart-guard 0 "$key" -- true
}

@test "one of three nodes has just started: the others grant" {
    wait_until "[ \$(up n2) -ge 3 ] && [ \$(up n3) -ge 3 ]"
    # Again where a busy machine let the guard of that node run out.
    again=1
    while [ "$again" -eq 1 ]; do
        restart_empty n1
        gives 0 acquire --restart-guard 2s -v "$key"
        if [ "$(up n1)" -lt 2 ]; then
            again=0
        else
            dlock release "$key" "$output"
        fi
    done
    is_free "$key" n1
    wait_until "held '$key' n2 && held '$key' n3"
}

@test "a wait that is too short ends with the reason" {
    restart_empty n1 n2
    stalls_note
    try acquire --restart-guard 10m --wait 500ms "$key"
    waited_in_vain 69 restart-guard
    [[ $stderr == *'no answer in time'* ||
        $stderr =~ ^"dlock: $key: waiting; no quorum: "[^$'\n']*"$(node n1): it started "[^$'\n']*restart-guard ]] ||
        fail "expected the reason when the wait begins"
}

@test "healing is exempt from the guard" {
    wait_until "[ \$(up n2) -ge 3 ] && [ \$(up n3) -ge 3 ]"
    start_holding "$key" --ttl 3s -k 100ms --restart-guard 2s 'while [ ! -e stop ]; do sleep 0.2; done'
    token=$(rcli n3 get "$key")
    restart_empty n1
    wait_until "[ \"\$(rcli n1 get '$key')\" = '$token' ]"
    stops 0
}

@test "renew, release and status are exempt from the guard" {
    take "$key" --restart-guard 0
    export DLOCK_RESTART_GUARD=10m
    works renew "$key" "$token"
    works status "$key"
    refuses 75 "held by" acquire "$key"
    works release "$key" "$token"
}

@test "a lock that a majority forgot is not granted twice" {
    wait_until "[ \$(up n1) -ge 3 ] && [ \$(up n2) -ge 3 ] && [ \$(up n3) -ge 3 ]"
    take "$key" --ttl 30s --restart-guard 2s
    # Five nodes would keep it; of three a majority restarts, and with it the lock is gone.
    restart_empty n1 n2
    warns 69 restart-guard acquire --restart-guard 30s "$key"
    wait_until "free '$key' n1 && free '$key' n2"
    [ "$(rcli n3 get "$key")" = "$token" ]
    # Without the guard it is granted twice: the guard is needed.
    works acquire --restart-guard 0 "$key"
}
