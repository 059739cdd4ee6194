#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# Why a lock over several nodes was not acquired: held, split between contenders, no quorum, too
# slow, refused.  They are told apart by message and exit status.

load ../lib/quorum

@test "kept for longer than the wait: the others wait until the command is done, and skip it" {
    runs_once 10m 1h
    within 3000 refuses 75 'kept until .*dlock break' run --wait 30s "$key" -- true
    # One node that still has the lock, or has it kept, does not decide.
    on_all 4 del "$key"
    gives 0 run --wait 30s "$key" -- echo ran
    prints ran
}

@test "held on a majority: 75, and the other nodes stay free" {
    on_all 3 set "$key" "$OTHER_TOKEN" px 20000
    refuses 75 "$key: held by a client that is not dlock" acquire "$key"
    wait_until "free '$key' n4 && free '$key' n5"
    [ "$(holders "$key" 5)" -eq 3 ]
}

@test "held on a minority: granted" {
    on_all 2 set "$key" "$OTHER_TOKEN" px 20000
    tells 0 '.granted == 3' acquire --json "$key"
    [ "$(rcli n1 get "$key")" = "$OTHER_TOKEN" ]
    works release "$key" "$(jq -r .token <<<"$output")"
    wait_until "[ \$(holders '$key' 5) -eq 2 ]"
}

@test "split votes: 75 and contended, within about a node timeout" {
    split_votes
    within 5000 refuses 75 "$key: contended: .*majority of the 5 nodes" acquire --node-timeout 2s "$key"
    [[ $stderr != *held* ]] || fail "nobody holds it"
    is_free "$key" n5
    [ "$(rcli n1 get "$key")$(rcli n3 get "$key")" = "$OTHER_TOKEN$THIRD_TOKEN" ]
    refuses 9 contended acquire --node-timeout 2s -E 9 "$key"
}

@test "split votes: tried again for the length of a node timeout, even without --wait" {
    split_votes
    start acquire --node-timeout 15s -v "$key"
    wait_until "grep -q 'contended.*next try' bg.1.err"
    on_all 2 del "$key"
    finishes 0
    [ "$(rcli n1 get "$key")" = "$output" ]
}

@test "no quorum: 69, the number that replied, and the errors of the others" {
    redis_stop n1 n2
    redis_freeze n3
    within 3500 refuses 69 "no quorum: 2 of 5 nodes answered, 3 are needed" acquire --node-timeout 2s "$key"
    [[ $stderr == *"$(node n1): "* && $stderr == *"$(node n2): "* && $stderr == *"$(node n3): no answer in time"* ]] ||
        fail "expected the nodes and their troubles"
    [[ $stderr != *"$(node n4)"* && $stderr != *"$(node n5)"* ]] || fail "nothing is wrong with those"
}

@test "a lock that is granted too late: 69, and nothing is left" {
    list=
    for i in 1 2 3; do
        proxy_start "p$i" "n$i" delay=0.5
        list+=" $(proxy_node "p$i")"
    done
    DLOCK_NODES=$list refuses 69 'granted too late' acquire --ttl 400ms --node-timeout 5s "$key"
    DLOCK_NODES=$list refuses 69 'granted too late' run --slots 2 --ttl 400ms --node-timeout 2s "$key" -- touch ran
    DLOCK_NODES=$list refuses 69 'granted too late' run --ttl 400ms --node-timeout 5s "$key" -- touch ran
    [ ! -e ran ]
    for i in 1 2 3; do
        rolled_back "$key" "n$i"
        wait_until "free '{$key}:slot-1' n$i && free '{$key}:slot-2' n$i"
    done
}

@test "a lock is not granted after its lease has ended, though one node does not reply" {
    # Granted just within the lease; waiting for a hung node must not outlast it.
    list=
    for i in 1 2; do
        proxy_start "p$i" "n$i" delay=1.2
        list+=" $(proxy_node "p$i")"
    done
    redis_freeze n3
    DLOCK_NODES="$list $(node n3)" try acquire --json --ttl 2s --node-timeout 5s "$key"
    if [ "$status" -eq 0 ]; then
        jq -e '.valid_ms > 0' <<<"$output" || fail "granted, and over already"
    else
        exits 69
        complains
    fi
}

@test "a rollback that is answered with an error is sent again, also after the last attempt" {
    proxy_start p4 n4 delay@1=0.5 error@2
    DLOCK_NODES=$(proxy_node p4) refuses 69 'granted too late' acquire --ttl 400ms --node-timeout 5s "$key"
    held "{$key}:dlock" n4
    is_free "{$key}:dlock:history" n4
}

@test "the rollbacks of several attempts are sent until each is done" {
    # The first attempt is granted, but its reply is lost, and so are the rollback and the attempts that follow.
    proxy_start p1 n1 cut@1 before@{2..20}
    for i in 2 3; do rcli "n$i" set "$key" foreign px 60000; done
    DLOCK_NODES="$(proxy_node p1) $(node n2) $(node n3)" start run --ttl 60s --wait 60s "$key" -- true
    rolled_back "$key" n1
    terminate
}

@test "refused by a majority: 77, and nothing is left on the others" {
    for i in 1 2 3; do redis_start "locked$i" --requirepass secret; done
    DLOCK_NODES="$(node locked1) $(node locked2) $(node locked3) $(node n4) $(node n5)"
    refuses 77 password acquire "$key"
    rolled_back "$key" n4
    rolled_back "$key" n5
    DLOCK_PASSWORD=secret works acquire --node "$(node locked1)" --node "$(node locked2)" --node "$(node locked3)" "$key"
}

@test "refused by a minority: granted, and without the others 69" {
    redis_start locked1 --requirepass secret
    DLOCK_NODES="$(node locked1) $(node n1) $(node n2)"
    works acquire "$key"
    redis_stop n1 n2
    refuses 69 'no quorum: 0 of 3' acquire "$key"
}

@test "a minority whose names do not resolve costs no more than a node timeout" {
    need_localhost
    redis_start_tcp tcp
    DLOCK_NODES="no-such-host.invalid:1 localhost:$(port_of tcp) $(node n1)" \
        within 5000 try acquire --node-timeout 4s "$key"
    succeeds
    DLOCK_NODES="no-such-host.invalid:1 also.no-such-host.invalid:1 $(node n1)" \
        within 3000 try acquire --node-timeout 1s "$key-2"
    fails 69
    rolled_back "$key-2" n1
}

@test "a release that cannot find out whether the lock was ours does not report a loss" {
    use 3
    for there in "set $key $OTHER_TOKEN px 60000" "del $key"; do
        # In this order, so that no renewal heals n3 in between.
        # Without a history to record, the release is tried for a node timeout only.
        gives 0 run --history 0 --ttl 20s --node-timeout 2s --report report "$key" -- \
            sh -c "kill -STOP $(server_pid n2); '$REDIS_CLI' -s '$(server_dir n3)/s' $there >/dev/null"
        [ "$(jq -r .outcome report)" = ran ] || fail "$(cat report)"
        [[ $stderr == *"not released: fewer than a majority of the 3 nodes report the lock as ours"* ]] ||
            fail "expected a warning"
        redis_thaw n2
        on_all 3 del "$key" >/dev/null
    done
    # Where a majority denies it, it is one.  dlock is stopped, or a renewal between the deletions would heal the first.
    try run --ttl 20s "$key" -- sh -c "kill -STOP \$PPID; for n in '$(server_dir n2)' '$(server_dir n3)'; do
        '$REDIS_CLI' -s \"\$n/s\" del $key; done; kill -CONT \$PPID" >/dev/null
    exits 76
}

@test "a majority must know of a release, or a lock that is gone was lost" {
    use 3
    for knowing in 1 2; do
        sleep 60 3>&- 4>&- &
        pid=$!
        token=$(DLOCK_NODE_TIMEOUT=2s dlock acquire --keep "$pid" --ttl 3s "$key")
        on_all "$knowing" hset "{$key}:dlock" gone "$token" >/dev/null
        if [ "$knowing" = 1 ]; then
            rcli n2 del "$key" >/dev/null
            rcli n3 del "$key" >/dev/null
            wait_until "! alive $pid" # a release would have left it alone
        else
            wait_until "[ \"\$(leftovers)\" = $pid ] || ! alive $pid"
            alive "$pid" || fail "a release is no loss"
            kill "$pid"
        fi
        on_all 3 del "$key" "{$key}:dlock" >/dev/null
    done
}
