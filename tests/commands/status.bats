#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# dlock status: who holds what, for how long.

# shellcheck disable=SC1003
load ../lib/redis

@test "the table has one row and its columns in order, --json the same" {
    take "$key" --label backup --ttl 20s
    works status "$key"
    [ "${#lines[@]}" -eq 2 ] || fail "expected two lines"
    [[ ${lines[0]} =~ ^KEY\ +STATE\ +TTL\ +OWNER\ +LABEL\ +HELD\ +FENCE\ +WAITING\ +NODES\ *$ ]] ||
        fail "expected the header"
    [[ ${lines[1]} =~ ^"$key"\ +held\ +[0-9.]+m?s\ +"$(id -un)@$(uname -n):"[0-9]+\ +backup\  ]] ||
        fail "expected the row of a held lock"
    [[ ${lines[1]} == *"$(rcli a hget "{$key}:dlock" fence)"* ]] || fail "expected the fence"
    [[ ${lines[1]} == *1/1* ]] || fail "expected the nodes"
    works status --json "$key"
    [ "${#lines[@]}" -eq 1 ]
    json_is '.key == $key and .state == "held" and .label == "backup" and .ttl_ms > 15000 and .ttl_ms <= 20000'
    json_is '.held_ms >= 0 and .held_ms < 10000 and .waiting == 0 and .token_hint == $token[:4]'
    json_is ".owner.user == \"$(id -un)\" and .owner.host == \"$(uname -n)\" and (.owner.pid | type) == \"number\""
    json_is ".fence == $(rcli a hget "{$key}:dlock" fence) and (.nodes | length) == 1"
    json_is ".nodes[0] | .state == \"held\" and .ttl_ms > 15000 and .error == null and (.node | contains(\"$(node a)\"))"
}

@test "the owner of a lock of run is that dlock process" {
    start_holding "$key" 'sleep 30'
    status_is ".owner.pid == $bg and .owner.command == \"run\" and .label == \"sh\""
}

@test "a free key, and a foreign client's lock with its TTL, do not show the metadata of an older lock of dlock" {
    take "$key" --label mine
    dlock release "$key" "$token"
    quietly 1 status --json "$key"
    json_is '.key == $key and .state == "free" and .nodes[0].state == "free"'
    json_is '.label == null and .owner == null and .token_hint == null'
    rcli a set "$key" 0123456789abcdef0123456789abcdef px 20000
    status_is '.state == "foreign" and .ttl_ms > 15000 and .ttl_ms <= 20000 and .label == null and .owner == null'
    [[ $output != *0123456789abcdef* ]] || fail "the token is shown"
    works status "$key"
    [[ ${lines[1]} =~ ^"$key"\ +foreign ]] || fail "expected a foreign lock"
    [[ $output != *mine* ]] || fail "old metadata is shown"
}

@test "several keys: one row or object each, in the given order, exit 0" {
    take "$key-2"
    works status "$key-3" "$key-2" "$key-1"
    [ "${#lines[@]}" -eq 4 ] || fail "expected four lines"
    [[ ${lines[1]} == "$key-3 "* && ${lines[2]} == "$key-2 "* && ${lines[3]} == "$key-1 "* ]] ||
        fail "expected the order given"
    works status --json "$key-3" "$key-2" "$key-1"
    [ "$(jq -r .key <<<"$output" | tr '\n' ' ')" = "$key-3 $key-2 $key-1 " ]
    [ "$(jq -r .state <<<"$output" | tr '\n' ' ')" = "free held free " ]
    rcli a acl setuser one on '>one' '~*' +@all -scan
    gives 77 status -N "unix://one:one@$(node a)" "$key-*"
    prints ''
    gives 77 status -N "unix://one:one@$(node a)" "$key-2" "$key-*"
    [[ ${#lines[@]} -eq 2 && ${lines[1]} == "$key-2 "* ]] || fail 'expected the one before the error'
}

@test "a pattern lists all locks that match, sorted, foreign ones too, and exits 0" {
    take "$key:3"
    take "$key:1"
    rcli a set "$key:2" foreign px 20000
    rcli a set "$key:$(printf '%01024d' 0)" 'too long for a KEY'
    works status --json "$key:*"
    [ "$(jq -r .key <<<"$output" | tr '\n' ' ')" = "$key:1 $key:2 $key:3 " ]
    [ "$(jq -r .state <<<"$output" | tr '\n' ' ')" = "held foreign held " ]
    try status --json "$key:[13]"
    [ "$(jq -r .key <<<"$output" | tr '\n' ' ')" = "$key:1 $key:3 " ]
    silently status --json "$key-no-such-*"
}

@test "without a key all locks of dlock are listed" {
    redis_start many
    DLOCK_NODES=$(node many)
    for i in 1 2 3; do take "$key:$i"; done
    rcli many set unrelated value
    rcli many eval 'for i = 1, 3000 do redis.call("set", "other:" .. i, i) end' 0
    dlock release "$key:3" "$token"
    works status --json
    [ "$(jq -r .key <<<"$output" | tr '\n' ' ')" = "$key:1 $key:2 " ]
}

@test "a prefix is not a pattern" {
    take "$key:1" --prefix 'a[b]*?^\'
    take "$key:2" --prefix ab
    take "$key:3" --prefix 'a[b]*?x\'
    works status --json --prefix 'a[b]*?^\' "$key:*"
    [ "${#lines[@]}" -eq 1 ] && [[ $output == *"$key:1"* ]] || fail 'expected one'
    works status --json --prefix 'a[b]*?^\'
    [ "${#lines[@]}" -eq 1 ] && [[ $output == *"$key:1"* ]] || fail 'expected one'
}

@test "many locks on several nodes are listed once each" {
    redis_start b
    redis_start c
    DLOCK_NODES="$(node a) $(node b) $(node c)"
    for n in a b c; do
        rcli "$n" eval 'for i = 1, 500 do redis.call("set", KEYS[1] .. i, "x", "px", 60000) end' 1 "$key:"
    done
    works status --json "$key:*"
    [ "$(jq -r .key <<<"$output" | sort -u | wc -l)" -eq 500 ] && [ "${#lines[@]}" -eq 500 ] || fail 'expected 500'
}

@test "a key with a newline and a label with control characters do not break the table" {
    key=$'two\n'"lines $BATS_TEST_NUMBER"
    take "$key" --label $'red\e[31m\nline'
    works status "$key"
    [ "${#lines[@]}" -eq 2 ] || fail "expected two lines"
    [[ $output != *$'\e'* ]] || fail "an escape sequence came through"
    status_is '.key == $key and .label == "red\u001b[31m\nline"'
}

@test "damaged metadata, or metadata of another type, does no harm" {
    take "$key"
    rcli a hset "{$key}:dlock" owner $'\xff\xfe@@::' since x ttl -1 fence 1e400 waiting nan label $'\xff'
    try status "$key"
    [ "$status" -le 1 ] || fail "expected an answer"
    status_is '.key == $key'
    [ "$status" -le 1 ] || fail "expected an answer"
    rcli a del "{$key}:dlock"
    rcli a set "{$key}:dlock" string
    try status --json "$key"
    [ "$status" -ne 70 ] && [ "$status" -lt 128 ] || fail "expected an answer or an error"
}

@test "-q prints nothing, and the exit status has the state; quiet in a configuration file does not silence status" {
    take "$key"
    for options in '' --json --prometheus; do
        works status -q $options "$key"
        gives 1 status -q $options "$key-2"
        [ -z "$output$stderr" ] || fail 'expected silence'
    done
    silently status -q "$key" "$key-2"
    echo quiet >config
    works status --config config "$key"
    [ "${#lines[@]}" -eq 2 ] || fail 'expected the table'
}
