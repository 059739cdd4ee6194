# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2016,SC2154
#
# Shared by the tests of fences, beside quorum.bash: clients with wrong clocks, and long series of
# acquisitions.
#
#   setup_file() { nodes_start 5; faketime_find; }

# shellcheck source=tests/lib/quorum.bash disable=SC1091
. "${BASH_SOURCE[0]%/*}/quorum.bash"

# faketime_find: the library is in $FAKETIME_LIBRARY, which is empty if there is none.
faketime_find() {
    local file
    export FAKETIME_LIBRARY=
    for file in /usr/lib*/faketime/libfaketime.so.1 /usr/lib/*/faketime/libfaketime.so.1; do
        [ ! -f "$file" ] || FAKETIME_LIBRARY=$file
    done
}

# need_faketime: skip the test if there is no libfaketime.  Under AddressSanitizer, which hangs before main together
# with it, all clocks are correct, and only the rest is tested.
need_faketime() {
    [ -n "$FAKETIME_LIBRARY" ] || must_run "there is no libfaketime"
    if grep -aq __asan_init "$DLOCK"; then FAKETIME_LIBRARY=; fi
}

# at OFFSET COMMAND...: run it with a wrong time of day, by +2h or -2h; 0 is correct.  The clock since boot, by which
# leases are measured, stays correct, as on a host with a wrong date.
at() {
    if [ "$1" = 0 ] || [ -z "$FAKETIME_LIBRARY" ]; then
        "${@:2}"
    else
        LD_PRELOAD=$FAKETIME_LIBRARY FAKETIME=$1 DONT_FAKE_MONOTONIC=1 "${@:2}"
    fi
}

# majorities_of_five: $majorities are all lists of n1 to n5 of which three exist.
majorities_of_five() {
    local away list i
    majorities=()
    for away in 12 13 14 15 23 24 25 34 35 45; do
        list=
        for i in 1 2 3 4 5; do
            if [[ $away == *$i* ]]; then list+=" $PWD/away-$i"; else list+=" $(node "n$i")"; fi
        done
        majorities+=("$list")
    done
}

# enter OFFSET: one acquisition.  The holder appends its fence to the file "entered".
enter() {
    at "$1" "$DLOCK" run -v "$key" -- sh -c 'echo "$DLOCK_FENCE" >>entered' </dev/null 2>>log ||
        fail "acquisition $(wc -l <entered) ended with $?: $(tail -n 8 log)"
}

# fences_increase COUNT: COUNT holders have entered, each with a greater fence than the one before.
fences_increase() {
    [ "$(wc -l <entered)" -eq "$1" ] || fail "$(wc -l <entered) entered"
    sort -nuc entered
    grep -qvE '^[0-9]{16}$' entered && fail "not of 16 digits: $(grep -vE '^[0-9]{16}$' entered | head -n 3)"
    echo "second rounds: $(grep -c 'raising the fence' log) in $1" >>"${FENCES_FIGURES:-/dev/null}"
}

# Three series of COUNT acquisitions.  Clients whose clocks are two hours ahead and two hours behind alternate with one
# whose clock is correct.  Each is a subshell without the trap of bats for each command, which takes as long as the
# rest.
clocks=(+2h 0 -2h 0 -2h +2h)

# rotate COUNT: each with a random majority of five nodes.
rotate() {
    majorities_of_five
    (
        trap - DEBUG
        for ((i = 0; i < $1; i++)); do
            DLOCK_NODES=${majorities[RANDOM % 10]} enter "${clocks[RANDOM % 6]}"
        done
    )
    fences_increase "$1"
}

# restart COUNT EVERY: the same, and after each EVERY acquisitions a node restarts empty.  All clocks are correct.
restart() {
    majorities_of_five
    (
        trap - DEBUG
        for ((i = 0; i < $1; i++)); do
            if [ $((i % $2)) -eq 0 ]; then
                name=n$((RANDOM % 5 + 1))
                redis_stop "$name"
                redis_start "$name"
            fi
            DLOCK_NODES=${majorities[RANDOM % 10]} enter 0
        done
    )
    fences_increase "$1"
}

# alone COUNT: on one node.
alone() {
    use 1
    (
        trap - DEBUG
        for ((i = 0; i < $1; i++)); do enter "${clocks[RANDOM % 6]}"; done
    )
    fences_increase "$1"
}
