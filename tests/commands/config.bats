#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# The configuration file, and what takes precedence over it.

# shellcheck disable=SC2016,SC2030,SC2031,SC2094,SC2154
bats_require_minimum_version 1.5.0
load ../lib/redis

setup_file() { redis_start_tcp a; }

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
