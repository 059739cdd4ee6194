#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# Several locks at once: a run in a run, as dlock-slots(7) shows it.

load ../lib/redis

# both ARG...: a run of "$key-a" in which one of "$key-b" runs a command; ARG are options of both.
both() { "$DLOCK" run "$@" "$key-a" -- "$DLOCK" run "$@" "$key-b" -- "${command[@]}"; }

@test "both locks are held, under the label of the command, and both are free afterwards" {
    command=(sh -c 'dlock=$1 && "$dlock" status --json "$2-a" "$2-b"; exit 3' - "$DLOCK" "$key")
    yields 3 both
    [ "$(jq -rs 'map(.state + " " + .label) | join(",")' <<<"$output")" = 'held sh,held sh' ] || fail "other locks"
    is_free "$key-a"
    is_free "$key-b"
}

@test "the 75 of the inner one passes through, and the outer lock is free; -E tells which it was" {
    take "$key-b"
    command=(touch ran)
    attempt both
    fails 75 "$key-b: held by"
    is_free "$key-a"
    attempt "$DLOCK" run -E 81 "$key-a" -- "$DLOCK" run -E 82 "$key-b" -- touch ran
    fails 82 "$key-b: held by"
    take "$key-a"
    attempt "$DLOCK" run -E 81 "$key-a" -- "$DLOCK" run -E 82 "$key-b" -- touch ran
    fails 81 "$key-a: held by"
    [ ! -e ran ]
}

@test "a lock that is lost ends the command and frees the other" {
    for lost in a b; do
        rm -f begun
        start run --ttl 3s "$key-a" -- "$DLOCK" run --ttl 3s "$key-b" -- sh -c 'echo >begun; exec sleep 60'
        wait_until '[ -e begun ]'
        works break --force "$key-$lost"
        finishes 76
        is_free "$key-a"
        is_free "$key-b"
    done
}

@test "a kill of either dlock or of the command frees both" {
    for killed in outer inner command; do
        rm -f inner command
        start run --ttl 2s "$key-a" -- sh -c 'echo $$ >inner; exec "$0" "$@"' "$DLOCK" run --ttl 2s "$key-b" -- \
            sh -c 'echo $$ >command; exec sleep 60'
        echo "$bg" >outer
        wait_until '[ -s command ]'
        kill -KILL "$(cat "$killed")"
        wait_until "! alive $(cat command)"
        wait_until "free '$key-a' && free '$key-b'"
        finish "$bg"
    done
}

# worker N: some times a sorted choice of three keys; a line "COUNT +" or "COUNT -" for each lock that it enters or leaves.
worker() {
    local round i line keys
    for ((round = 0; round < rounds; round++)); do
        mapfile -t keys < <(printf '%s\n' "$key-x" "$key-y" "$key-z" | shuf -n $((RANDOM % 3 + 1)) | LC_ALL=C sort)
        line=()
        for i in "${keys[@]}"; do
            line+=("$DLOCK" run -q --wait 50s "$i" --)
        done
        "${line[@]}" sh -c 'for k; do mkdir "in.$k" || echo "$k" >>overlap; done; for k; do rmdir "in.$k"; done' - "${keys[@]}" ||
            echo "$?" >>failed
    done
}

@test "sorted choices of three keys by ten processes: no deadlock, no overlap, and nothing is left" {
    rounds=4
    pids=()
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        worker &
        pids+=($!)
    done
    for i in "${pids[@]}"; do wait "$i"; done
    [ ! -e overlap ] && [ ! -e failed ] || fail "$(cat overlap failed)"
    [ -z "$(rcli a keys "$key-?")" ]
}
