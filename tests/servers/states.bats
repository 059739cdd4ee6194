#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# Servers that refuse, or are in no state to keep a lock.

load ../lib/redis

# ------------------------------------------------------------------ refused

@test "no password for a server that requires one: 77, with advice" {
    redis_start locked --requirepass secret
    for command in acquire status; do
        warns 77 '' "$command" --node "$(node locked)" "$key"
    done
    refuses 77 '(password|DLOCK_PASSWORD|NOAUTH)' run --node "$(node locked)" "$key" -- touch begun
    [ ! -e begun ]
    refuses 77 '' release --node "$(node locked)" "$key" "$OTHER_TOKEN"
    refuses 77 '' renew --node "$(node locked)" "$key" "$OTHER_TOKEN"
}

# as_user RULE...: DLOCK_NODES leads to a server on which we are user u with these rules.
as_user() {
    redis_start_tcp acl
    rcli acl acl setuser u on '>pw' "$@" >/dev/null
    DLOCK_NODES=redis://u:pw@$(node acl)
}

@test "an ACL without EVAL: 77" {
    as_user '~*' '+@all' -eval -evalsha
    refuses 77 'does not permit the command eval' acquire "$key"
    rcli acl acl setuser u off >/dev/null
    refuses 77 '' acquire "$key"
}

@test "a password revoked while a command runs ends it before the lease ends" {
    as_user '~*' '+@all'
    start_holding "$key" --ttl 4s -k 1300ms --node-timeout 2s 'sleep 30'
    stalls_note
    rcli acl acl deluser u >/dev/null
    loses
}

@test "too many clients: 69" {
    redis_start crowded
    "$REDIS_CLI" -s "$(node crowded)" blpop nothing 0 >/dev/null 2>&1 3>&- 4>&- &
    client=$!
    wait_until 'rcli crowded client list | grep -q cmd=blpop'
    rcli crowded config set maxclients 1
    try acquire --node "$(node crowded)" "$key"
    kill "$client"
    fails 69 'clients'
}

# --------------------------------------------------------------- states of Redis

@test "a read-only replica, also one whose master is gone and that serves no stale data: 69" {
    redis_start replica --replicaof 127.0.0.1 1
    refuses 69 '(READONLY|replica)' acquire --node "$(node replica)" "$key"
    rcli replica config set replica-serve-stale-data no
    refuses 69 '(MASTERDOWN|READONLY|replica)' acquire --node "$(node replica)" "$key"
}

@test "a server that became a replica does not make a lock look lost or free" {
    redis_start turned
    DLOCK_NODES=$(node turned)
    take "$key" --ttl 60s
    rcli turned replicaof 127.0.0.1 1
    refuses 69 '' renew "$key" "$token"
    refuses 69 '' release "$key" "$token"
    try renew "$key-2" "$OTHER_TOKEN"
    [ "$status" -eq 69 ] || [ "$status" -eq 1 ]
    rcli turned replicaof no one
    works release "$key" "$token"
    is_free "$key" turned
}

@test "too few replicas to write: 69" {
    redis_start lonely --min-replicas-to-write 1
    refuses 69 "^dlock: ($key: )?$(node lonely): .*(NOREPLICAS|replica)" acquire --node "$(node lonely)" "$key"
}

@test "a server that loads its data: 69, until it has loaded them" {
    redis_start full
    redis_fill full
    redis_stop full
    redis_start_loading full
    [[ $(rcli full ping) == *LOADING* ]]
    refuses 69 '(LOADING|loading)' acquire --node "$(node full)" "$key"
    wait_until "[ \"\$(rcli full ping)\" = PONG ]" 20
    works acquire --node "$(node full)" "$key"
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
    refuses 69 "(MISCONF|save)" acquire "$key-2"
    refuses 69 "(MISCONF|save)" renew "$key" "$token"
}

@test "memory is full: 69 for acquire, renewals and releases still work" {
    redis_start packed --maxmemory-policy noeviction
    DLOCK_NODES=$(node packed)
    take "$key" --ttl 20s
    rcli packed config set maxmemory 1
    refuses 69 '(OOM|memory)' acquire "$key-2"
    rcli packed pexpire "$key" 8000
    works renew --ttl 20s "$key" "$token"
    [ "$(rcli packed pttl "$key")" -gt 10000 ]
    works release "$key" "$token"
    is_free "$key" packed
    is_free "$key-2" packed
}

@test "SCRIPT FLUSH while a command runs" {
    start_holding "$key" --ttl 5s -k 100ms --node-timeout 2s 'sleep 5.5; exit 3'
    while alive "$command_pid"; do
        rcli a script flush >/dev/null
        sleep 0.05
    done
    finishes 3
    is_free "$key"
}

@test "a key of another type is held by a foreign lock" {
    for command in 'hset KEY f v' 'rpush KEY v' 'sadd KEY v' 'zadd KEY 1 v'; do
        rcli a del "$key"
        rcli a ${command//KEY/$key}
        refuses 75 "$key" acquire "$key"
        [[ $stderr == *foreign* ]] || fail "expected a word about the foreign type"
        refuses 75 '' run "$key" -- touch begun
        [ ! -e begun ]
    done
}

@test "metadata of another type: no lock is left that nobody holds, and they do not prevent a release" {
    take "$key"
    rcli a del "{$key}:dlock"
    rcli a rpush "{$key}:dlock" element
    try release "$key" "$token"
    is_free "$key"
    rcli a del "{$key}:dlock"
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
