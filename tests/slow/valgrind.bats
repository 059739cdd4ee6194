#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# memcheck over the main paths of each command, on one node and on five: no read or write that is wrong, no byte used
# that was never set, and nothing at the end to which no pointer leads, in dlock and in the processes it forks.  Nothing is
# suppressed; "possibly lost" is not asked for, since hiredis keeps pointers that lead into a block, not to its start.
# Run by make check-valgrind.

load ../lib/redis

redis_servers='b c d e' tcp_servers=a
setup() {
    test_begin
    command -v valgrind >/dev/null || must_run 'valgrind is not installed'
    export DLOCK_NODE_TIMEOUT=60s DLOCK_TTL=1h # valgrind is slow
}

five() { DLOCK_NODES=$(for i in a b c d e; do node "$i"; done | paste -sd ' '); }

# The reports of a run are files of their own, one for each process.
valgrind_dlock() {
    timeout --foreground -k 2 120 valgrind -q --error-exitcode=99 --leak-check=full --show-leak-kinds=definite,indirect \
        --errors-for-leak-kinds=definite,indirect --num-callers=30 --log-file="$BATS_TEST_TMPDIR/valgrind.%p" "$DLOCK" "$@"
}

# check STATUS ARG...: dlock ARG... under valgrind, which must not complain; its status.
check() {
    attempt valgrind_dlock "${@:2}"
    is_clean
    exits "$1"
}

is_clean() {
    local file
    for file in "$BATS_TEST_TMPDIR"/valgrind.*; do
        [ ! -s "$file" ] || {
            cat "$file" >&2
            fail "valgrind complains"
        }
    done
}

main_paths() {
    check 0 acquire "$key"
    token=$output
    check 75 acquire "$key"
    check 0 renew "$key" "$token"
    check 0 status "$key"
    check 0 status --json
    check 0 release "$key" "$token"
    check 1 release "$key" "$token"
    check 3 run --report r.json "$key" -- sh -c 'exit 3'
    check 127 run "$key" -- "$PWD/nowhere"
    take "$key"
    check 0 break --force "$key"
}

# wait_behind_a_holder: acquire --wait, woken by a release.
wait_behind_a_holder() {
    take "$key"
    valgrind_dlock acquire --wait 60s "$key" >waiter.out 2>waiter.err &
    bg=$!
    wait_until "[ \"\$(rcli a zcard '{$key}:dlock:waiting')\" = 1 ]" 60
    dlock release "$key" "$token"
    wait $bg
    [ "$(wc -c <waiter.out)" -eq 23 ] || fail "$(cat waiter.err)"
    is_clean
}

@test "every command, one node" { main_paths; }
@test "every command, five nodes" {
    five
    main_paths
}
@test "waiting, one node" { wait_behind_a_holder; }
@test "waiting, five nodes" {
    five
    wait_behind_a_holder
}

@test "run, with a renewal by the thread" { check 0 run --ttl 9s --node-timeout 3s "$key" -- sh -c 'sleep 3.5'; }

@test "a lost lock" {
    check 76 run --ttl 9s --node-timeout 3s "$key" -- sh -c "'$REDIS_CLI' -s '$(server_dir a)/s' del $key; sleep 20"
}

@test "nodes that are down, a configuration file, a name, a usage error" {
    need_localhost
    DLOCK_NODES="$(node a) $PWD/nowhere-1 $PWD/nowhere-2"
    check 69 acquire "$key"
    printf 'ttl 60s\nnode localhost:%s\nlabel x\n' "$(port_of a)" >config
    unset DLOCK_NODES
    check 0 acquire --config config "$key"
    check 64 acquire --ttl x "$key"
    check 1 doctor -N "$(node a)"
}
