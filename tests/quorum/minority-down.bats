#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# A minority of the nodes is out of order: nobody notices, and nothing is left behind.

load ../lib/quorum

node_count=7 faulted=2

# all_succeed KIND N COUNT: every command succeeds if COUNT of N nodes fail.  The node timeout is long:
# a command that waits for such a node would exceed the time limit.
all_succeed() {
    local i
    export DLOCK_NODE_TIMEOUT=10s
    key=job-$BATS_TEST_NUMBER-$2
    use_faulty "$@"
    within 5000 works acquire --json --ttl 60s "$key"
    token=$(jq -r .token <<<"$output")
    [ "$(jq .nodes <<<"$output")" -eq "$2" ]
    within 5000 refuses 75 "$key: held by" acquire --ttl 60s "$key"
    within 5000 refuses 75 "$key: held by" acquire --wait 300ms --ttl 60s "$key"
    within 5000 works renew --ttl 60s "$key" "$token"
    within 5000 works release "$key" "$token"
    for ((i = $3 + 1; i <= $2; i++)); do is_free "$key" "n$i"; done
    within 5000 gives 3 run --ttl 60s "$key" -- sh -c 'exit 3'
    for ((i = $3 + 1; i <= $2; i++)); do is_free "$key" "n$i"; done
    within 5000 gives 1 status "$key"
    within 5000 works status "$key*"
    # When they continue, the requests that they got before are rolled back.
    for ((i = 1; i <= $3; i++)); do
        [ "$1" != hung ] || redis_thaw "n$i"
        [ "$1" != late ] || proxy_rules "p$i"
        [ "$1" = killed ] || wait_until "free '$key' n$i"
    done
    nodes_restore
}

# With three, five and seven nodes; faults that do not depend on the number, with five.
minority() {
    all_succeed "$1" 3 1
    all_succeed "$1" 5 2
    all_succeed "$1" 7 3
}
two_of_five() { all_succeed "$1" 5 2; }

@test "a minority is killed" { minority killed; }
@test "a minority hangs" { minority hung; }
@test "a minority refuses connections" { two_of_five refused; }
@test "a minority does not accept the connection" { two_of_five unanswered; }
@test "a minority accepts connections and does not reply" { two_of_five silent; }
@test "a minority replies after the deadline" { two_of_five late; }
@test "the replies of a minority are lost" { two_of_five lost; }
@test "a minority closes the connection instead of replying" { two_of_five cut; }

@test "a hung node that resumes after the release does not keep the lock; while it is held it gets the lock, and the release" {
    use 3
    redis_freeze n3
    for i in 1 2 3 4 5; do
        take "$key" --ttl 60s
        dlock release "$key" "$token"
    done
    redis_thaw n3
    # Its answers come in the order of the requests, and the last of them is ours.
    wait_until "[ \"\$(rcli n3 hget '{$key}:dlock' gone)\" = '$token' ] && free '$key' n3"
    redis_freeze n3
    take "$key" --ttl 60s
    redis_thaw n3
    wait_until "[ \"\$(rcli n3 get '$key')\" = '$token' ]"
    works release "$key" "$token"
    wait_until "free_everywhere '$key' 3"
}

@test "attempts that are refused at once leave nothing on a hung node" {
    use 5
    take "$key" --ttl 60s
    rcli n5 del "$key"
    redis_freeze n5
    for i in 1 2 3 4 5; do
        refuses 75 '' acquire --ttl 60s "$key"
    done
    redis_thaw n5
    rolled_back "$key" n5
}

@test "a renewal whose reply is lost on a minority counts" {
    use_faulty lost 5 2
    proxy_rules p1
    proxy_rules p2
    take "$key" --ttl 60s
    proxy_rules p1 drop
    proxy_rules p2 drop
    within 5000 works renew --node-timeout 10s --ttl 60s "$key" "$token"
}

@test "a node restarts empty between acquire and release" {
    use 5
    take "$key" --ttl 60s
    restart_empty n1 n2
    refuses 75 "$key: held by" acquire "$key"
    wait_until "free '$key' n1 && free '$key' n2"
    works renew --ttl 60s "$key" "$token"
    works release "$key" "$token"
    wait_until "free_everywhere '$key' 5"
}
