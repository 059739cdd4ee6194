#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# Sentinels: which are asked, which reply counts, and the message if no sentinel knows the service; and replicas that
# must have a lock.  Failovers are in tests/slow/sentinel.bats.

# shellcheck disable=SC2258
load ../lib/services

setup_file() {
    redis_start a
    redis_start_tcp master
    replica_start replica master
    sentinel_start s1 master jobs 2
    sentinel_start s2 master jobs 2
}
setup() {
    test_begin
    stalls_note
    rcli master flushall >/dev/null
    DLOCK_NODES=redis+sentinel://$(places s1 s2)/jobs
}

@test "acquire, renew, status, list and release at the master" {
    take "$key"
    [ "$(rcli master get "$key")" = "$token" ]
    works renew "$key" "$token"
    works status "$key"
    tells 0 ".key == \$key and .nodes[0].node == \"$DLOCK_NODES\"" status --json
    refuses 75 'held by' acquire "$key"
    works release "$key" "$token"
    is_free "$key" master
    works run "$key" -- true
}

@test "slots at the master: acquire, wait, status and release" {
    token=$(dlock acquire --json --slots 1 "$key" | jq -r .token)
    [ "$(rcli master get "{$key}:slot-1")" = "$token" ]
    works status --slots 1 "$key"
    refuses 75 'only slot' run --slots 1 "$key" -- true
    start run --slots 1 --wait 60s "$key" -- true
    wait_until "[[ \$(rcli master info clients) == *blocked_clients:1* ]]"
    works release "{$key}:slot-1" "$token"
    finishes 0
    is_free "{$key}:slot-1" master
}

@test "readers share a lock at the master, a writer waits for them, and they for the writer" {
    readers_and_writer master
}

@test "the database after the name of the service" {
    DLOCK_NODES+=/3
    take "$key"
    [ "$(rcli master -n 3 get "$key")" = "$token" ]
}

@test "sentinels that are gone or hang are skipped" {
    servers_start hung tcp/silent tcp/refused tcp/close
    for dead in refused close silent; do
        DLOCK_NODES=redis+sentinel://127.0.0.1:$(cat "$(server_dir hung)/$dead.port"),$(place s2)/jobs
        works acquire --node-timeout 10s "$key-$dead"
    done
}

# hang SENTINEL...: those are stopped, and are the first of all that are asked; 0 to 4 of them with one that answers.
hang() {
    local name list=
    for name; do
        redis_freeze "$name"
        list+=$(place "$name"),
    done
    DLOCK_NODES=redis+sentinel://$list$(place s2)/jobs
}

@test "hung sentinels do not prevent a lock on a healthy master: they share the time of a round" {
    names=()
    for i in 1 2 3 4; do
        sentinel_start "h$i" master jobs 2
        names+=("h$i")
    done
    hang h1 h2
    for timeout in 2s 500ms 250ms; do
        take "$key-$timeout"
        in_time renew --node-timeout "$timeout" "$key-$timeout" "$token"
        in_time status --node-timeout "$timeout" "$key-$timeout"
        in_time release --node-timeout "$timeout" "$key-$timeout" "$token"
        [ "$status" -ne 0 ] || is_free "$key-$timeout" master
        in_time run --node-timeout "$timeout" "$key-$timeout-run" -- true
    done
    hang "${names[@]}"
    in_time run --node-timeout 500ms "$key" -- true
    works run --node-timeout 6s "$key" -- true
    is_free "$key" master
    for i in "${names[@]}"; do redis_thaw "$i"; done
    # They hang one after the other while a command runs.
    DLOCK_NODES=redis+sentinel://$(places h1 h2 s2)/jobs
    start_holding "$key" -v --ttl 8s --node-timeout 4s 'while [ ! -e stop ]; do sleep 0.2; done'
    redis_freeze h1 h2
    wait_until "[ \$(grep -c 'done\$' bg.$bg_count.err) -ge 1 ]" 20
    redis_freeze s2
    renewed=$(grep -c 'done$' "bg.$bg_count.err")
    wait_until "[ \$(grep -c 'done\$' bg.$bg_count.err) -ge $((renewed + 2)) ]" 30
    stops 0
    [[ $stderr != *'no answer in time'* && $stderr != *'answered in time'* ]] || fail 'expected no failed round'
    is_free "$key" master
    redis_thaw s2
    for i in "${names[@]}"; do redis_stop "$i"; done
}

@test "no sentinel knows the service: 69, and the message says so" {
    refuses 69 'no sentinel knows the service other' acquire -N "redis+sentinel://$(places s1 s2)/other" "$key"
    # An unreachable sentinel does not hide that message.
    refuses 69 'no sentinel knows the service other' acquire -N "redis+sentinel://$(place s1),127.0.0.1:1/other" "$key"
    # A release is not sent again until its end, as where a server may come back.
    sentinel_start own master own 1
    take "$key" -N "redis+sentinel://$(place own)/own"
    rcli own sentinel remove own
    within 8000 refuses 69 'no sentinel knows' release -N "redis+sentinel://$(place own)/own" --node-timeout 20s "$key" "$token"
    redis_stop own
}

@test "no sentinel can be reached, or a server is none: 69, and the message says so" {
    refuses 69 'SENTINEL' acquire -N "redis+sentinel://$(place master)/jobs" "$key"
    refuses 69 '127.0.0.1:[12]: connection refused' acquire -N redis+sentinel://127.0.0.1:1,127.0.0.1:2/jobs "$key"
    [[ $stderr != *knows* ]] || fail "expected no word about the service"
    servers_start hung tcp/silent
    DLOCK_NODES=redis+sentinel://127.0.0.1:$(cat "$(server_dir hung)/silent.port")/jobs
    within 15000 refuses 69 'no answer in time' acquire --node-timeout 100ms "$key"
}

@test "a sentinel that requires a password gets that of the servers" {
    sentinel_start s3 master jobs 2 'requirepass hidden-word'
    rcli master config set requirepass hidden-word >/dev/null
    DLOCK_NODES=redis+sentinel://:hidden-word@$(places s3 s1)/jobs
    works acquire "$key-1"
    DLOCK_NODES=redis+sentinel://:hidden-word@$(places s1 s3)/jobs
    works acquire "$key-2"
    DLOCK_NODES=redis+sentinel://$(places s3)/jobs
    refuses 77 'password' acquire "$key-3"
    [[ $stderr != *hidden* ]] || fail "the password is shown"
    DLOCK_PASSWORD=hidden-word works acquire "$key-3"
    REDISCLI_AUTH=hidden-word rcli master config set requirepass '' >/dev/null
    redis_stop s3
}

@test "a server that is not a master, whatever the sentinels report: 69" {
    sentinel_start late master jobs 2
    DLOCK_NODES=redis+sentinel://$(place late)/jobs
    works acquire "$key"
    # The sentinel asks every ten seconds, and stands still meanwhile but for ours.
    rcli master replicaof 127.0.0.1 1 >/dev/null
    try acquire "$key-2"
    rcli master replicaof no one >/dev/null
    fails 69 "$(place master): the sentinels call it the primary, but it is not \\(slave\\)"
    redis_stop late
}

@test "a sentinel that names a server that is not a master is skipped" {
    sentinel_start wrong replica jobs 2
    DLOCK_NODES=redis+sentinel://$(places wrong s1)/jobs
    take "$key"
    [ "$(rcli master get "$key")" = "$token" ]
    redis_start_tcp gone
    sentinel_start lost gone jobs 2
    redis_stop gone
    DLOCK_NODES=redis+sentinel://$(places wrong lost s1)/jobs
    works renew "$key" "$token"
    redis_stop wrong lost
}

@test "a sentinel that is given twice counts once" {
    port=$(port_of s1)
    works acquire -N "redis+sentinel://127.0.0.1:1,127.0.0.1:1,127.0.0.1:$port,127.0.0.1:$port/jobs" "$key"
    refuses 69 '127.0.0.1:1: connection refused' acquire -N "redis+sentinel://127.0.0.1:1,127.0.0.1:1/jobs" "$key"
}

@test "a master that was replaced has no vote, though it replies; nor has one that the sentinels do not know any more" {
    redis_start_tcp next
    for after in 'rcli own sentinel monitor own 127.0.0.1 "$(port_of next)" 1' ''; do
        sentinel_start own master own 1
        DLOCK_NODES=redis+sentinel://$(place own)/own
        start_holding "$key" -v --ttl 4s -k 100ms --node-timeout 2s 'exec sleep 60'
        wait_until "grep -q 'done\$' bg.$bg_count.err"
        rcli own sentinel remove own
        # Meanwhile no sentinel knows the service; a renewal that fails is tried again.
        eval "$after"
        loses
        rcli master del "$key"
        redis_stop own
    done
}

@test "a waiter goes to the queue of the master that replaces another one, which replies" {
    redis_start_tcp next
    sentinel_start own master own 1
    take "$key" --ttl 60s
    DLOCK_NODES=redis+sentinel://$(place own)/own start run --wait 60s "$key" -- true
    wait_until '[[ $(rcli master info clients) == *blocked_clients:1* ]]'
    DLOCK_NODES=$(node next)
    take "$key" --ttl 60s
    rcli own sentinel remove own
    rcli own sentinel monitor own 127.0.0.1 "$(port_of next)" 1
    wait_until '[[ $(rcli next info clients) == *blocked_clients:1* ]]'
    works release "$key" "$token"
    finishes 0
    redis_stop own next
}

@test "unavailable sentinels do not end a lock" {
    sentinel_start own master own 1
    DLOCK_NODES=redis+sentinel://$(place own)/own
    start_holding "$key" -v --ttl 3s -k 100ms --node-timeout 2s 'while [ ! -e stop ]; do sleep 0.2; done'
    redis_stop own
    renewed=$(grep -c 'done$' bg.1.err || true)
    wait_until "[ \$(grep -c 'done\$' bg.1.err) -ge $((renewed + 4)) ]"
    stops 0
}

@test "a holder and the old master are cut off from the sentinels: two holders, unless replicas must confirm" {
    # What s3 watches is the side of the holder; the other side, of s4, has made another master.
    redis_start_tcp old
    replica_start confirmer old
    sentinel_start s3 old cut 1
    redis_start_tcp next
    sentinel_start s4 next cut 1
    ours=(-N "redis+sentinel://$(place s3)/cut" --ttl 6s --node-timeout 2s --replicas-timeout 500ms -k 1300ms -v)
    # cut_off HOW [ARG...]: a holder, and then the partition, in which another one gets the lock.
    cut_off() {
        redis_thaw s3
        start_holding "$key-$1" "${ours[@]}" "${@:2}" 'while [ ! -e stop ]; do sleep 0.2; done'
        redis_freeze s3
        if [ "$1" != nothing ]; then redis_stop confirmer; fi
        works acquire -N "redis+sentinel://$(place s4)/cut" "$key-$1"
    }
    cut_off nothing
    # More renewals than the lease is long.
    wait_until "[ \$(grep -c 'done\$' bg.$bg_count.err) -ge 4 ]" 30
    alive "$command_pid" || fail 'the command was ended'
    stops 0
    rm stop
    cut_off replicas --replicas 1
    finishes 76
    has_ended "$command_pid"
    replica_start confirmer old
    rcli old config set min-replicas-to-write 1 >/dev/null
    cut_off least
    finishes 76
    has_ended "$command_pid"
    [[ $stderr == *'too few replicas'* ]] || fail 'expected why'
    for name in s3 s4 next old; do redis_stop "$name"; done
}

@test "one service is one node, whichever sentinels are given" {
    for pair in "$(places s1 s2) $(places s1 s2)" "$(place s1) $(place s2)"; do
        refuses 64 'same server' acquire -N "redis+sentinel://${pair% *}/jobs" -N "redis+sentinel://${pair#* }/jobs" "$key"
    done
    is_free "$key" master
    redis_start c
    DLOCK_NODES="redis+sentinel://$(places s1 s2)/jobs $(node a) $(node c)"
    take "$key"
    status_is '(.nodes | length) == 3'
    works release "$key" "$token"
}

# ------------------------------------------------------------------------------- replicas

@test "--replicas: a lock that a replica has" {
    DLOCK_NODES=$(node master)
    works acquire --replicas 1 --json "$key"
    [ "$(rcli replica get "$key")" = "$(jq -r .token <<<"$output")" ]
    DLOCK_REPLICAS=1 works run "$key-2" -- true
}

@test "--replicas: a lock that too few replicas have is rolled back: 69" {
    DLOCK_NODES=$(node master)
    refuses 69 '1 of 2 replicas confirmed it in time' acquire --replicas 2 --replicas-timeout 50ms "$key"
    is_free "$key" master
    redis_freeze replica
    try acquire --replicas 1 --replicas-timeout 50ms "$key"
    redis_thaw replica
    fails 69 '0 of 1 replicas confirmed it in time'
    is_free "$key" master
    DLOCK_REPLICAS_TIMEOUT=1ms DLOCK_REPLICAS=5 refuses 69 'of 5 replicas' acquire "$key"
}

@test "--replicas: the holder is named though there is no replica" {
    DLOCK_NODES=$(node master)
    take "$key"
    # A refused request has written nothing that a replica could confirm.
    within 8000 refuses 75 'held by' acquire --replicas 9 --replicas-timeout 9s --node-timeout 10s "$key"
    works release "$key" "$token"
}

@test "--replicas: a renewal that no replica has does not count" {
    DLOCK_NODES=$(node master)
    start_holding "$key" -v --ttl 6s -k 1s --node-timeout 2s --replicas 1 --replicas-timeout 1s 'exec sleep 60'
    wait_until "grep -q 'done\$' bg.1.err"
    redis_freeze replica
    finish
    redis_thaw replica
    exits 76
    has_ended "$command_pid"
    [[ $stderr == *'0 of 1 replicas'* ]] || fail "expected why"
}

@test "--replicas takes a number" {
    for n in -1 256 x '' 1.5; do
        refuses 64 "invalid number '$n'" acquire "--replicas=$n" "$key"
    done
    refuses 64 replicas-timeout acquire --replicas-timeout 0 "$key"
    refuses 64 'must be less than --node-timeout' acquire --replicas 1 --replicas-timeout 2s --ttl 10s "$key"
}

# --------------------------------------------------------------------------------- doctor

# failover RESULT REGEX ARG...: the finding of doctor about failovers.
failover() {
    local found
    try doctor --json "${@:3}"
    found=$(jq -r 'select(.check == "failover") | .result + " " + .finding + " -> " + (.advice // "")' <<<"$output")
    [[ $found =~ ^$1\ .*$2 ]] || fail "expected of failover: $1 $2"
}

@test "doctor: a master that accepts writes without replicas" {
    failover warn 'min-replicas-to-write 0.* -> use --replicas'
    exits 1
    failover ok '--replicas 1' --replicas 1
    rcli master config set min-replicas-to-write 1 >/dev/null
    failover ok 'min-replicas-to-write 1'
    rcli master config set min-replicas-to-write 0 >/dev/null
    # A user without the right to look gets that as the result.
    rcli master acl setuser plain on '>plain' '~*' +@all -config >/dev/null
    failover unknown 'does not report min-replicas-to-write -> allow CONFIG GET' -N "redis+sentinel://plain:plain@$(places s1 s2)/jobs"
    try doctor --json -N "$(node master)"
    [ -z "$(jq -r 'select(.check == "failover").check' <<<"$output")" ] || fail "of a server there is nothing to find"
}
