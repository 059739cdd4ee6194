#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# --shared: what the commands make of it, on one node.

# shellcheck disable=SC2016,SC2154
load ../lib/shared

node_count=1

@test "what does not go together with --shared: 64" {
    refuses 64 '--shared and --slots cannot be used together' run --shared --slots 2 "$key" -- true
    refuses 64 '--shared and --once-per cannot be used together' run --shared --once-per 1h "$key" -- true
    DLOCK_SHARED=1 refuses 64 '--shared and --slots' acquire --json --slots 2 "$key"
    refuses 64 '--shared is not an option of status' status --shared
}

@test "DLOCK_SHARED, or a line of the configuration, is --shared; 0 is not" {
    share
    DLOCK_SHARED=1 works run "$key" -- true
    DLOCK_SHARED=0 refuses 75 shared run "$key" -- true
    echo shared >config
    works run --config config "$key" -- true
}

@test "within a lock of either kind --shared enters it; a shared one does not become exclusive" {
    local kind sentence="^dlock: $key: this process holds it shared; it cannot become exclusive\$"
    for kind in '' --shared; do
        works run $kind "$key" -- sh -c '"$DLOCK" run --shared "$1" -- "$DLOCK" status --json "$1"' sh "$key"
        [ "$(jq .holds <<<"$output")" = 2 ]
    done
    refuses 64 "$sentence" run --shared "$key" -- "$DLOCK" run "$key" -- true
    refuses 64 "$sentence" run --shared "$key" -- "$DLOCK" acquire "$key"
    works run "$key" -- "$DLOCK" run "$key" -- true
    share
    refuses 64 "$sentence" run --token "$token" "$key" -- true
    refuses 64 "$sentence" acquire --token "$token" "$key"
    works acquire --shared --token "$token" "$key"
}

@test "a script that has left the readers, and still has its variables, is none of them any more" {
    share
    eval "$(dlock acquire --shared --export "$key")"
    works release "$key"
    writers_wait 1
    refuses 75 'shared by 1 reader, .*, and a writer waits' run --shared "$key" -- true
    refuses 75 'shared by 1 reader' run "$key" -- true
    gives 1 acquire --shared --token "$DLOCK_TOKEN" "$key"
    works release "$key" "$token"
    finishes 0
    works run "$key" -- true
}

@test "status: the state, the first owner, how many; JSON and metrics" {
    share --label first
    share
    status_is '.state == "shared" and .holders == 2 and .label == "first" and .nodes[0].state == "shared"'
    works status -o STATE,OWNER,HELD "$key"
    [[ ${lines[1]} =~ ^shared\ +[^\ ]+:[0-9]+\ \+1\ +[0-9.]+m?s$ ]] || fail 'expected one more'
    works status --prometheus "$key"
    [[ $output == *"dlock_shared{key=\"$key\"} 1"*"dlock_holders{key=\"$key\"} 2"* ]] || fail 'expected two readers'
    take other
    tells 0 '.state == "held" and .holders == 1' status --json other
}

@test "a refusal as JSON, the line of a wait, and status --waiters" {
    share
    writers_wait 1
    grep -q 'waiting; shared by 1 reader, the first was' "bg.$bg_count.err"
    readers_wait 1
    grep -q 'waiting, 1 before us; shared by 1 reader, the first was .*, and a writer waits' "bg.$bg_count.err"
    tells 75 '.outcome == "held" and .holder.state == "shared"' acquire --json --shared "$key"
    works status --json --waiters "$key"
    [ "${#lines[@]}" -eq 2 ]
}

@test "the history has one entry for a group, which its last reader ends" {
    local first
    share
    first=$token
    share
    works release "$key" "$first"
    works run --shared "$key" -- true
    history_is '.outcome == "held"'
    works release "$key" "$token"
    history_is '.outcome == "released"'
}

@test "break ends all readers, each at its next renewal" {
    start_holding "$key" --shared --ttl 3s 'sleep 60'
    first=$bg
    start_holding "$key" --shared --ttl 3s 'sleep 60'
    works break --force "$key"
    [[ $output == "$key: broken; it was shared by 2 readers, the first was "*"; its commands end within "* ]] || fail 'expected both'
    history_is '.outcome == "broken"'
    finishes 76 "$first"
    finishes 76 "$bg"
    works run "$key" -- true
}

@test "--keep, --export, --report and --min-hold of a reader" {
    share
    dlock acquire --shared --keep $$ "$key" >kept
    eval "$(dlock acquire --shared --export "$key")"
    has_holders 3
    works renew "$key"
    works release "$key"
    unset DLOCK_KEY DLOCK_TOKEN DLOCK_HOLDS DLOCK_FENCE DLOCK_TTL_MS
    works release "$key" "$(cat kept)"
    works run --shared --report report --min-hold 1h "$key" -- true
    [ "$(jq -r '.outcome, .key' report | paste -sd ' ')" = "ran $key" ]
    works release "$key" "$token"
    status_is '.state == "kept" and .kept_by == "min-hold"'
}

# ---------------------------------------------------------------- what the tests of Redisson's RReadWriteLock check

@test "the lease of a reader that died ends neither that of another, nor keeps a writer out any longer" {
    local long short
    share --ttl 60s
    long=$token
    share --ttl 500ms
    has_holders 1
    refuses 75 shared run "$key" -- true
    works renew "$key" "$long"
    works release "$key" "$long"
    works run "$key" -- true
    # The same where the first of the group dies.
    share --ttl 500ms
    short=$token
    share --ttl 60s
    has_holders 1
    try release "$key" "$short"
    refuses 75 shared run "$key" -- true
    works release "$key" "$token"
    works run "$key" -- true
}

@test "the release of a reader, also a second one, ends no hold of another" {
    local first
    share
    first=$token
    share
    works release "$key" "$first"
    gives 1 release "$key" "$first"
    gives 1 renew "$key" "$first"
    has_holders 1
    refuses 75 shared run "$key" -- true
    works release "$key" "$token"
    gives 1 release "$key" "$token"
    works run "$key" -- true
}
