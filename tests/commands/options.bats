#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# Options: durations, the list of nodes, variables of the environment, and how options are written.  Addresses and passwords
# are in urls.bats, the configuration file in config.bats.

load ../lib/redis

redis_servers='' tcp_servers=a

# Which durations are valid is in tests/unit/duration.c, for which option in tests/unit/option.c.
@test "durations: what is given is the lease; what is not one is refused and named, and nothing is done" {
    tells 0 '.ttl_ms == 5404005' acquire --json --ttl 1h30m4s5ms "$key"
    refuses 64 "'5x'" run --ttl=5x "$key-2" -- touch begun
    refuses 64 "'36526d'.*too long; the maximum is 36525d" run --wait 36526d "$key-2" -- touch begun
    refuses 64 'replicas-timeout 1.0s is too long; it must be less than --node-timeout, which is 1.0s' \
        run --replicas 1 --node-timeout 1s --replicas-timeout 1s "$key-2" -- touch begun
    gives 3 run --max-run forever --wait forever "$key-2" -- sh -c 'exit 3'
    [ ! -e begun ]
}

@test "durations: long leases and waits do not overflow" {
    try acquire --json --ttl 3650d "$key"
    [ "$status" -eq 0 ] || [ "$status" -eq 64 ] || fail "expected to be taken or refused"
    [ "$status" -ne 0 ] || [ "$(rcli a pttl "$key")" -gt 300000000000 ]
    within 10000 works acquire --wait 10000d "$key-2"
}

@test "a prefix that is too long for a key, and overlong words are refused" {
    long=$(printf 'x%.0s' {1..1000})
    refuses 64 prefix acquire --prefix "${long:0:513}" "$key"
    refuses 64 'unknown' acquire "--$long" "$key"
    DLOCK_PASSWORD=$long refuses 64 'password .* too long' acquire "$key"
}

# --------------------------------------------------------------- environment twins

@test "an invalid variable is refused and named" {
    DLOCK_TTL=5x refuses 64 'DLOCK_TTL.*5x' acquire "$key"
    DLOCK_NODES=http://h refuses 64 "DLOCK_NODES: invalid node 'http://" acquire "$key"
    is_free "$key"
}

# ------------------------------------------------------------- options as such

@test "options may stand before the command's name, behind it, and behind the key, in every form that getopt accepts" {
    tells 0 '.ttl_ms == 20000' --ttl 20s acquire --json "$key"
    gives 0 --node "$(node a)" -j status "$key"
    jq -e . <<<"$output" >/dev/null
    outputs 20000 -t 20s run "$key-2" -- sh -c 'echo $DLOCK_TTL_MS'
    tells 0 '.ttl_ms == 20000' acquire "$key-3" --ttl 20s --json
    for spelling in '-t20s' '-t 20s' '--ttl=20s' '--ttl 20s' '-jt20s' '-j -t 20s'; do
        grants_for 20000 $spelling "$key $spelling" || fail "$spelling"
    done
}

@test "an unknown option that is not an ASCII letter is named, too" {
    for word in -é -vé -éx -qé€; do
        refuses 64 "option '-é'" acquire "$key" "$word"
    done
    refuses 64 "option '-€'" acquire "$key" -€
    refuses 64 "option '-é'" -é
    refuses 64 "unknown option '-[^-]" acquire "$key" $'-v\xc3'
}

@test "an option without its value is refused" {
    refuses 64 ttl acquire "$key" --ttl
    refuses 64 '' acquire "$key" -t
    refuses 64 json acquire --json=yes "$key"
}

@test "a label of 256 bytes is accepted, of 257 refused; an empty one is a label" {
    works acquire --label "$(printf 'l%.0s' {1..256})" "$key"
    refuses 64 256 acquire --label "$(printf 'l%.0s' {1..257})" "$key-2"
    DLOCK_LABEL=$(printf 'l%.0s' {1..257}) refuses 64 256 acquire "$key-2"
    is_free "$key-2"
    works acquire --label '' "$key-2"
}

@test "after a -- before KEY, run needs a second one: a command is not taken for a key" {
    for words in '-- nice touch begun' '--ttl 5s -- touch begun' '-- KEY touch -- begun'; do
        refuses 64 "KEY is missing before '--'" run $words
    done
    [ ! -e begun ]
    works run -- "$key" -- echo mine
    [ "$output" = mine ]
    works -- run "$key" -- echo mine
}
