#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# Options: durations, URLs, environment twins, the configuration file, passwords, and
# what beats what.

# shellcheck disable=SC2016,SC2030,SC2031,SC2094,SC2154
bats_require_minimum_version 1.5.0
load ../lib/redis

setup_file() {
    redis_start_tcp a
    redis_start locked --requirepass 'p@ss:w/rd ü'
}

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
        DLOCK_NODE_TIMEOUT=10s try acquire -q --json --ttl "$text" "$key-$text"
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
    within 3000 try acquire --wait 10000d "$key-2"
    succeeds
}

# --------------------------------------------------------------------- URLs

@test "URLs: a path, unix:// and redis:// and host:port lead to the server" {
    local port url
    port=$(port_of a)
    for url in "$(server_dir a)/s" "unix://$(server_dir a)/s" "unix://$(server_dir a)/s?db=0" \
        "127.0.0.1:$port" "redis://127.0.0.1:$port" "redis://127.0.0.1:$port/" \
        "redis://127.0.0.1:$port/0"; do
        try status --node "$url" "$key"
        exits 1
        [ -z "$stderr" ] || fail "expected no word about $url"
    done
}

@test "URLs: a name leads to the server" {
    need_localhost
    local url
    for url in "localhost:$(port_of a)" "redis://localhost:$(port_of a)"; do
        try status --node "$url" "$key"
        exits 1
        [ -z "$stderr" ] || fail "expected no word about $url"
    done
}

@test "URLs: IPv6 addresses in brackets" {
    grep -q . /proc/net/if_inet6 || must_run "this machine has no IPv6"
    redis_start_tcp six ::1
    local url
    for url in "[::1]:$(port_of six)" "redis://[::1]:$(port_of six)" "redis://[::1]:$(port_of six)/2" \
        "redis://[0:0::1]:$(port_of six)"; do
        try status --node "$url" "$key"
        exits 1
    done
}

@test "URLs: the database" {
    local url
    for url in "redis://127.0.0.1:$(port_of a)/5" "unix://$(server_dir a)/s?db=5"; do
        try acquire --node "$url" "$key"
        succeeds
        [ "$(rcli a -n 5 get "$key")" = "$output" ]
        is_free "$key"
        dlock release --node "$url" "$key" "$output"
    done
}

@test "URLs: a database that the server does not have is an error" {
    try acquire --node "unix://$(server_dir a)/s?db=9999" "$key"
    [ "$status" -eq 69 ] || [ "$status" -eq 77 ] || fail "expected 69 or 77"
    complains
    wait_until "free '$key'"
}

@test "URLs: a path may be escaped" {
    local port dir
    dir="$(server_dir a)/with space%"
    mkdir -p "$dir"
    ln -sf ../s "$dir/s"
    try status --node "unix://${dir// /%20}/s" "$key"
    [ "$status" -ne 0 ]
    try status --node "unix://$(server_dir a)/with%20space%25/s" "$key"
    exits 1
    try status --node "$dir/s" "$key"
    exits 1
}

bad_urls='http://127.0.0.1:1 ftp://host:1 redis: redis:/ redis:// redis:/// redis://:1 redis://h:notaport
redis://h:-1 redis://h:65536 redis://h:99999999999999 redis://h:1x redis://h:+1 redis://h:1/abc
redis://h:1/-1 redis://h:1/99999999999 redis://h:1/1/2 redis://h:1/0x1 redis://[::1 redis://[::1]x
redis://::1]:1 redis://[]:1 redis://h:1:2 redis://%zz@h:1 redis://u:%4@h:1 redis://h%00h:1
unix:// unix: unix://relative/path unix:relative unix:///s?db=x unix:///s?db=-1 unix:///s?nonsense=1
redis://h:1?nonsense=1 redis://h:1/0?db=1x redis://h:1#fragment h: h:x h:-1 h:65536 :6379 [::1 [::1]:x
[::1]x ://h:1 @h:1 redis://a@b@h:1x redis:///0 ?db=1'

@test "URLs: an invalid URL is refused and named" {
    local url
    for url in $bad_urls; do
        try acquire --node "$url" "$key"
        [ "$status" -eq 64 ] || fail "accepted: $url"
        fails 64
        case $url in
            *@*) ;;
            *://*:*) [[ $stderr == *"'$url'"* || $stderr == *"'${url%%://*}://...'"* ]] || fail "expected the scheme of $url" ;;
            *:*) [[ $stderr == *"'$url'"* || $stderr == *"'${url%%:*}:...'"* || $url == *]* ]] || fail "expected the host of $url" ;;
            *) [[ $stderr == *"'$url'"* ]] || fail "expected the URL $url" ;;
        esac
    done
    for url in ' ' 'redis://a b:1' $'redis://h:1\n' 'h h:1' $'\x80:1' "redis://h:1/ 1" "redis://$(printf 'h%.0s' {1..3000}):1"; do
        try acquire --node "$url" "$key"
        fails 64
    done
}

@test "URLs: the port 0 is refused" {
    refused h:0 acquire --node h:0 "$key"
    refused redis://h:0 acquire --node redis://h:0 "$key"
}

@test "URLs: an empty list of nodes does not mean the default node" {
    try acquire --node '' "$key"
    fails 64
}

@test "URLs: a socket's path that is too long is an error, not another path" {
    try acquire --node "/$(printf 'p%.0s' {1..200})/s" "$key"
    [ "$status" -eq 64 ] || [ "$status" -eq 69 ] || fail "expected 64 or 69"
    complains
}

@test "URLs: TLS is not silently omitted" {
    try acquire --node "rediss://127.0.0.1:$(port_of a)" "$key"
    [ "$status" -eq 64 ] || [ "$status" -eq 69 ] || fail "expected 64 or 69"
    complains
    is_free "$key"
}

@test "URLs: a password in a URL that is refused is not shown" {
    local url
    for url in redis://user:hidden-word@h:notaport redis://:hidden-word@h:0 redis://user:hidden-word@ \
        redis://user:hidden-word@h:1/x redis://user:hidden-word%zz@h:1 http://user:hidden-word@h:1 \
        rediss://user:hidden-word@h:1/x user:hidden-word@h:1 redis://user:hidden-word@h:1?x=y \
        'redis://user:hidden-word@h h:1' redis:user:hidden-word@h:1; do
        try acquire --node "$url" "$key"
        fails 64
        [[ $stderr != *hidden* ]] || fail "the password is shown for $url"
        case $url in
            *' '*) continue ;;
        esac
        DLOCK_NODES=$url try acquire "$key"
        fails 64
        [[ $stderr != *hidden* ]] || fail "the password is shown for $url"
    done
}

# ------------------------------------------------------------------ passwords

@test "DLOCK_PASSWORD, REDISCLI_AUTH, --password-file and the URL give the password" {
    export DLOCK_NODES
    DLOCK_NODES=$(node locked)
    DLOCK_PASSWORD='p@ss:w/rd ü' try status "$key"
    exits 1
    REDISCLI_AUTH='p@ss:w/rd ü' try status "$key"
    exits 1
    echo 'p@ss:w/rd ü' >pass
    try status --password-file pass "$key"
    exits 1
    printf %s 'p@ss:w/rd ü' >pass
    try status --password-file pass "$key"
    exits 1
    try status --node "unix://:p%40ss%3Aw%2Frd%20%C3%BC@$(server_dir locked)/s" "$key"
    [ "$status" -eq 1 ] || [ "$status" -eq 64 ]
}

@test "--password-file takes precedence over DLOCK_PASSWORD, and that over REDISCLI_AUTH" {
    export DLOCK_NODES
    DLOCK_NODES=$(node locked)
    echo 'p@ss:w/rd ü' >pass
    DLOCK_PASSWORD=wrong REDISCLI_AUTH=wrong try status --password-file pass "$key"
    exits 1
    DLOCK_PASSWORD='p@ss:w/rd ü' REDISCLI_AUTH=wrong try status "$key"
    exits 1
    DLOCK_PASSWORD='' REDISCLI_AUTH='p@ss:w/rd ü' try status "$key"
    exits 1
    DLOCK_PASSWORD=wrong REDISCLI_AUTH='p@ss:w/rd ü' try status "$key"
    exits 77
}

@test "--password-file reads the first line only and keeps its blanks" {
    export DLOCK_NODES
    redis_start blanks --requirepass ' blanks '
    DLOCK_NODES=$(node blanks)
    printf ' blanks \n' >pass
    try status --password-file pass "$key"
    exits 1
}

@test "--password-file may have Windows line endings, and has a maximum length" {
    redis_start blanks --requirepass ' blanks '
    printf ' blanks \r\n' >pass
    try status -N "$(node blanks)" --password-file pass "$key"
    exits 1
    head -c 600 /dev/zero | tr '\0' x >pass
    try status --password-file pass "$key"
    fails 78 'first line is too long'
}

@test "a --password-file that cannot be read: 78, and the file is named" {
    try status --password-file no-such-file "$key"
    exits 78
    complains no-such-file
    try status --password-file . "$key"
    exits 78
    complains
}

@test "user and password in the URL, with escapes" {
    redis_start_tcp named
    rcli named acl setuser jobs on '>s:e/c@r%t' '~*' '+@all' >/dev/null
    rcli named acl setuser default off >/dev/null
    try acquire --node "redis://jobs:s%3Ae%2Fc%40r%25t@127.0.0.1:$(port_of named)" "$key"
    succeeds
    try status --node "redis://jobs:s%3ae%2fc%40r%25t@127.0.0.1:$(port_of named)/0" "$key"
    exits 0
    try status --node "redis://jobs:wrong@127.0.0.1:$(port_of named)/0" "$key"
    exits 77
    complains
    [[ $stderr != *wrong@* ]] || fail "the password is shown"
}

@test "user in the URL, password from the environment" {
    redis_start_tcp named
    rcli named acl setuser jobs on '>s:e/c@r%t' '~*' '+@all' >/dev/null
    rcli named acl setuser default off >/dev/null
    DLOCK_PASSWORD='s:e/c@r%t' try acquire --node "redis://jobs@127.0.0.1:$(port_of named)" "$key"
    succeeds
}

@test "a password in the URL takes precedence over the environment" {
    redis_start_tcp locked-too 127.0.0.1 --requirepass secret
    DLOCK_PASSWORD=wrong try acquire --node "redis://:secret@127.0.0.1:$(port_of locked-too)" "$key"
    succeeds
}

@test "no message and no verbose line shows a password" {
    local url
    redis_start_tcp locked-too 127.0.0.1 --requirepass hidden-word
    url="redis://:hidden-word@127.0.0.1:$(port_of locked-too)"
    try run -v --node "$url" "$key" -- true
    exits 0
    [[ $stderr != *hidden* ]] || fail "the password is shown"
    [[ $stderr == *127.0.0.1* ]] || fail "expected the node"
    DLOCK_NODES=$url take "$key"
    try status --json --node "$url" "$key"
    exits 0
    [[ $output$stderr != *hidden* ]] || fail "the password is shown"
    redis_stop locked-too
    try run -v --node "$url" "$key" -- true
    exits 69
    [[ $stderr != *hidden* ]] || fail "the password is shown"
    DLOCK_PASSWORD=hidden-wrong try acquire -v --node "$(node locked)" "$key"
    exits 77
    [[ $stderr != *hidden* ]] || fail "the password is shown"
}

@test "a password for a server that needs none does not prevent a lock" {
    DLOCK_PASSWORD=unneeded try acquire "$key"
    [ "$status" -eq 0 ] || [ "$status" -eq 77 ] || fail "expected 0 or 77"
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
    # shellcheck disable=SC2046
    try acquire $(printf -- '-v %.0s' {1..65}) "$key"
    fails 64 'more than 64 options'
}

@test "the default node is the local server" {
    unset DLOCK_NODES
    try status -v "$key"
    [[ $stderr == *127.0.0.1:6379* ]] || fail 'expected the address'
}

@test "DLOCK_NODES is separated by spaces or commas, surrounding blanks are ignored" {
    export DLOCK_NODES
    local list
    for list in " $(node a)" "$(node a) " ",$(node a)," "$(node a),"; do
        DLOCK_NODES=$list
        try status "$key"
        exits 1
    done
}

@test "a comma separates the servers of a Cluster, and nodes" {
    DLOCK_NODES='redis+cluster://127.0.0.1:1,127.0.0.1:2,redis://127.0.0.1:3' try status "$key"
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
    fails 64 'http://h'
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

# ---------------------------------------------------------- the configuration file

@test "--config sets defaults, one long option per line" {
    printf '%s\n' '# a comment' '' 'ttl 20s' '   # another' 'label two words' 'json' >config
    try acquire --config config "$key"
    succeeds
    [ "$(jq .ttl_ms <<<"$output")" = 20000 ]
    [ "$(rcli a hget "{$key}:dlock" label)" = 'two words' ]
}

@test "the configuration file may end without newline" {
    printf 'ttl 20s' >config
    try acquire --json --config config "$key"
    succeeds
    [ "$(jq .ttl_ms <<<"$output")" = 20000 ]
}

@test "precedence: option, environment, configuration file" {
    printf 'ttl 20s\nprefix file:\n' >config
    DLOCK_TTL=30s try acquire --json --config config "$key-1"
    [ "$(jq .ttl_ms <<<"$output")" = 30000 ]
    DLOCK_TTL=30s try acquire --json --config config --ttl 40s "$key-2"
    [ "$(jq .ttl_ms <<<"$output")" = 40000 ]
    is_held "file:$key-1"
    is_held "file:$key-2"
}

@test "the file is found by DLOCK_CONFIG, then in XDG_CONFIG_HOME" {
    export XDG_CONFIG_HOME=$PWD/xdg
    mkdir -p xdg/dlock
    echo 'ttl 20s' >xdg/dlock/config
    try acquire --json "$key-1"
    [ "$(jq .ttl_ms <<<"$output")" = 20000 ]
    echo 'ttl 30s' >config
    DLOCK_CONFIG=config try acquire --json "$key-2"
    [ "$(jq .ttl_ms <<<"$output")" = 30000 ]
    echo 'ttl 40s' >other
    DLOCK_CONFIG=config try acquire --json --config other "$key-3"
    [ "$(jq .ttl_ms <<<"$output")" = 40000 ]
}

@test "without XDG_CONFIG_HOME the file is found in .config" {
    unset XDG_CONFIG_HOME
    mkdir -p "$HOME/.config/dlock"
    echo 'ttl 20s' >"$HOME/.config/dlock/config"
    try acquire --json "$key"
    [ "$(jq .ttl_ms <<<"$output")" = 20000 ]
}

@test "nodes in the file are replaced by those of the environment and of --node" {
    echo "node $PWD/nobody" >config
    unset DLOCK_NODES
    try status --config config "$key"
    exits 69
    complains nobody
    DLOCK_NODES=$(node a) try status --config config "$key"
    exits 1
    try status --config config --node "$(node a)" "$key"
    exits 1
    echo "node $(node a)" >config
    try status --config config "$key"
    exits 1
}

@test "a requested file that is missing: 78, and it is named" {
    try acquire --config no-such-file "$key"
    fails 78 no-such-file
    DLOCK_CONFIG=no-such-file try acquire "$key"
    fails 78 no-such-file
    is_free "$key"
}

@test "a file that is not a regular file: 78" {
    try acquire --config . "$key"
    fails 78
}

@test "a file of megabytes: 78" {
    yes '# nothing' | head -c 2000000 >config
    try acquire --config config "$key"
    fails 78 'too large'
}

@test "errors in the file: 78, and file, line and value are named" {
    printf '# comment\nttl 5x\n' >config
    try acquire --config config "$key"
    fails 78 'config.*2.*5x'
    printf 'nonsense 1\n' >config
    try acquire --config config "$key"
    fails 78 'config.*1.*nonsense'
    printf '\n\nttl\n' >config
    try acquire --config config "$key"
    fails 78 'config.*3.*ttl'
    printf 'json yes\n' >config
    try acquire --config config "$key"
    fails 78 'config.*1.*json'
    printf -- '--ttl 5s\n' >config
    try acquire --config config "$key"
    [ "$status" -eq 78 ] || [ "$status" -eq 0 ]
    printf 'node http://h\n' >config
    unset DLOCK_NODES
    try acquire --config config "$key"
    fails 78 'config.*1'
    is_free "$key"
}

@test "a file of random bytes, or with NUL: 78 and one line" {
    "$PYTHON" -c 'import random, sys; sys.stdout.buffer.write(random.Random(4).randbytes(20000))' >config
    try acquire --config config "$key"
    fails 78
    printf 'ttl 5s\0ttl 6s\n' >config
    try acquire --config config "$key"
    fails 78
}

@test "options of one command in the file do not affect another" {
    printf 'max-run 20s\nmin-hold 0s\nttl 20s\n' >config
    try acquire --json --config config "$key"
    succeeds
    [ "$(jq .ttl_ms <<<"$output")" = 20000 ]
    try run --config config "$key-2" -- true
    succeeds
}

@test "a password in a node of the file is not shown" {
    echo "node redis://user:hidden-word@h:notaport" >config
    unset DLOCK_NODES
    try acquire --config config "$key"
    exits 78
    [[ $stderr != *hidden* ]] || fail "the password is shown"
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
