#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# Who holds a lock, since when, and what has become of one: what refusals, JSON and the wait say.

load ../lib/redis
load ../lib/screens

me="$(id -un)@$(uname -n):[0-9]+"

@test "a refusal says since when the lock is held" {
    take "$key" --label backup
    try acquire "$key"
    fails 75 "^dlock: $key: held by $me \\(backup\\), [0-9.]+s of its lease left; held since $instant, for [0-9.]+m?s, from acquire$"
    start_holding "$key-2" 'exec sleep 60'
    try run "$key-2" -- touch begun
    fails 75 "held by $me \\(sh\\), [0-9.]+s of its lease left; held since $instant, for [0-9.]+m?s$"
}

# ---------------------------------------------------------------------- gone

@test "a lock released twice, deleted, expired, or the token of another key: gone" {
    gone='gone: it expired, was broken or was released$'
    take "$key"
    dlock release "$key" "$token"
    for command in release renew; do
        refuses 1 "^dlock: $key: $gone" "$command" "$key" "$token"
    done
    take "$key"
    rcli a del "$key"
    refuses 1 "$gone" release "$key" "$token"
    take_for 100 "$key"
    wait_until "free '$key'"
    refuses 1 "$gone" renew "$key" "$token"
    is_free "$key"
    take "$key-2"
    refuses 1 "$gone" release "$key" "$token"
    gives 1 release --json "$key" "$token"
    json_is '.outcome == "gone" and .holder == null and .broken_by == null and .broken_ms == null'
}

@test "a lock that another holds now: the message names the holder" {
    take "$key"
    old=$token
    dlock release "$key" "$token"
    take "$key" --label second
    for command in release renew; do
        try "$command" "$key" "$old"
        fails 1 "gone: it expired, was broken or was released; held by another: $me \\(second\\), .*; held since $instant"
        gives 1 "$command" --json "$key" "$old"
        json_is '.outcome == "held-by-another" and .holder.label == "second" and .holder.owner.user != null'
    done
    tells 1 '.ttl_ms == 0 and .valid_ms == 0' renew --json --ttl 20s "$key" "$old"
    [ "$(rcli a get "$key")" = "$token" ] || fail "the lock was changed"
}

@test "a lock that was broken names who broke it, and when" {
    take "$key"
    dlock break --force "$key" >/dev/null
    for command in release renew; do
        refuses 1 "gone: broken by $me at $instant, [0-9.]+m?s ago$" "$command" "$key" "$token"
    done
    gives 1 release --json "$key" "$token"
    json_is '.outcome == "broken" and .broken_by.user == "'"$(id -un)"'" and .broken_by.host == "'"$(uname -n)"'" and .broken_ms >= 0'
    json_is '.broken_by | keys == ["host", "pid", "user"]'
    # A further hold of it was broken, too.
    take "$key"
    inner=$(dlock acquire --token "$token" "$key")
    dlock break --force "$key" >/dev/null
    refuses 1 "gone: broken by $me at $instant" release "$key" "$inner"
    # The next lock of this name was not broken.
    take "$key"
    dlock release "$key" "$token"
    refuses 1 'gone: it expired' release "$key" "$token"
}

@test "a run whose lock is broken says who broke it" {
    start_holding "$key" --ttl 10s 'exec sleep 60'
    dlock break --force "$key" >/dev/null
    finish
    fails 76 "$key: the lock is lost: gone: broken by $me at $instant"
}

# ---------------------------------------------------------------------- kept

@test "a lock that --min-hold keeps is kept, and its command has ended" {
    works run --min-hold 60s "$key" -- sh -c :
    works status "$key"
    [[ ${lines[1]} =~ ^$key\ +kept\ +5 ]] || fail 'expected the state'
    status_is '.state == "kept" and .kept_by == "min-hold" and .ended_ms < 30000 and .nodes[0].state == "kept"'
    try acquire "$key"
    fails 75 "^dlock: $key: kept until ($instant) \\(--min-hold\\); sh on $(uname -n) ended [0-9.]+m?s ago$"
    tells 75 '.holder | .state == "kept" and .kept_by == "min-hold" and .ended_ms >= 0' acquire --json "$key"
    tells 75 '.holder | .state == "kept" and .kept_by == "min-hold" and .ended_ms >= 0' run --report - "$key" -- true
    start run --wait 60s "$key" -- true
    wait_until "grep -q 'waiting; kept until .* (--min-hold); sh on $(uname -n) ended' bg.$bg_count.err"
    kill -TERM "$bg"
}

@test "the next lock of that name is held, not kept" {
    try run --min-hold 60s "$key" -- true
    dlock break --force "$key" >/dev/null
    take "$key"
    status_is '.state == "held" and .ended_ms == null'
}

# ---------------------------------------------------------------------- JSON

fields='["client","ended_ms","fence","held_ms","kept_by","label","owner","state","ttl_ms"]'

@test "JSON of a refusal and the report say who holds the lock, with the same fields" {
    take "$key" --label deploy
    warns 75 held acquire --json "$key"
    json_is '.outcome == "held" and .key == "'"$key"'" and .holder.label == "deploy" and .holder.owner.pid > 1 and
        .holder.held_ms >= 0 and .holder.ttl_ms > 0 and .waited_ms >= 0'
    json_is "(.holder|keys) == $fields"
    tells 75 '.outcome == "held" and .holder.label == "deploy"' run --json --report report "$key" -- touch begun
    json_is "(.holder|keys) == $fields"
    jq -e '.holder.label == "deploy"' report
    tells 69 '.outcome == "no-quorum" and .holder == null' acquire --json -N "$PWD/nobody" "$key"
    tells 77 '.outcome == "denied"' acquire --json -N "unix://:wrong@$(node a)" "$key"
    tells 0 '.outcome == "acquired"' acquire --json "$key-2"
    tells 0 '.outcome == "ran" and .holder == null' run --json "$key-3" -- true
}

@test "the report of a lost lock says who holds it" {
    start_holding "$key" --ttl 10s --report report 'exec sleep 60'
    # In one step: between a break and an acquire, a renewal would find that nobody holds it.
    lock "$key" me@here:1 usurper 0
    finishes 76
    jq -e '.outcome == "lost" and .holder.label == "usurper"' report
}

# ---------------------------------------------------------------------- waiting

@test "without a terminal, --wait says when it begins, and when it has the lock" {
    take "$key" --label first
    start run --wait 60s "$key" -- echo mine
    wait_until "[ -s bg.$bg_count.err ]"
    dlock release "$key" "$token"
    finishes 0
    [[ ${stderr_lines[0]} =~ ^"dlock: $key: waiting; held by "$me ]] || fail 'expected the begin'
    [[ ${stderr_lines[0]} =~ \(first\).*"held since "$instant ]] || fail 'expected the holder'
    [[ ${stderr_lines[1]} =~ ^"dlock: $key: got it after "[0-9.]+m?s$ ]] || fail 'expected the end'
    [ "${#stderr_lines[@]}" -eq 2 ]
}

@test "-q silences the wait" {
    take "$key"
    stalls_note
    try acquire -q --wait 300ms "$key"
    if [ "$status" -eq 75 ]; then
        [ -z "$stderr" ] || fail 'expected silence'
    else
        waited_in_vain 75
    fi
    start run -q --wait 60s "$key" -- true
    wait_until '[ "$(rcli a zcard "{$key}:dlock:waiting")" = 1 ]'
    dlock release "$key" "$token"
    finishes 0
    [ -z "$stderr" ] || fail 'expected silence'
}
