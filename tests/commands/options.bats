#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# Options: durations, the list of nodes, variables of the environment, and how options are written.  Addresses and passwords
# are in urls.bats, the configuration file in config.bats.

# shellcheck disable=SC2016,SC2030,SC2031,SC2094,SC2154
bats_require_minimum_version 1.5.0
load ../lib/redis

setup_file() { redis_start_tcp a; }

# refused VALUE ARG...: dlock ARG... exits 64 with one line that names the value.
refused() {
    local value=$1
    shift
    try "$@"
    fails 64
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
    local text ms
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
    local text
    for text in $bad_durations; do
        refused "$text" acquire --ttl="$text" "$key"
    done
    for text in '' ' ' ' 5s' '5s ' '5 s' $'5s\n' '1m 30s'; do
        try acquire --ttl="$text" "$key"
        fails 64
    done
    is_free "$key"
}

@test "durations: the same texts are refused for every option that takes a duration" {
    local option text
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
    local text
    for text in 0 0s 0ms 0.0 forever; do
        refused "$text" acquire --ttl "$text" "$key"
    done
    refused forever run --min-hold forever "$key" -- true
    refused Forever acquire --wait Forever "$key"
    refused 0 acquire --node-timeout 0 "$key"
}

@test "durations: more than a hundred years is too long, not malformed" {
    local text option
    for text in 36526d 36525.1d 876601h 3155760001 99999999999999999999 9223372036854775808ms 1d99999999999999999999h; do
        for option in --ttl --wait --node-timeout --min-hold --once-per --max-run --kill-after; do
            refused "$text" run "$option=$text" "$key" -- touch begun
            [[ $stderr == *'too long; the maximum is 36525d'* ]] || fail "expected to hear that it is too long"
        done
    done
    for text in inf infinity INF forever; do
        refused "$text" run --ttl "$text" "$key" -- touch begun
        [[ $stderr == *'too long'* ]] || fail "expected to hear that it is too long"
        try run --max-run "$text" --wait "$text" "$key" -- sh -c 'exit 3'
        exits 3
    done
    [ ! -e begun ]
}

@test "durations: long leases and waits do not overflow" {
    try acquire --json --ttl 3650d "$key"
    [ "$status" -eq 0 ] || [ "$status" -eq 64 ] || fail "expected to be taken or refused"
    [ "$status" -ne 0 ] || [ "$(rcli a pttl "$key")" -gt 300000000000 ]
    within 10000 try acquire --wait 10000d "$key-2"
    succeeds
}

# ---------------------------------------------------------------- the list of nodes

@test "a prefix that is too long for a key, and overlong words are refused" {
    local long
    long=$(printf 'x%.0s' {1..1000})
    try acquire --prefix "$long" "$key"
    fails 64 prefix
    try acquire "--$long" "$key"
    fails 64 'unknown'
    DLOCK_PASSWORD=$long try acquire "$key"
    fails 64 'password .* too long'
}

@test "the default node is the local server" {
    unset DLOCK_NODES
    try status -v "$key"
    [[ $stderr == *127.0.0.1:6379* ]] || fail 'expected the address'
}

@test "DLOCK_NODES is separated by blanks, surrounding ones are ignored" {
    export DLOCK_NODES
    local list
    for list in " $(node a)" "$(node a) "; do
        DLOCK_NODES=$list
        try status "$key"
        exits 1
    done
    DLOCK_NODES="127.0.0.1:1,127.0.0.1:2"
    try status "$key"
    fails 64 'DLOCK_NODES: .*separate them by blanks'
    DLOCK_NODES='redis+cluster://127.0.0.1:1,127.0.0.1:2 redis://127.0.0.1:3' try status "$key"
    fails 69 '0 of 2 nodes'
}

@test "--node replaces the environment's list" {
    DLOCK_NODES=$PWD/nobody try status --node "$(node a)" "$key"
    exits 1
    DLOCK_NODES="http://nonsense" try status -N "$(node a)" "$key"
    exits 1
}

@test "an empty DLOCK_NODES counts as none" {
    # The default, a Redis on this machine's usual port, is not touched by a test: the
    # message of a bad URL tells what would have been used.
    DLOCK_NODES='' try status --node "$(node a)" "$key"
    exits 1
}

# --------------------------------------------------------------- environment twins

@test "DLOCK_TTL, DLOCK_NODE_TIMEOUT and DLOCK_PREFIX set their options" {
    DLOCK_TTL=77s try acquire --json "$key"
    succeeds
    [ "$(jq .ttl_ms <<<"$output")" = 77000 ]
    DLOCK_PREFIX=p: try acquire "$key"
    succeeds
    is_held "p:$key"
}

@test "an option takes precedence over its variable" {
    DLOCK_TTL=77s try acquire --json --ttl 20s "$key"
    [ "$(jq .ttl_ms <<<"$output")" = 20000 ]
    DLOCK_PREFIX=p: try acquire --prefix q: "$key"
    succeeds
    is_held "q:$key"
    is_free "p:$key"
}

@test "an invalid variable is refused and named" {
    DLOCK_TTL=5x try acquire "$key"
    fails 64 'DLOCK_TTL.*5x'
    DLOCK_WAIT=-3 try acquire "$key"
    fails 64 'DLOCK_WAIT.*-3'
    DLOCK_NODE_TIMEOUT=soon try acquire "$key"
    fails 64 'DLOCK_NODE_TIMEOUT.*soon'
    DLOCK_NODES=http://h try acquire "$key"
    fails 64 "DLOCK_NODES: invalid node 'http://"
    is_free "$key"
}

@test "an option repeated: the last one counts" {
    try acquire --json --ttl 20s --ttl 40s "$key"
    [ "$(jq .ttl_ms <<<"$output")" = 40000 ]
}

# ------------------------------------------------------------- options as such

@test "options may stand before or after the command's name" {
    try --ttl 20s acquire --json "$key"
    succeeds
    [ "$(jq .ttl_ms <<<"$output")" = 20000 ]
    try --node "$(node a)" -j status "$key"
    exits 0
    jq -e . <<<"$output" >/dev/null
    try -t 20s run "$key-2" -- sh -c 'echo $DLOCK_TTL_MS'
    succeeds
    prints 20000
}

@test "options may stand after the key" {
    try acquire "$key" --ttl 20s --json
    succeeds
    [ "$(jq .ttl_ms <<<"$output")" = 20000 ]
}

@test "options in every form that getopt accepts" {
    local spelling
    for spelling in '-t20s' '-t 20s' '--ttl=20s' '--ttl 20s' '-jt20s' '-j -t 20s'; do
        # shellcheck disable=SC2086
        try acquire --json $spelling "$key $spelling"
        succeeds
        [ "$(jq .ttl_ms <<<"$output")" = 20000 ] || fail "$spelling"
    done
}

@test "unknown options are refused and named" {
    local option command
    for command in acquire run release renew status; do
        for option in --nonsense -Z --ttl-x -5; do
            try "$command" "$option" "$key"
            fails 64 "${option#-}"
        done
    done
    try --nonsense acquire "$key"
    fails 64 nonsense
}

@test "an unknown option that is not an ASCII letter is named, too" {
    local word
    for word in -é -vé -éx -qé€; do
        try acquire "$key" "$word"
        fails 64 "option '-é'"
    done
    try acquire "$key" -€
    fails 64 "option '-€'"
    attempt dlock -é
    fails 64 "option '-é'"
    try acquire "$key" $'-v\xc3'
    fails 64 "unknown option '-[^-]"
}

@test "an option without its value is refused" {
    try acquire "$key" --ttl
    fails 64 ttl
    try acquire "$key" -t
    fails 64
    try acquire --json=yes "$key"
    fails 64 json
}

@test "an option of another command is refused" {
    try acquire --max-run 5s "$key"
    fails 64 max-run
    try release --min-hold 5s "$key" "$OTHER_TOKEN"
    fails 64 min-hold
    try status --export "$key"
    fails 64 export
}

@test "unknown commands are refused and named" {
    local name
    for name in nonsense Run runs '' r '--' $'new\nline'; do
        try "$name" "$key"
        fails 64
    done
    try nonsense "$key"
    fails 64 nonsense
}

@test "the conflict exit code is a number from 0 to 255" {
    local code
    for code in -1 256 600 x '' 1x 0x1 99999999999999999999; do
        refused "$code" acquire "--conflict-exit-code=$code" "$key"
    done
    take "$key"
    try acquire -E 255 "$key"
    fails 255
    try acquire -E 007 "$key"
    fails 7
}

@test "a label of 256 bytes is accepted, of 257 refused" {
    try acquire --label "$(printf 'l%.0s' {1..256})" "$key"
    succeeds
    try acquire --label "$(printf 'l%.0s' {1..257})" "$key-2"
    fails 64 256
    DLOCK_LABEL=$(printf 'l%.0s' {1..257}) try acquire "$key-2"
    fails 64 256
    is_free "$key-2"
}

@test "an empty label is a label" {
    try acquire --label '' "$key"
    succeeds
    try status --json "$key"
    exits 0
}

@test "after a -- before KEY, run needs a second one: a command is not taken for a key" {
    local words
    for words in '-- nice touch begun' '--ttl 5s -- touch begun' '-- KEY touch -- begun'; do
        # shellcheck disable=SC2086
        try run $words
        fails 64 "KEY is missing before '--'"
    done
    [ ! -e begun ]
    try run -- "$key" -- echo mine
    succeeds
    [ "$output" = mine ]
    try -- run "$key" -- echo mine
    succeeds
}
