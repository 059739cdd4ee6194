#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# Options: durations, the list of nodes, variables of the environment, and how options are written.  Addresses and passwords
# are in urls.bats, the configuration file in config.bats.

load ../lib/redis

setup_file() { redis_start_tcp a; }

# Which durations are valid is in tests/unit/duration.c, for which option in tests/unit/option.c.
@test "durations: what is given is the lease; what is not one is refused and named, and nothing is done" {
    works acquire --json --ttl 1h30m4s5ms "$key"
    json_is '.ttl_ms == 5404005'
    refuses 64 "'5x'" run --ttl=5x "$key-2" -- touch begun
    refuses 64 "'36526d'.*too long; the maximum is 36525d" run --wait 36526d "$key-2" -- touch begun
    refuses 64 'must be less than --node-timeout, which is 1.0s' \
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

# ---------------------------------------------------------------- the list of nodes

@test "a prefix that is too long for a key, and overlong words are refused" {
    long=$(printf 'x%.0s' {1..1000})
    refuses 64 prefix acquire --prefix "$long" "$key"
    refuses 64 'unknown' acquire "--$long" "$key"
    DLOCK_PASSWORD=$long refuses 64 'password .* too long' acquire "$key"
}

@test "the default node is the local server" {
    unset DLOCK_NODES
    try status -v "$key"
    [[ $stderr == *127.0.0.1:6379* ]] || fail 'expected the address'
}

@test "--node replaces the environment's list" {
    DLOCK_NODES=$PWD/nobody gives 1 status --node "$(node a)" "$key"
    DLOCK_NODES="http://nonsense" gives 1 status -N "$(node a)" "$key"
}

# --------------------------------------------------------------- environment twins

@test "an invalid variable is refused and named" {
    DLOCK_TTL=5x refuses 64 'DLOCK_TTL.*5x' acquire "$key"
    DLOCK_NODES=http://h refuses 64 "DLOCK_NODES: invalid node 'http://" acquire "$key"
    is_free "$key"
}

# ------------------------------------------------------------- options as such

@test "options may stand before or after the command's name" {
    works --ttl 20s acquire --json "$key"
    [ "$(jq .ttl_ms <<<"$output")" = 20000 ]
    gives 0 --node "$(node a)" -j status "$key"
    jq -e . <<<"$output" >/dev/null
    works -t 20s run "$key-2" -- sh -c 'echo $DLOCK_TTL_MS'
    prints 20000
}

@test "options may stand after the key" {
    works acquire "$key" --ttl 20s --json
    [ "$(jq .ttl_ms <<<"$output")" = 20000 ]
}

@test "options in every form that getopt accepts" {
    for spelling in '-t20s' '-t 20s' '--ttl=20s' '--ttl 20s' '-jt20s' '-j -t 20s'; do
        works acquire --json $spelling "$key $spelling"
        [ "$(jq .ttl_ms <<<"$output")" = 20000 ] || fail "$spelling"
    done
}

@test "unknown options are refused and named" {
    for command in acquire run release renew status; do
        for option in --nonsense -Z --ttl-x -5; do
            refuses 64 "${option#-}" "$command" "$option" "$key"
        done
    done
    refuses 64 nonsense --nonsense acquire "$key"
}

@test "an unknown option that is not an ASCII letter is named, too" {
    for word in -é -vé -éx -qé€; do
        refuses 64 "option '-é'" acquire "$key" "$word"
    done
    refuses 64 "option '-€'" acquire "$key" -€
    attempt dlock -é
    fails 64 "option '-é'"
    refuses 64 "unknown option '-[^-]" acquire "$key" $'-v\xc3'
}

@test "an option without its value is refused" {
    refuses 64 ttl acquire "$key" --ttl
    refuses 64 '' acquire "$key" -t
    refuses 64 json acquire --json=yes "$key"
}

@test "an option of another command is refused" {
    refuses 64 max-run acquire --max-run 5s "$key"
    refuses 64 min-hold release --min-hold 5s "$key" "$OTHER_TOKEN"
    refuses 64 export status --export "$key"
}

@test "unknown commands are refused and named" {
    for name in nonsense Run runs '' r '--' $'new\nline'; do
        refuses 64 '' "$name" "$key"
    done
    refuses 64 nonsense nonsense "$key"
}

@test "the conflict exit code is a number from 0 to 255" {
    refuses 64 "'256'" acquire --conflict-exit-code=256 "$key"
    take "$key"
    refuses 255 '' acquire -E 255 "$key"
    refuses 7 '' acquire -E 007 "$key"
}

@test "a label of 256 bytes is accepted, of 257 refused" {
    works acquire --label "$(printf 'l%.0s' {1..256})" "$key"
    refuses 64 256 acquire --label "$(printf 'l%.0s' {1..257})" "$key-2"
    DLOCK_LABEL=$(printf 'l%.0s' {1..257}) refuses 64 256 acquire "$key-2"
    is_free "$key-2"
}

@test "an empty label is a label" {
    works acquire --label '' "$key"
    gives 0 status --json "$key"
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
