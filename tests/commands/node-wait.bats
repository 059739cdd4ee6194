#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# --node-wait: at the start, dlock waits for nodes that cannot be reached yet.

load ../lib/redis

# waits: dlock in the background has printed that it waits.
waits() { wait_until "grep -q -- '--node-wait' bg.$bg_count.err"; }

@test "a server that starts later gets the request" {
    start run --node "$(node late)" --node-wait 30s "$key" -- echo ran
    waits
    redis_start late
    finishes 0
    prints ran
    complains 'late/s: .*; waiting 30.0s \(--node-wait\)'
    free "$key" late
}

@test "two of three nodes are enough" {
    redis_start one
    start acquire --node "$(node one)" --node "$(node two)" --node "$(node three)" --node-wait 30s "$key"
    waits
    redis_start two
    finishes 0
    held "$key" one
    held "$key" two
}

@test "a server that loads its data is waited for" {
    redis_start full
    redis_fill full
    redis_stop full
    # It loads for as long as the test wants.
    redis_start full --key-load-delay 20000 --loading-process-events-interval-bytes 1024
    start run --node "$(node full)" --node-wait 20s "$key" -- echo ran
    waits
    rcli full config set key-load-delay 0
    finishes 0
    prints ran
    complains '(LOADING|loading)'
}

@test "a name that cannot be resolved is waited for" {
    within 10000 try run --node no-such-host.invalid:6379 --node-wait 700ms "$key" -- true
    at_least 700
    exits 69
    [ "${#stderr_lines[@]}" -eq 2 ]
    [[ ${stderr_lines[0]} == "dlock: $key: "*'; waiting 700ms (--node-wait)' ]]
    [[ ${stderr_lines[1]} != *--node-wait* ]]
}

@test "--quiet shows only the error" {
    refuses 69 'none/s' run -q --node "$(node none)" --node-wait 200ms "$key" -- true
}

@test "a login that is denied is not waited for, nor a lock that is held" {
    rcli a acl setuser jobs on '>right' '~*' '+@all'
    within 5000 refuses 77 'password' run --node "unix://jobs:wrong@$(node a)" --node-wait 30s "$key" -- true
    take "$key"
    within 5000 refuses 75 "$key.*held" run --node-wait 30s "$key" -- true
    within 3800 try run --node-wait 30s --wait 2s "$key" -- true # and not twice
    [ "$status" -eq 75 ] || waited_in_vain 75
}

@test "--wait counts from when the nodes can be reached" {
    redis_start late
    rcli late set "$key" "$OTHER_TOKEN" px 60000 >/dev/null
    stalls_note
    mv "$(node late)" "$(node late).away"
    start run --node "$(node late)" --node-wait 30s --wait 700ms "$key" -- true
    waits
    short_sleep 1
    alive "$bg"
    from=$(now_ms)
    mv "$(node late).away" "$(node late)"
    finish
    took_ms=$(($(now_ms) - from))
    at_least 600
    [ "$status" -eq 75 ] || waited_in_vain 75
}

@test "a signal ends the wait" {
    start run --node "$(node none)" --node-wait forever "$key" -- true
    waits
    terminate
    [[ $stderr == *'waiting until it can be reached'* ]]
}
