#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# dlock acquire: takes a lock, prints its token.

load ../lib/redis

# fence ARG...: acquire and print the fence.
fence() { dlock acquire --json "$@" "$key" | jq -r '.fence|tostring'; }

@test "acquire prints the token, 22 characters of base64url, and a newline; it is all that the lock holds" {
    DLOCK_TOKEN=$OTHER_TOKEN dlock acquire "$key" >out # that alone does not make it enter a lock
    [ "$(wc -c <out)" -eq 23 ]
    grep -Eqx '[A-Za-z0-9_-]{22}' out
    ! grep -q "$OTHER_TOKEN" out || fail "it entered a lock"
    [ "$(rcli a type "$key")" = string ]
    [ "$(rcli a get "$key")" = "$(<out)" ]
    lasts 25000 30000
}

@test "the lease is as long as --ttl says, and then the next client gets the lock" {
    take "$key" --ttl 20s
    lasts 15000 20000
    dlock release "$key" "$token"
    take "$key" --ttl 3s
    wait_until "free '$key'"
    works acquire "$key"
}

@test "a lock that is held cannot be taken twice, nor changed by an attempt; one of another name can" {
    take "$key" --label holder
    rcli a hgetall "{$key}:dlock" >before
    refuses 75 "$key.*held" acquire --label contender "$key"
    [ "$(rcli a get "$key")" = "$token" ]
    rcli a hgetall "{$key}:dlock" | diff before -
    works acquire "$key-2"
}

@test "no token is used twice" {
    for i in {1..20}; do
        take "$key"
        echo "$token"
        dlock release "$key" "$token"
    done | sort | uniq -d >twice
    [ ! -s twice ]
}

@test "-E sets the exit status for a held lock, and changes no other" {
    take "$key"
    refuses 9 held acquire -E 9 "$key"
    refuses 200 held acquire --conflict-exit-code=200 "$key"
    refuses 0 held acquire -E 0 "$key"
    refuses 69 '' acquire -E 9 --node "$PWD/nobody" "$key"
    refuses 64 '' acquire -E 9 --ttl nonsense "$key"
}

@test "--json shows what was granted" {
    works acquire --json --ttl 20s "$key"
    [ "${#lines[@]}" -eq 1 ]
    json_is '.key == $key and .ttl_ms == 20000 and .valid_ms > 15000 and .valid_ms < 20000 and .nodes == 1 and .granted == 1'
    [ "$(jq -r .token <<<"$output")" = "$(rcli a get "$key")" ]
    [ "$(jq -r '.fence|tostring' <<<"$output")" = "$(rcli a hget "{$key}:dlock" fence)" ]
}

@test "--export can be evaluated by a shell, and is enough for release and for a child" {
    local DLOCK_KEY='' DLOCK_TOKEN='' DLOCK_FENCE=''
    key="a key's \"quotes\" \$HOME \`id\` $BATS_TEST_NUMBER"
    works acquire --export "$key"
    eval "$output"
    [ "$DLOCK_KEY" = "$key" ]
    [ "$DLOCK_TOKEN" = "$(rcli a get "$key")" ]
    [ "$DLOCK_FENCE" = "$(rcli a hget "{$key}:dlock" fence)" ]
    export DLOCK_TOKEN
    works release "$key"
    is_free "$key"
}

@test "each holder's fence is greater than the one before, also if that expired or came from a clock that was ahead" {
    before=0
    for i in {1..5}; do
        next=$(fence)
        [[ $next =~ ^[0-9]{1,16}$ ]]
        [ "$next" -gt "$before" ]
        before=$next
        dlock release "$key" "$(rcli a get "$key")"
    done
    before=$(fence --ttl 3s --node-timeout 2s)
    wait_until "free '$key'"
    [ "$(fence)" -gt "$before" ]
    dlock release "$key" "$(rcli a get "$key")"
    rcli a hset "{$key}:dlock" fence 4000000000000000
    [ "$(fence)" = 4000000000000001 ]
}

@test "the metadata of a lock is kept for an hour after it" {
    take "$key" --label 'nightly backup' --ttl 20s
    metadata=$(rcli a --json hgetall "{$key}:dlock")
    jq -e --arg token "$token" --arg user "$(id -un)" --arg host "$(uname -n)" '
        .token == $token and .label == "nightly backup" and .ttl == "20000" and
        (.since|test("^[0-9]+$")) and (.fence|test("^[0-9]+$")) and
        (.owner|contains($user)) and (.owner|contains($host))' <<<"$metadata"
    [ "$(rcli a pttl "{$key}:dlock")" -ge 3600000 ]
    # That of a key with a hash tag has the same slot.
    take "{group}$key"
    [ "$(rcli a exists "{group}$key:dlock")" = 1 ]
}

@test "--prefix is put before the key; DLOCK_PREFIX and DLOCK_LABEL set their options" {
    take "$key" --prefix app:
    [ "$(rcli a get "app:$key")" = "$token" ]
    is_free "$key"
    works release --prefix app: "$key" "$token"
    is_free "app:$key"
    DLOCK_PREFIX=app: DLOCK_LABEL=twin take "$key"
    is_held "app:$key"
    [ "$(rcli a hget "{app:$key}:dlock" label)" = twin ]
}

@test "only the lock, its metadata and its history are left in Redis" {
    redis_start alone
    DLOCK_NODES=$(node alone) take "$key"
    [ "$(rcli alone --raw keys '*' | sort | tr '\n' ' ')" = "$key {$key}:dlock {$key}:dlock:history " ]
    DLOCK_NODES=$(node alone) dlock release "$key" "$token"
    [ "$(rcli alone --raw keys '*' | sort | tr '\n' ' ')" = "{$key}:dlock {$key}:dlock:history " ]
    rcli alone flushall >/dev/null
    DLOCK_NODES=$(node alone) take "$key" --history 0
    DLOCK_NODES=$(node alone) dlock release "$key" "$token"
    [ "$(rcli alone --raw keys '*')" = "{$key}:dlock" ]
}

@test "acquire without a key, or with two, is a usage error" {
    refuses 64 '' acquire
    refuses 64 operand acquire "$key" more
}

@test "forty contenders at the same time: one of them gets the lock" {
    # The winner, too, may run only now and then.
    export DLOCK_NODE_TIMEOUT=10s
    for i in {1..40}; do
        (dlock acquire "$key" >"won.$i" 2>/dev/null 3>&- || true) &
    done
    wait
    [ "$(cat won.* | wc -l)" -eq 1 ]
    [ "$(cat won.*)" = "$(rcli a get "$key")" ]
}
