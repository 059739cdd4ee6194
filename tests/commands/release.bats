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

@test "the token of an expired lease exits 1, with the reason, and does not change the lock of the next holder" {
    take_for 100 "$key"
    first=$token
    wait_until "free '$key'"
    refuses 1 expired release "$key" "$token"
    is_free "$key"
    take "$key"
    refuses 1 "held by another" release "$key" "$first"
    unchanged
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
    take "$key"
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

@test "a released token exits 1, and does not renew or release the lock of the next holder" {
    take "$key"
    first=$token
    dlock release "$key" "$first"
    refuses 1 expired release "$key" "$first"
    is_free "$key"
    take "$key"
    refuses 1 '' renew "$key" "$first"
    # A repeated request may report that the lock was released, which is true.
    try release "$key" "$first"
    [ "$status" -le 1 ] || fail "expected 0 or 1"
    unchanged
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
    # outcome_is OUTCOME STATUS TOKEN
    outcome_is() {
        try release --json "$key" "$3"
        exits "$2"
        json_is ".outcome == \"$1\""
    }
    outcome_is held-by-another 1 "$OTHER_TOKEN"
    outcome_is still-held 0 "$(dlock acquire --token "$token" "$key")"
    outcome_is released 0 "$token"
    outcome_is gone 1 "$token"
}
