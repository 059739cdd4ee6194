#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# dlock release: gives a lock back, and only one's own.

load ../lib/redis

# unchanged: $key holds $token for about as long as before.
unchanged() {
    [ "$(rcli a get "$key")" = "$token" ] || fail "the lock was changed"
    [ "$(rcli a pttl "$key")" -gt 15000 ] || fail "the lease was changed"
}

# was_freed: the last release.
was_freed() {
    succeeds
    prints ''
    is_free "$key"
}

@test "release frees the lock and prints nothing, and the next client gets it at once" {
    take "$key"
    try release "$key" "$token"
    was_freed
    works acquire "$key"
}

@test "the token may come from DLOCK_TOKEN, or from standard input with and without a newline; an operand counts first" {
    take "$key"
    DLOCK_TOKEN=$token try release "$key"
    was_freed
    take "$key"
    try release "$key" - <<<"$token"
    was_freed
    take "$key"
    try release "$key" - < <(printf %s "$token")
    was_freed
    take "$key"
    DLOCK_TOKEN=$OTHER_TOKEN try release "$key" "$token"
    was_freed
}

@test "a wrong token changes nothing, exits 1 however often it is tried, and the message says that another holds the lock" {
    take "$key"
    for _ in 1 2; do
        refuses 1 "held by another" release "$key" "$OTHER_TOKEN"
        unchanged
    done
}

@test "a lock that was never acquired, of another client or of another type is not released, and nothing is left there" {
    refuses 1 '' release "$key" "$OTHER_TOKEN"
    [ "$(rcli a exists "$key" "{$key}:dlock")" = 0 ]
    rcli a set "$key" 0123456789abcdef px 30000
    refuses 1 "held by another" release "$key" "$OTHER_TOKEN"
    [ "$(rcli a get "$key")" = 0123456789abcdef ]
    rcli a del "$key"
    rcli a hset "$key" field value
    refuses 1 '' release "$key" "$OTHER_TOKEN"
    [ "$(rcli a hget "$key" field)" = value ]
}

@test "a malformed token changes nothing, exits 64 and is not shown" {
    take "$key" --ttl 10m
    for bad in x "${token}x" "${token%?}" "${token%?}+" "${token%?}/" "$token." "$token.$token$token" \
        "$token " " $token" "$token.a.b" "${token%?}ä" "secretsecretsecretsecretsecret"; do
        refuses 64 '' release "$key" "$bad"
        case $stderr in *"$bad"*) [ "$bad" = x ] || fail "the token was repeated" ;; esac
        unchanged
    done
    refuses 64 '' release "$key" - <<<"${token}x"
    refuses 64 '' release "$key" - < <(head -c 100000 /dev/zero)
    unchanged
}

@test "release without a token or key, with an empty token, or with too many operands, is a usage error" {
    take "$key"
    refuses 64 TOKEN release "$key"
    refuses 64 '' release "$key" ''
    DLOCK_TOKEN='' refuses 64 '' release "$key"
    refuses 64 '' release "$key" - </dev/null
    refuses 64 '' release
    refuses 64 operand release "$key" "$OTHER_TOKEN" more
    unchanged
}
