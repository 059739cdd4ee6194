# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2016,SC2154
#
# Shared by the tests of fences, beside quorum.bash: clients with wrong clocks, and long series of
# acquisitions.

# shellcheck source=tests/lib/quorum.bash disable=SC1091
. "${BASH_SOURCE[0]%/*}/quorum.bash"

setup_file() {
    start_servers
    clock_build
}

# clock_build: the library that makes a time of day wrong is in $CLOCK_LIBRARY, which is empty if it cannot be built.
# libfaketime would not do: it also changes the timers of the clock since boot, and a dlock whose timers fire too early
# takes all the time of a processor.
clock_build() {
    export CLOCK_LIBRARY=$BATS_FILE_TMPDIR/clock.so
    ${CC:-cc} -shared -fPIC -O1 -o "$CLOCK_LIBRARY" "${BASH_SOURCE[0]%/*}/../fault/clock.c" || CLOCK_LIBRARY=
}

# need_clock: skip the test if there is no such library.
need_clock() { [ -n "$CLOCK_LIBRARY" ] || must_run "there is no C compiler"; }

# clock_set FILE OFFSET: the time of day is wrong by this for those that were started with this FILE: +2h, -3y, 0.
clock_set() {
    local unit=3600
    [[ $2 != *y ]] || unit=31536000
    "$PYTHON" -c 'import struct, sys
with open(sys.argv[1], "r+b" if sys.argv[3] else "wb") as file:
    file.write(struct.pack("q", int(sys.argv[2]) * 1000000))' "$1" "$((${2%[hy]} * unit))" "$([ ! -e "$1" ] || echo 1)"
}

# with_clock FILE COMMAND...: run it with the time of day of FILE.  The clock since boot, by which leases are measured,
# stays correct, as on a host with a wrong date.
with_clock() { FAULT_CLOCK=$1 LD_PRELOAD=$CLOCK_LIBRARY "${@:2}"; }

# at OFFSET COMMAND...: run it with a time of day that is wrong by this.
at() {
    local file=$BATS_FILE_TMPDIR/clock.$1
    if [ "$1" = 0 ]; then
        "${@:2}"
        return
    fi
    [ -e "$file" ] || clock_set "$file" "$1"
    with_clock "$file" "${@:2}"
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
