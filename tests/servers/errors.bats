#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# Servers that are not there, are no Redis, refuse, or are in no state to keep a lock.

# shellcheck disable=SC2016,SC2030,SC2031,SC2094,SC2154
bats_require_minimum_version 1.5.0
load ../lib/redis

setup_file() {
    redis_start a
    servers_start bad silent close http random endless bulk array nested truncated trickle lengths yes types \
        rounds circles \
        tcp/refused tcp/unanswered tcp/silent unanswered
}

bad() { echo "$(server_dir bad)/$1.sock"; }
bad_tcp() { echo "127.0.0.1:$(cat "$(server_dir bad)/$1.port")"; }

# everywhere URL [REGEX]: each command that needs a node, all of them at once, gives up on
# that one soon after its node timeout, exits 69 and says so in one line.
everywhere() {
    local DLOCK_NODES=$1 DLOCK_NODE_TIMEOUT=300ms from pid pids
    export DLOCK_NODES DLOCK_NODE_TIMEOUT
    stalls_note
    from=$(now_ms)
    start acquire "$key"
    pids=$bg
    start renew "$key" "$OTHER_TOKEN"
    pids+=" $bg"
    start release "$key" "$OTHER_TOKEN"
    pids+=" $bg"
    start run "$key" -- touch begun
    pids+=" $bg"
    start status "$key"
    for pid in $pids $bg; do
        finish "$pid"
        exits 69
        complains "${2-}"
    done
    took_at_most 5000 "$from"
    [ ! -e begun ]
}

# ------------------------------------------------------------------- no server

@test "a missing socket" {
    everywhere "$PWD/nobody" nobody
}

@test "a socket that nobody serves" {
    "$PYTHON" -c 'import socket; socket.socket(socket.AF_UNIX).bind("dead.sock")'
    everywhere "$PWD/dead.sock" dead.sock
}

@test "a path that is not a socket" {
    : >file
    everywhere "$PWD/file" "$PWD/file"
    everywhere "$PWD" "$PWD"
}

@test "a port that refuses connections" {
    everywhere "$(bad_tcp refused)" "$(bad_tcp refused)"
}

@test "a port that does not accept the connection" {
    everywhere "$(bad_tcp unanswered)" "$(bad_tcp unanswered)"
}

@test "a socket whose queue of connections is full" {
    everywhere "$(bad unanswered)" "$(bad unanswered)"
}

@test "a host that does not resolve" {
    within 20000 try acquire --node redis://no-such-host.invalid:1 "$key"
    fails 69 no-such-host.invalid
}

@test "a server that accepts connections and sends nothing" {
    everywhere "$(bad silent)" "$(bad silent)"
    everywhere "$(bad_tcp silent)" "$(bad_tcp silent)"
}

@test "the default node timeout of a silent server is a tenth of the lease" {
    within 2000 try acquire --ttl 3s --node "$(bad silent)" "$key"
    at_least 290
    fails 69
}

@test "a server that accepts and closes connections" {
    everywhere "$(bad close)" "$(bad close)"
}

# -------------------------------------------------------------------- no Redis

@test "a web server" {
    everywhere "$(bad http)" "$(bad http)"
}

@test "a server of random bytes" {
    everywhere "$(bad random)" "$(bad random)"
}

@test "a line that never ends" {
    everywhere "$(bad endless)" "$(bad endless)"
}

@test "a string of two gigabytes" {
    everywhere "$(bad bulk)" "$(bad bulk)"
}

@test "an array of two billion elements" {
    everywhere "$(bad array)" "$(bad array)"
}

@test "nested arrays without end" {
    everywhere "$(bad nested)" "$(bad nested)"
}

@test "a reply that is cut off" {
    everywhere "$(bad truncated)" "$(bad truncated)"
}

@test "a reply that arrives slowly, without end" {
    everywhere "$(bad trickle)" "$(bad trickle)"
}

@test "lengths and numbers that no server may send" {
    everywhere "$(bad lengths)" "$(bad lengths)"
}

@test "a server that replies OK to everything grants no lock" {
    everywhere "$(bad yes)" "$(bad yes)"
}

@test "a SCAN that would never end is aborted" {
    local name
    for name in rounds circles; do
        DLOCK_NODE_TIMEOUT=10s within 8000 try status -N "$(bad "$name")"
        fails 69 'SCAN does not end'
    done
}

@test "a type that a server invents is shown escaped" {
    local command
    for command in 'status -o CLIENT' status 'break --force'; do
        # shellcheck disable=SC2086
        DLOCK_NODES=$(bad types) DLOCK_NODE_TIMEOUT=10s try $command "$key"
        [[ $output$stderr == *'a \e[2J\nx'* ]] || fail "expected the type, escaped"
        ! LC_ALL=C grep -qP '[\x00-\x08\x0b-\x1f\x7f-\xff]' <<<"$output$stderr" || fail "control characters"
    done
}

@test "control characters of a server do not reach the terminal" {
    local name
    for name in http random truncated lengths; do
        DLOCK_NODE_TIMEOUT=300ms try acquire -v --node "$(bad "$name")" "$key"
        exits 69
        ! LC_ALL=C grep -qP '[\x00-\x08\x0b-\x1f\x7f-\xff]' <<<"$stderr" || fail "control characters"
    done
}

# ----------------------------------------------------------------- slow and lossy

@test "a reply that arrives too slowly is aborted at the deadline and the lock rolled back" {
    redis_start behind
    proxy_start slow behind trickle@1=0.05
    within 5000 try acquire --ttl 60s --node-timeout 1s --node "$(proxy_node slow)" "$key"
    fails 69
    wait_until "free '$key' behind"
}

@test "a reply that arrives slowly but in time counts" {
    redis_start behind
    proxy_start slow behind trickle=0.001
    try acquire --ttl 60s --node-timeout 2s --node "$(proxy_node slow)" "$key"
    succeeds
    [ "$(rcli behind get "$key")" = "$output" ]
}

@test "a lost reply: the lock is rolled back" {
    redis_start behind
    proxy_start lossy behind drop@1
    within 5000 try acquire --ttl 60s --node-timeout 1s --node "$(proxy_node lossy)" "$key"
    fails 69
    wait_until "free '$key' behind"
}

@test "a connection closed before the reply: the lock is rolled back" {
    redis_start behind
    proxy_start lossy behind cut@1
    try acquire --ttl 60s --node-timeout 5s --node "$(proxy_node lossy)" "$key"
    [ "$status" -eq 0 ] || fails 69
    if [ "$status" -ne 0 ]; then
        wait_until "free '$key' behind"
    else
        [ "$(rcli behind get "$key")" = "$output" ]
    fi
}

@test "a late reply: the lock is rolled back" {
    redis_start behind
    proxy_start late behind delay@1=0.6
    within 1500 try acquire --ttl 60s --node-timeout 300ms --node "$(proxy_node late)" "$key"
    fails 69
    wait_until "[ \$(proxy_log late | grep -c EVAL) -ge 2 ] && free '$key' behind"
}

@test "a reply that is later than the lease grants nothing" {
    redis_start behind
    proxy_start late behind delay@1=0.6
    try acquire --ttl 400ms --node-timeout 2s --node "$(proxy_node late)" "$key"
    fails 69
    wait_until "free '$key' behind"
}

@test "a frozen server: the lock that it grants when it resumes is rolled back" {
    redis_start frozen
    redis_freeze frozen
    within 1500 try acquire --ttl 60s --node-timeout 300ms --node "$(node frozen)" "$key"
    fails 69
    redis_thaw frozen
    rcli frozen ping
    wait_until "free '$key' frozen"
}

@test "a lost reply of a release: the lock is free" {
    redis_start behind
    DLOCK_NODES=$(node behind) take "$key" --ttl 60s
    proxy_start lossy behind drop@1
    DLOCK_NODE_TIMEOUT=1500ms try release --node "$(proxy_node lossy)" "$key" "$token"
    exits 69
    is_free "$key" behind
    # Again, and it is not taken for another's.
    try release --node "$(node behind)" "$key" "$token"
    [[ $stderr != *another* ]] || fail "taken for another's"
}

@test "a lost reply of the renewal of a free lock creates no lock" {
    redis_start behind
    proxy_start lossy behind drop@1
    DLOCK_NODE_TIMEOUT=1500ms try renew --node "$(proxy_node lossy)" "$key" "$OTHER_TOKEN"
    exits 69
    is_free "$key" behind
}

@test "a lost reply of the release after a command is a warning" {
    redis_start behind
    proxy_start lossy behind drop@2
    DLOCK_NODE_TIMEOUT=3s try run --node "$(proxy_node lossy)" "$key" -- sh -c 'exit 4'
    exits 4
    complains
    is_free "$key" behind
}

@test "a server that pauses its clients for less than the node timeout" {
    redis_start paused
    rcli paused client pause 300 all
    try acquire --node-timeout 5s --node "$(node paused)" "$key"
    succeeds
}

@test "a server that pauses its clients for longer than the node timeout grants nothing" {
    redis_start paused
    rcli paused client pause 3000 all
    within 1500 try acquire --ttl 60s --node-timeout 200ms --node "$(node paused)" "$key"
    fails 69
    wait_until "free '$key' paused"
}

# ------------------------------------------------------------------ refused

@test "no password for a server that requires one: 77, with advice" {
    redis_start locked --requirepass secret
    local command
    for command in acquire status; do
        try "$command" --node "$(node locked)" "$key"
        exits 77
        complains
    done
    try run --node "$(node locked)" "$key" -- touch begun
    fails 77 '(password|DLOCK_PASSWORD|NOAUTH)'
    [ ! -e begun ]
    try release --node "$(node locked)" "$key" "$OTHER_TOKEN"
    fails 77
    try renew --node "$(node locked)" "$key" "$OTHER_TOKEN"
    fails 77
}

@test "a wrong password: 77, and it is not shown" {
    redis_start locked --requirepass secret
    DLOCK_PASSWORD=wrong-word try acquire --node "$(node locked)" "$key"
    fails 77
    [[ $stderr != *wrong-word* ]] || fail "the password is shown"
    [ "$(REDISCLI_AUTH=secret rcli locked exists "$key")" = 0 ]
}

# as_user RULE...: DLOCK_NODES leads to a server on which we are user u with these rules.
as_user() {
    redis_start_tcp acl
    rcli acl acl setuser u on '>pw' "$@" >/dev/null
    DLOCK_NODES=redis://u:pw@$(node acl)
}

@test "an ACL without EVAL: 77" {
    as_user '~*' '+@all' -eval -evalsha
    try acquire "$key"
    fails 77 'does not permit the command eval'
}

@test "an ACL without the key: 77, and the message names the key" {
    as_user '~other:*' '+@all'
    try acquire "$key"
    fails 77 "$key"
    is_free "$key" acl
}

@test "an ACL without a command that the script needs: 77, and no lock is left" {
    local command
    for command in set hset; do
        redis_stop acl
        as_user '~*' '+@all' "-$command"
        try acquire "$key"
        fails 77
        wait_until "free '$key' acl"
    done
}

@test "an ACL without the key of the metadata: no lock is left behind" {
    as_user "~$key" '+@all'
    try acquire --ttl 60s "$key"
    fails 77
    wait_until "free '$key' acl"
}

@test "a disabled user: 77" {
    as_user '~*' '+@all'
    rcli acl acl setuser u off >/dev/null
    try acquire "$key"
    fails 77
}

@test "a password revoked while a command runs ends it before the lease ends" {
    as_user '~*' '+@all'
    start_holding "$key" --ttl 4s -k 1300ms --node-timeout 2s 'sleep 30'
    rcli acl acl deluser u >/dev/null
    finish
    exits 76
    has_ended "$command_pid"
}

@test "too many clients: 69" {
    redis_start crowded
    "$REDIS_CLI" -s "$(node crowded)" blpop nothing 0 >/dev/null 2>&1 3>&- 4>&- &
    local client=$!
    wait_until 'rcli crowded client list | grep -q cmd=blpop'
    rcli crowded config set maxclients 1
    try acquire --node "$(node crowded)" "$key"
    kill "$client"
    fails 69 'clients'
}

# --------------------------------------------------------------- states of Redis

@test "a read-only replica: 69" {
    redis_start replica --replicaof 127.0.0.1 1
    try acquire --node "$(node replica)" "$key"
    fails 69 '(READONLY|replica)'
}

@test "a replica whose master is gone and that serves no stale data: 69" {
    redis_start replica --replicaof 127.0.0.1 1 --replica-serve-stale-data no
    try acquire --node "$(node replica)" "$key"
    fails 69 '(MASTERDOWN|READONLY|replica)'
}

@test "a server that became a replica does not make a lock look lost or free" {
    redis_start turned
    DLOCK_NODES=$(node turned)
    take "$key" --ttl 60s
    rcli turned replicaof 127.0.0.1 1
    try renew "$key" "$token"
    fails 69
    try release "$key" "$token"
    fails 69
    try renew "$key-2" "$OTHER_TOKEN"
    [ "$status" -eq 69 ] || [ "$status" -eq 1 ]
    rcli turned replicaof no one
    try release "$key" "$token"
    succeeds
    is_free "$key" turned
}

@test "too few replicas to write: 69" {
    redis_start lonely --min-replicas-to-write 1
    try acquire --node "$(node lonely)" "$key"
    fails 69 '(NOREPLICAS|replica)'
}

@test "a server that loads its data: 69, until it has loaded them" {
    redis_start full
    rcli full eval 'for i = 1, 3000 do redis.call("set", "filler" .. i, string.rep("x", 20)) end' 0 >/dev/null
    rcli full save
    redis_stop full
    redis_start full --key-load-delay 1000 --loading-process-events-interval-bytes 1024
    [[ $(rcli full ping) == *LOADING* ]]
    try acquire --node "$(node full)" "$key"
    fails 69 '(LOADING|loading)'
    wait_until "[ \"\$(rcli full ping)\" = PONG ]" 20
    try acquire --node "$(node full)" "$key"
    succeeds
}

@test "a script that never ends: 69" {
    redis_start busy --lua-time-limit 20
    "$REDIS_CLI" -s "$(node busy)" eval 'while true do end' 0 >/dev/null 2>&1 3>&- 4>&- &
    wait_until "rcli busy ping 2>&1 | grep -q BUSY"
    try acquire --node "$(node busy)" --node-timeout 2s "$key"
    rcli busy script kill
    fails 69 '(BUSY|busy)'
    wait_until "free '$key' busy"
}

@test "a server that cannot save: 69 (MISCONF)" {
    mkdir gone
    redis_start misconf --save '3600 1' --dir "$PWD/gone"
    DLOCK_NODES=$(node misconf)
    take "$key" --ttl 60s
    rmdir gone
    rcli misconf bgsave
    wait_until "rcli misconf info persistence | grep -q 'rdb_last_bgsave_status:err'"
    try acquire "$key-2"
    fails 69 "(MISCONF|save)"
    try renew "$key" "$token"
    fails 69 "(MISCONF|save)"
}

@test "memory is full: 69 for acquire, renewals and releases still work" {
    redis_start packed --maxmemory-policy noeviction
    DLOCK_NODES=$(node packed)
    take "$key" --ttl 20s
    rcli packed config set maxmemory 1
    try acquire "$key-2"
    fails 69 '(OOM|memory)'
    rcli packed pexpire "$key" 3000
    try renew --ttl 20s "$key" "$token"
    succeeds
    [ "$(rcli packed pttl "$key")" -gt 10000 ]
    try release "$key" "$token"
    succeeds
    is_free "$key" packed
    is_free "$key-2" packed
}

@test "memory fills up while a command runs: it keeps its lock" {
    redis_start packed --maxmemory-policy noeviction
    DLOCK_NODES=$(node packed) start_holding "$key" --ttl 3s --node-timeout 2s 'while [ ! -e stop ]; do sleep 0.1; done; exit 3'
    rcli packed config set maxmemory 1
    for _ in 1 2; do is_renewed "$key" packed; done
    touch stop
    finish
    exits 3
    is_free "$key" packed
}

@test "SCRIPT FLUSH between calls" {
    take "$key"
    rcli a script flush
    try renew "$key" "$token"
    succeeds
    rcli a script flush
    try status "$key"
    succeeds
    rcli a script flush
    try release "$key" "$token"
    succeeds
    is_free "$key"
}

@test "SCRIPT FLUSH while a command runs" {
    start_holding "$key" --ttl 3s --node-timeout 2s 'sleep 3.5; exit 3'
    while alive "$command_pid"; do
        rcli a script flush >/dev/null
        sleep 0.05
    done
    finish
    exits 3
    is_free "$key"
}

@test "a key of another type is held by a foreign lock" {
    local command
    for command in 'hset KEY f v' 'rpush KEY v' 'sadd KEY v' 'zadd KEY 1 v'; do
        rcli a del "$key"
        # shellcheck disable=SC2086
        rcli a ${command//KEY/$key}
        try acquire "$key"
        fails 75 "$key"
        [[ $stderr == *foreign* ]] || fail "expected a word about the foreign type"
        try run "$key" -- touch begun
        fails 75
        [ ! -e begun ]
    done
}

@test "metadata of another type: no lock is left that nobody holds" {
    rcli a set "{$key}:dlock" string
    try acquire --ttl 60s "$key"
    if [ "$status" -eq 0 ]; then
        [ "$(rcli a get "$key")" = "$output" ]
    else
        [ "$status" -lt 128 ] && [ "$status" -ne 70 ] || fail "expected an error"
        complains
        wait_until "free '$key'"
    fi
}

@test "metadata of another type do not prevent a release" {
    take "$key"
    rcli a del "{$key}:dlock"
    rcli a rpush "{$key}:dlock" element
    try release "$key" "$token"
    is_free "$key"
}

@test "a server that restarted is asked again over a new connection" {
    redis_start mortal
    DLOCK_NODES=$(node mortal)
    take "$key"
    redis_stop mortal
    redis_start mortal
    try status "$key"
    exits 1
    try release "$key" "$token"
    fails 1
}

@test "an error reply names the node once and shows the message of Redis" {
    redis_start lonely --min-replicas-to-write 1
    try acquire --node "$(node lonely)" "$key"
    fails 69 "^dlock: ($key: )?$(node lonely): "
}
