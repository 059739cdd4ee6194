#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# Several contenders for one lock over several nodes: they keep each other out, they get on, and
# hung nodes do not hold them up.

load ../lib/quorum

faulted=2

# contend COUNT ROUNDS ARG...: so many contenders visit the resource so many times each.
contend() {
    local count=$1 rounds=$2 i pids=
    shift 2
    for ((i = 0; i < count; i++)); do
        (
            for ((j = 0; j < rounds; j++)); do
                timeout -k 2 60 "$DLOCK" run --ttl 10s --wait 50s --node-timeout 5s "$@" "$key" -- sh -c "$resource" || echo "$?" >>failed
            done
        ) </dev/null >/dev/null 2>>errors 3>&- 4>&- &
        pids+=" $!"
    done
    wait $pids || true
}

# all_visited N
all_visited() {
    [ ! -e failed ] || fail "failed: $(sort failed | uniq -c | tr '\n' ' ') $(sort errors | uniq -c | sort -rn | head -n 3)"
    [ "$(visits)" -eq "$1" ] || fail "$(visits) visits of $1"
    no_overlap
    # Each visit has a fence of its own.
    [ "$(sort -u ran | wc -l)" -eq "$1" ]
}

@test "ten contenders on five nodes make progress and never overlap" {
    contend 10 2
    all_visited 20
    wait_until "free_everywhere '$key' 5"
}

@test "contenders with a hung minority" {
    redis_freeze n1 n2
    contend 4 3
    all_visited 12
    redis_thaw n1 n2
    wait_until "free_everywhere '$key' 5"
}

@test "contenders with a minority that does not accept connections" {
    use_faulty unanswered 5 2
    contend 4 3
    all_visited 12
}

@test "a waiter sends each attempt to a hung node, but waits for it only once" {
    use 3
    rcli n1 set "$key" "$OTHER_TOKEN" px 60000
    redis_freeze n3
    # The votes are split: one held, one granted, one silent.  Only the first try is as long as
    # the node timeout; six that long would take 24 seconds.
    start acquire --ttl 60s --node-timeout 4s --wait 60s -v "$key"
    wait_until "[ \$(grep -c 'next try' bg.1.err) -ge 6 ]" 18
    terminate
    redis_thaw n3
    rolled_back "$key" n2
    rolled_back "$key" n3
}

@test "two runs that start together, fifty times: one runs, the other is excluded" {
    for ((i = 0; i < 50; i++)); do
        start run --ttl 10s --node-timeout 5s "$key-$i" -- sh -c "echo in >>in.$i; while [ ! -e go.$i ]; do sleep 0.01; done"
        one=$bg
        start run --ttl 10s --node-timeout 5s "$key-$i" -- sh -c "echo in >>in.$i; while [ ! -e go.$i ]; do sleep 0.01; done"
        other=$bg
        wait_until "! alive $one || ! alive $other"
        : >"go.$i"
        finish "$one"
        statuses=$status
        finish "$other"
        statuses+=" $status"
        [ "$statuses" = "0 75" ] || [ "$statuses" = "75 0" ] || fail "statuses $statuses in round $i"
        [ "$(wc -l <"in.$i")" -eq 1 ] || fail "both ran in round $i"
    done
}

@test "a waiter survives the restart of the nodes" {
    take "$key" --ttl 60s
    start acquire --wait 30s --node-timeout 2s -v "$key"
    wait_until "grep -q 'next try' bg.1.err"
    for name in n1 n2 n3; do redis_stop "$name"; done
    wait_until "grep -q 'no quorum' bg.1.err"
    for name in n1 n2 n3; do redis_start "$name"; done
    # They are empty, so the lock is free on a majority.
    finishes 0
    [ "$(rcli n1 get "$key")" = "$output" ]
}

# ------------------------------------------------------------ how long a wait may take

# differ NODE...: on each of them another foreign client holds the key.
differ() {
    local name
    for name; do rcli "$name" set "$key" "of-$name" px 60000; done
}

# ends_in_time [TIMES]: waits of 300 ms with a node timeout of 600 ms end after both together at the latest, and the time
# that the process itself needs.
ends_in_time() {
    local i
    for ((i = 0; i < ${1:-3}; i++)); do
        within 1300 try acquire --wait 300ms --node-timeout 600ms "$key"
        [ "$status" -eq 75 ] || [ "$status" -eq 69 ] || fail 'expected 75 or 69'
    done
}

@test "a wait ends within its limit and one node timeout if the votes are split" {
    use 3
    differ n1 n2
    ends_in_time
    differ n3
    ends_in_time
    at_least 300
    use_faulty refused 3 1
    ends_in_time
    proxy_rules p1 far=0.02
    DLOCK_NODES="$(proxy_node p1) $(node n2) $(node n3)"
    ends_in_time
}

@test "a wait ends within its limit and one node timeout if nodes do not reply" {
    use 3
    differ n1 n2
    redis_freeze n3
    ends_in_time 2
    redis_freeze n2
    ends_in_time 2
    nodes_restore
    on_all 2 del "$key"
    take "$key"
    # All wait at the first node.
    redis_freeze n1
    ends_in_time 2
    # The queue node hangs while clients wait there; to leave the queue takes no time.
    redis_thaw n1
    start acquire --wait 3s --node-timeout 1500ms -v "$key"
    wait_until "grep -q 'in the queue' bg.1.err"
    redis_freeze n1
    within 5500 finishes 75
}
