#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# Options: durations, the list of nodes, variables of the environment, and how options are written.  Addresses and passwords
# are in urls.bats, the configuration file in config.bats.

load ../lib/redis

setup_file() { redis_start_tcp a; }

# refused VALUE ARG...: dlock ARG... exits 64 with one line that names the value.
refused() {
    local value=$1
    shift
    refuses 64 '' "$@"
    [[ $stderr == *"$value"* ]] || fail "expected the value: $value"
}

# ---------------------------------------------------------------- durations

good_durations='
250ms 250
30s 30000
5m 300000
2h 7200000
1d 86400000
1m30s 90000
1h30m 5400000
1d2h3m4s5ms 93784005
7 7000
1.5 1500
0.25 250
1.5s 1500
.5 500
0.5m 30000
2.5h 9000000
007 7000
1500ms 1500
'

@test "durations: units, sums and bare seconds with decimals" {
    while read -r text ms; do
        [ -n "$text" ] || continue
        # A lease of 250 ms may end on a busy machine before it is granted.
        wait_until 'DLOCK_NODE_TIMEOUT=10s try acquire -q --json --ttl "$text" "$key-$text"; [ "$status" -eq 0 ]' || fail "$text"
        succeeds
        [ "$(jq .ttl_ms <<<"$output")" = "$ms" ] || fail "$text is not $ms ms"
    done <<<"$good_durations"
}

bad_durations=$'-1 +1 -1s +5m 1x abc s ms . 1. .s 1ss 1s1 1e3 0x10 nan inf infinity 1..5 1.2.3 1,5
1_000 10S 10M 1w 1y 1sm 5s- --5 5;s 1m-30s 99999999999999999999 99999999999999999999s
106751991168d 9223372036854775808ms 99999999999d 1d99999999999999999999h \xd9\xa1
1e999 1.5.s 0x1p3 1٫5'

@test "durations: invalid text, signs and overflow are refused and named" {
    for text in $bad_durations; do
        refused "$text" acquire --ttl="$text" "$key"
    done
    for text in '' ' ' ' 5s' '5s ' '5 s' $'5s\n' '1m 30s'; do
        refuses 64 '' acquire --ttl="$text" "$key"
    done
    is_free "$key"
}

@test "durations: the same texts are refused for every option that takes a duration" {
    for text in -5s 5x '' 99999999999999999999; do
        for option in --ttl --wait --node-timeout; do
            refused "$text" acquire "$option=$text" "$key"
        done
        for option in --ttl --wait --node-timeout --min-hold --once-per --max-run --kill-after; do
            refused "$text" run "$option=$text" "$key" -- touch begun
        done
    done
    [ ! -e begun ]
}

@test "durations: a lease of 0 is refused, forever is for --wait and --max-run only" {
    for text in 0 0s 0ms 0.0 forever; do
        refused "$text" acquire --ttl "$text" "$key"
    done
    refused forever run --min-hold forever "$key" -- true
    refused Forever acquire --wait Forever "$key"
    refused 0 acquire --node-timeout 0 "$key"
}

@test "durations: more than a hundred years is too long, not malformed" {
    for text in 36526d 36525.1d 876601h 3155760001 99999999999999999999 9223372036854775808ms 1d99999999999999999999h; do
        for option in --ttl --wait --node-timeout --min-hold --once-per --max-run --kill-after; do
            refused "$text" run "$option=$text" "$key" -- touch begun
            [[ $stderr == *'too long; the maximum is 36525d'* ]] || fail "expected to hear that it is too long"
        done
    done
    for text in inf infinity INF forever; do
        refused "$text" run --ttl "$text" "$key" -- touch begun
        [[ $stderr == *'too long'* ]] || fail "expected to hear that it is too long"
        gives 3 run --max-run "$text" --wait "$text" "$key" -- sh -c 'exit 3'
    done
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

@test "DLOCK_NODES is separated by blanks, surrounding ones are ignored" {
    export DLOCK_NODES
    for list in " $(node a)" "$(node a) "; do
        DLOCK_NODES=$list
        gives 1 status "$key"
    done
    DLOCK_NODES="127.0.0.1:1,127.0.0.1:2"
    refuses 64 'DLOCK_NODES: .*separate them by blanks' status "$key"
    DLOCK_NODES='redis+cluster://127.0.0.1:1,127.0.0.1:2 redis://127.0.0.1:3' try status "$key"
    fails 69 '0 of 2 nodes'
}

@test "--node replaces the environment's list" {
    DLOCK_NODES=$PWD/nobody gives 1 status --node "$(node a)" "$key"
    DLOCK_NODES="http://nonsense" gives 1 status -N "$(node a)" "$key"
}

@test "an empty DLOCK_NODES counts as none" {
    # The default, a Redis on this machine's usual port, is not touched by a test: the
    # message of a bad URL tells what would have been used.
    DLOCK_NODES='' gives 1 status --node "$(node a)" "$key"
}

# --------------------------------------------------------------- environment twins

@test "DLOCK_TTL, DLOCK_NODE_TIMEOUT and DLOCK_PREFIX set their options" {
    DLOCK_TTL=77s works acquire --json "$key"
    [ "$(jq .ttl_ms <<<"$output")" = 77000 ]
    DLOCK_PREFIX=p: works acquire "$key"
    is_held "p:$key"
}

@test "an option takes precedence over its variable" {
    DLOCK_TTL=77s try acquire --json --ttl 20s "$key"
    [ "$(jq .ttl_ms <<<"$output")" = 20000 ]
    DLOCK_PREFIX=p: works acquire --prefix q: "$key"
    is_held "q:$key"
    is_free "p:$key"
}

@test "an invalid variable is refused and named" {
    DLOCK_TTL=5x refuses 64 'DLOCK_TTL.*5x' acquire "$key"
    DLOCK_WAIT=-3 refuses 64 'DLOCK_WAIT.*-3' acquire "$key"
    DLOCK_NODE_TIMEOUT=soon refuses 64 'DLOCK_NODE_TIMEOUT.*soon' acquire "$key"
    DLOCK_NODES=http://h refuses 64 "DLOCK_NODES: invalid node 'http://" acquire "$key"
    is_free "$key"
}

@test "an option repeated: the last one counts" {
    try acquire --json --ttl 20s --ttl 40s "$key"
    [ "$(jq .ttl_ms <<<"$output")" = 40000 ]
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
        # shellcheck disable=SC2086
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
    for code in -1 256 600 x '' 1x 0x1 99999999999999999999; do
        refused "$code" acquire "--conflict-exit-code=$code" "$key"
    done
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
        # shellcheck disable=SC2086
        refuses 64 "KEY is missing before '--'" run $words
    done
    [ ! -e begun ]
    works run -- "$key" -- echo mine
    [ "$output" = mine ]
    works -- run "$key" -- echo mine
}
