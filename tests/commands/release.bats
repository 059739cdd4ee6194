#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# dlock release: gives a lock back, and only one's own.

# shellcheck disable=SC2016,SC2030,SC2031,SC2094,SC2154
bats_require_minimum_version 1.5.0
load ../lib/redis

setup_file() { redis_start a; }

# unchanged: $key holds $token for about as long as before.
unchanged() {
    [ "$(rcli a get "$key")" = "$token" ] || fail "the lock was changed"
    [ "$(rcli a pttl "$key")" -gt 15000 ] || fail "the lease was changed"
}

@test "release frees the lock and prints nothing" {
    take "$key"
    try release "$key" "$token"
    succeeds
    prints ''
    is_free "$key"
}

@test "the token may come from DLOCK_TOKEN" {
    take "$key"
    DLOCK_TOKEN=$token try release "$key"
    succeeds
    is_free "$key"
}

@test "the token may come from standard input" {
    take "$key"
    try release "$key" - <<<"$token"
    succeeds
    is_free "$key"
}

@test "a token on standard input needs no newline" {
    take "$key"
    try release "$key" - < <(printf %s "$token")
    succeeds
    is_free "$key"
}

@test "an operand takes precedence over DLOCK_TOKEN" {
    take "$key"
    DLOCK_TOKEN=$OTHER_TOKEN try release "$key" "$token"
    succeeds
    is_free "$key"
}

@test "a wrong token changes nothing, exits 1, and the message says that another holds the lock" {
    take "$key"
    try release "$key" "$OTHER_TOKEN"
    fails 1 "held by another"
    unchanged
}

@test "the token of an expired lease exits 1, with the reason" {
    take_for 100 "$key"
    wait_until "free '$key'"
    try release "$key" "$token"
    fails 1 expired
    is_free "$key"
}

@test "the token of an expired lease does not change the lock of the next holder" {
    take_for 100 "$key"
    local first=$token
    wait_until "free '$key'"
    take "$key"
    try release "$key" "$first"
    fails 1 "held by another"
    unchanged
}

@test "a lock that was never acquired is not released" {
    try release "$key" "$OTHER_TOKEN"
    fails 1
    is_free "$key"
}

@test "a foreign client's lock is not released" {
    rcli a set "$key" 0123456789abcdef px 30000
    try release "$key" "$OTHER_TOKEN"
    fails 1 "held by another"
    [ "$(rcli a get "$key")" = 0123456789abcdef ]
}

@test "a malformed token changes nothing, exits 64 and is not shown" {
    take "$key"
    local bad
    for bad in x "${token}x" "${token%?}" "${token%?}+" "${token%?}/" "$token." "$token.$token$token" \
        "$token " " $token" "$token.a.b" "${token%?}ä" "secretsecretsecretsecretsecret"; do
        try release "$key" "$bad"
        fails 64
        case $stderr in *"$bad"*) [ "$bad" = x ] || fail "the token was repeated" ;; esac
        unchanged
    done
}

@test "an empty token exits 64" {
    take "$key"
    try release "$key" ''
    fails 64
    DLOCK_TOKEN='' try release "$key"
    fails 64
    try release "$key" - </dev/null
    fails 64
    unchanged
}

@test "a malformed token on standard input exits 64" {
    take "$key"
    try release "$key" - <<<"${token}x"
    fails 64
    try release "$key" - < <(head -c 100000 /dev/zero)
    fails 64
    unchanged
}

@test "release without a token is a usage error" {
    take "$key"
    try release "$key"
    fails 64 TOKEN
    unchanged
}

@test "release without a key, or with too many operands, is a usage error" {
    try release
    fails 64
    try release "$key" "$OTHER_TOKEN" more
    fails 64 operand
}

@test "after a release the next client acquires the lock at once" {
    take "$key"
    dlock release "$key" "$token"
    try acquire "$key"
    succeeds
}

@test "a released token does not renew or release the lock of the next holder" {
    take "$key"
    local first=$token
    dlock release "$key" "$first"
    take "$key"
    try renew "$key" "$first"
    fails 1
    # A repeated request may report that the lock was released, which is true.
    try release "$key" "$first"
    [ "$status" -le 1 ] || fail "expected 0 or 1"
    unchanged
}

@test "a wrong token that is tried twice is refused twice" {
    take "$key"
    try release "$key" "$OTHER_TOKEN"
    fails 1 "held by another"
    try release "$key" "$OTHER_TOKEN"
    fails 1 "held by another"
    unchanged
}

@test "a repeated release exits 1: the token does not hold the lock" {
    take "$key"
    dlock release "$key" "$token"
    try release "$key" "$token"
    fails 1 expired
    is_free "$key"
}

@test "a release of a token that the server has never known leaves nothing there" {
    try release "$key" "$OTHER_TOKEN"
    fails 1
    [ "$(rcli a exists "$key" "{$key}:dlock")" = 0 ]
}

@test "a key of another type is not changed" {
    rcli a hset "$key" field value
    try release "$key" "$OTHER_TOKEN"
    fails 1
    [ "$(rcli a hget "$key" field)" = value ]
}

@test "releases at the same time: one of them frees the lock" {
    take "$key"
    for _ in {1..8}; do
        dlock release "$key" "$token" 3>&- || true &
    done
    wait
    is_free "$key"
}

@test "--json shows the outcome" {
    take "$key"
    try release --json "$key" "$OTHER_TOKEN"
    exits 1
    jq -e '.outcome == "held-by-another"' <<<"$output"
    local second
    second=$(dlock acquire --token "$token" "$key")
    try release --json "$key" "$second"
    succeeds
    jq -e '.outcome == "still-held"' <<<"$output"
    try release --json "$key" "$token"
    succeeds
    jq -e '.outcome == "released"' <<<"$output"
    try release --json "$key" "$token"
    exits 1
    jq -e '.outcome == "gone"' <<<"$output"
}
