#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# A host that lacks memory, processes, threads or descriptors, or whose system calls fail.  One in
# four calls of each command fails here, of status each; tests/slow/refusals.bats lets all of them fail.

load ../lib/redis
load ../inject/inject

redis_servers='b c d e' tcp_servers=a

@test "acquire: whatever fails, the result is correct and nothing is left behind" {
    every_fault --step 4 acquire acquire-five config
}

@test "acquire over TCP, by a name: whatever fails, the result is correct and nothing is left behind" {
    need_localhost
    every_fault --step 4 acquire-tcp
}

@test "release and renew: whatever fails, the result is correct" {
    every_fault --step 4 release release-five renew renew-five
}

@test "status and break: whatever fails, the result is correct" {
    every_fault status
    every_fault --step 4 break
}
@test "run: whatever fails, COMMAND never runs unprotected" { every_fault --step 4 run run-report; }
@test "acquire --wait: whatever fails, the result is correct" { every_fault --step 6 wait; }

# without ERRNO CALL NTH ARG...: dlock ARG... where the NTH call of CALL and all others after it fail.
without() {
    head -c 44 /dev/zero >ledger
    attempt env INJECT_AS="$1" INJECT_CALLS="$2" INJECT_NTH="$3+" INJECT_LEDGER=ledger LD_PRELOAD="$INJECT" \
        "$DLOCK" "${@:4}"
}

EAGAIN=11
EMFILE=24
ENOMEM=12

@test "too many open files are an error of this host, not of the node" {
    if is_sanitized; then return; fi
    for command in "acquire $key" "release $key $OTHER_TOKEN" "renew $key $OTHER_TOKEN" "status $key"; do
        without $EMFILE socket 1 $command
        fails 71 'too many open files; raise its limit'
    done
    DLOCK_NODES="$(node a) $(node b) $(node c) $(node d) $(node e)"
    without $EMFILE socket 3 acquire "$key"
    # Slow nodes are not waited for if there can be no quorum.
    fails 71 '[0-2] of 5 nodes answered, 3 are needed.*too many open files; raise its limit'
    is_free "$key"
}

@test "acquire --keep that cannot wait for its keeper fails, and there is none; nor is a thread for a name" {
    if is_sanitized; then return; fi
    without $EMFILE signalfd 1 acquire --keep $$ "$key"
    exits 71
    [[ $stderr == *'dlock: cannot watch for signals: Too many open files'* ]] || fail 'expected why'
    wait_until "free '$key'"
    need_localhost
    without $EAGAIN pthread_create 1 acquire -N "localhost:$(port_of a)" "$key"
    fails 71 'this host cannot create a thread to resolve its name'
}

@test "no memory for a reply is an error of this host, not of the node" {
    if is_sanitized; then return; fi
    without $ENOMEM realloc 2 acquire "$key"
    fails 71 'out of memory'
}

@test "the message says if there would be no quorum anyway, because nodes are down" {
    if is_sanitized; then return; fi
    DLOCK_NODES="$PWD/nowhere-1 $PWD/nowhere-2 $PWD/nowhere-3 $(node a) $(node b)"
    without $EMFILE socket 5 acquire "$key"
    fails 69 '[01] of 5 nodes answered, 3 are needed.*there is no such socket.*too many open files'
}

@test "a report shows a lack of resources of this host as no quorum" {
    if is_sanitized; then return; fi
    without $EMFILE socket 1 run --report r.json "$key" true
    fails 71 'too many open files'
    [ "$(jq -r .outcome r.json)" = no-quorum ] || fail "$(cat r.json)"
}
