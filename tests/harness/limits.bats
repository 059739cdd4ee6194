#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# What the limits of the benchmark are measured with is a lock, though one without safety: a limit that skips a part of
# the work would be too low.

load ../lib/redis

: "${BENCH_SPAWN:=${DLOCK%/*}/bench/spawn}"
least=${BENCH_SPAWN%/*}/least load=${BENCH_SPAWN%/*}/load

need_programs() { { [ -x "$least" ] && [ -x "$load" ]; } || must_run "no $least or $load; make bench builds them"; }

# background COMMAND...: its pid is $bg.
background() {
    "$@" </dev/null >/dev/null 2>&1 3>&- 4>&- &
    bg=$!
}

blocks() { rcli a info clients | grep -q "^blocked_clients:$1"; }

@test "limits: the least runs a command under a lock, and passes its status on" {
    need_programs
    for form in run wait hold; do
        yields 3 "$least" "$form" "$(node a)" "$key" 30000 sh -c '"$@"; exit 3' sh "$REDIS_CLI" -s "$(node a)" exists "$key"
        prints 1
        is_free "$key"
    done
    rcli a set "$key" other
    yields 69 "$least" run "$(node a)" "$key" 30000 touch ran
    [ ! -e ran ]
    [ "$(rcli a get "$key")" = other ]
}

@test "limits: the least wakes those that wait, one after the other" {
    need_programs
    mkfifo go
    background "$least" wait "$(node a)" "$key" 600000 sh -c 'touch held; read -r line <go'
    holder=$bg waiters=()
    wait_until '[ -e held ]'
    for i in 1 2 3; do
        background "$least" wait "$(node a)" "$key" 600000 sh -c 'mkdir inside && echo ran >>count; rmdir inside'
        waiters+=("$bg")
        wait_until "blocks $i"
    done
    [ ! -e count ]
    echo >go
    for pid in "$holder" "${waiters[@]}"; do
        wait_until "! alive $pid"
        wait "$pid"
    done
    [ "$(grep -c ran count)" -eq 3 ]
    is_free "$key"
}

@test "limits: the least that holds a lock renews its lease" {
    need_programs
    mkfifo go
    background "$least" hold "$(node a)" "$key" 9000 sh -c 'touch held; read -r line <go'
    holder=$bg
    wait_until '[ -e held ]'
    is_renewed "$key"
    echo >go
    wait_until "! alive $holder"
    wait "$holder"
    is_free "$key"
}

# fields FIELD...: of the metadata that the form "least" stores.
fields() { rcli a hmget '{job:0}:least' "$@" | tr '\n' ' '; }

@test "limits: the smallest scripts store what status needs" {
    need_programs
    passes "$load" pairs least "$(node a)" 2 20
    [ "$(fields owner label ttl node)" = "user@host:12345 true 30000 1 " ]
    # It was released, which the metadata tells for longer than the lease.
    read -r token gone since fence <<<"$(fields token gone since fence)"
    [ -n "$token" ] && [ "$token" = "$gone" ]
    [ "$since" -gt 0 ]
    [ "$(rcli a pttl '{job:0}:least')" -gt 30000 ]
    is_free job:0
    # The fence grows, even if the clock has stepped back.
    rcli a hset '{job:0}:least' fence $((fence + 3600000000))
    passes "$load" pairs least "$(node a)" 2 20
    [ "$(fields fence)" -gt $((fence + 3600000000)) ]
    passes "$load" pairs packed "$(node a)" 2 20
    [[ $(rcli a get '{job:0}:packed') =~ ^[0-9]+\ [0-9]+\ 30000\ 1\ [0-9]+\ 15\ user@host:12345\ true\ gone$ ]]
    [ "$(rcli a pttl '{job:0}:packed')" -gt 30000 ]
    passes "$load" pairs fence "$(node a)" 2 20
    [ "$(rcli a get '{job:0}:fence')" -gt 0 ]
    is_free job:0
}
