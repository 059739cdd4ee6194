#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# A hostile ZooKeeper: whatever it replies, dlock ends in time, with a documented status, and prints nothing that a
# terminal obeys.  It needs no ZooKeeper.

load ../lib/redis

LIARS='1 2 3 4' # so many servers, each with its own lie

setup_file() {
    local n
    for n in $LIARS; do spawn "liar$n" "$PYTHON" "$lib_dir/zkservers.py" "$(server_dir "liar$n")"; done
    "$PYTHON" "$lib_dir/zkservers.py" --lies >"$BATS_FILE_TMPDIR/lies"
    for n in $LIARS; do wait_until "is_ready 'liar$n'"; done
}
setup() {
    test_begin
    stalls_note
    ask_liar 1
    export DLOCK_NODES DLOCK_TTL=6s
}

# ask_liar N: DLOCK_NODES is that server, which does not lie yet.
ask_liar() {
    liar=$(server_dir "liar$1")
    DLOCK_NODES=zk://127.0.0.1:$(<"$liar/port")
    lie
}

# lie [KIND=LIE...]: see zkservers.py.
lie() { echo "$*" >"$liar/lie"; }

# survives ARG...: dlock ARG... ends in time, with a documented status, and prints no control characters.
survives() {
    local began
    began=$(now_ms)
    try "$@"
    [[ " 0 1 64 69 71 75 76 77 " == *" $status "* ]] || fail "$(<"$liar/lie"): status $status"
    took_at_most 5000 "$began"
    is_plain
}

# each_lie KIND...: each lie in reply to each KIND of request, for the commands that send it; the servers share the lies.
each_lie() {
    local n pids=()
    export DLOCK_NODE_TIMEOUT=100ms
    for n in $LIARS; do
        (lies_of "$n" "$@") &
        pids+=($!)
    done
    for n in "${pids[@]}"; do wait "$n"; done
}

# lies_of N KIND...: those of the server N; a lock that is there after a lie is not in the way of the next.
lies_of() {
    local n=$1 kind name lock
    ask_liar "$n"
    mkdir "$n-$2"
    cd "$n-$2" && ln -s "$BATS_TEST_TMPDIR/stalls" . && BATS_TEST_TMPDIR=$PWD
    take "$key" --node-timeout 3s
    for kind in "${@:2}"; do
        while read -r name; do
            lie "$kind=$name"
            lock=$key-$kind-$name
            survives run "$lock" -- true
            case $kind in
                getChildren2 | getData)
                    survives status "$lock"
                    survives break --force "$lock"
                    ;;
                connect | setData) survives renew "$key" "$token" ;;
            esac
        done < <(awk -v n="$n" 'NR % 4 == n % 4' "$BATS_FILE_TMPDIR/lies")
    done
}

@test "a fake server that does not lie grants a lock, which is not entered more often than possible" {
    works run "$key" -- sh -c 'echo "$DLOCK_FENCE"'
    [ "$output" -gt $((1 << 32)) ] || fail "fence $output"
    lie createContainer=unimplemented # as before 3.5.3
    works run "$key-new" -- true
    take "$key"
    lie connect=long-time # no session becomes longer
    tells 0 '.ttl_ms == 6000 and .valid_ms <= 6000' renew --json "$key" "$token"
    lie getData=many-holds
    gives 69 acquire --token "$token" "$key"
}

@test "a connection that is closed at once: the message suggests maxClientCnxns" {
    for name in close reset; do
        lie "connect=$name"
        refuses 69 'maxClientCnxns.*: see dlock doctor' run "$key" -- true
        gives 69 doctor
        [[ $output != *'see dlock doctor'* ]] || fail 'this is doctor'
    done
}

@test "a server that is silent, but answers as ZooKeeper does when it is asked what it is, is no other server" {
    for answer in '' word=leaderless word=unlisted; do
        lie connect=nothing "$answer"
        refuses 69 'no answer in time$' run --node-timeout 1s "$key" -- true
    done
}

@test "a server that wants its clients to authenticate, but not by digest: 77, at once" {
    lie multi=enforce-auth sync=enforce-auth closeSession=enforce-auth
    for args in "run $key -- true" "run --wait 1m $key -- true" "acquire $key" "status $key" 'status' \
        "status --waiters $key" "break --force $key" doctor; do
        within 1500 gives 77 $args
        [[ $stderr$output == *'enforce.auth'* ]] || fail 'expected the reason'
    done
    lie auth=unknown-error
    refuses 77 'it does not accept our user and password' run -N "zk://me:pw@${DLOCK_NODES#zk://}" "$key" -- true
}

@test "the session has expired when the release writes: the lock was lost, and is not kept" {
    # The first server noticed it late: its data is old.
    for lies in 'multi=expired-reply' 'setData=expired connect=expired' 'setData=expired-reply'; do
        options=()
        [[ $lies == multi* ]] || options=(--min-hold 3s)
        lie
        gives 76 run "${options[@]}" "$key-$lies" -- sh -c 'echo "$1" >"$2"' sh "$lies" "$liar/lie"
    done
}

@test "a release that was refused has released nothing: if the lock is gone then, it was lost" {
    for why in bad-version no-node; do
        lie
        warns 76 "the lock was lost" run "$key" -- sh -c 'echo "multi=$2 getData=no-node" >"$1"' sh "$liar/lie" "$why"
    done
}

@test "a Redis or a web server at the port: it is not a ZooKeeper server" {
    redis_start_tcp redis
    spawn web "$PYTHON" -u -m http.server --bind 127.0.0.1 0
    wait_until "grep -q ' port ' '$(server_dir web)/out'"
    for port in "$(port_of redis)" "$(sed 's/.* port \([0-9]*\).*/\1/' "$(server_dir web)/out")"; do
        DLOCK_NODES=zk://127.0.0.1:$port
        refuses 69 "127.0.0.1:$port: this is not a ZooKeeper server" run --node-timeout 3s "$key" -- true
        refuses 69 'not a ZooKeeper server' status "$key"
        gives 69 doctor --json
        [[ $output == *'not a ZooKeeper server'* ]] || fail 'expected the reason'
    done
}

@test "any reply to connect does no harm" { each_lie connect; }
@test "any reply to multi and getChildren2 does no harm" { each_lie multi getChildren2; }
@test "any reply to exists and closeSession does no harm" { each_lie exists closeSession; }

@test "any reply to createContainer, sync, getData and delete does no harm" {
    each_lie createContainer sync getData delete
}

@test "any reply to a renewal does no harm" { each_lie setData; }

@test "a lock node of another session, or without a fence, is no lock, nor is a list that is cut off" {
    for name in exists={not-ours,no-fence,negative-fence,far-fence,short-stat} getChildren2=half; do
        lie "$name"
        try run "$key" -- touch begun
        [ ! -e begun ] || fail "$name: the command was started"
        [ "$status" -ne 0 ]
    done
    lie
    take "$key-held"
    works acquire --json --slots 1 "$key-held"
    lie getChildren2=half
    gives 69 status "$key-held"
    for name in first-time last-time; do
        lie "getData=$name"
        works status --json "$key-held"
        json_is '.ttl_ms >= 0 and .ttl_ms < 2147483648 and .ended_ms >= 0 and .ended_ms < 9007199254740992'
    done
    lie getData=no-node # released meanwhile
    gives 1 status "$key-held"
    gives 1 status --slots 1 "$key-held"
}

@test "the node is gone when it is to be watched: the next renewal comes at once" {
    # Also if both replies to the renewal come in one read: then nothing is readable any more.
    for alone in '' setData=with-next; do
        lie
        start_holding "$key" -v 'until [ -e stop ]; do sleep 0.2; done'
        lie exists=no-node "$alone"
        # Otherwise they are two seconds apart.
        wait_until "[ \"\$(grep -c 'renewing the lease' bg.$bg_count.err)\" -ge 10 ]" 14 || fail "expected renewals: $alone"
        lie
        stops 0
        rm stop
    done
}

@test "a reply for another session does not renew: the command is dead by the end of the lease" {
    for name in other expired nothing; do
        lie
        start_holding "$key-$name" --ttl 3s --node-timeout 2s 'sleep 60'
        lie "connect=$name"
        # No renewal that was sent later is answered.
        start=$(now_ms)
        wait_until "! alive $command_pid"
        took_at_most 3500 "$start"
        loses
        # The lease, and two times a node's time to give back what may be left.
        took_at_most 11000 "$start"
    done
}
