#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# A few seconds of tests/fault: short scenarios in which holders, waiters, servers and the network between them fail, at
# times that a seed decides.  slow/faults.bats goes on for minutes, and shows that bugs are found.

load ../lib/redis

@test "the checker of tests/fault distinguishes good histories from bad ones" {
    yields 0 "$PYTHON" "$top_srcdir/tests/fault/test_checker.py"
}

@test "every mutant of tests/fault applies to the source and compiles" {
    yields 0 "$PYTHON" "$top_srcdir/tests/fault/mutants.py" check
    [[ $output =~ ^([1-9][0-9]+)" of "([0-9]+)" mutants apply and compile"$ && ${BASH_REMATCH[1]} -eq ${BASH_REMATCH[2]} ]]
}

@test "holders, waiters, nodes and the network fail for a while, and no promise is broken" {
    # As docs/proof.md has it: without DLOCK, in a tree where dlock was built.
    mkdir tree
    ln -s "$top_srcdir/tests" tree/tests
    ln -s "$DLOCK" tree/dlock
    yields 0 env -u DLOCK "$PYTHON" tree/tests/fault/fault --seeds 42,450,504 --theme mixed --seconds 3 --jobs 3
    [[ $output == *"3 scenarios in "* ]]
}

@test "the same for readers and writers" {
    yields 0 "$PYTHON" "$top_srcdir/tests/fault/fault" --seeds 42,450 --shared --theme mixed --seconds 3 --jobs 2
    [[ $output == *"2 scenarios in "* ]]
}

@test "the same for holders that are asked to end" {
    yields 0 "$PYTHON" "$top_srcdir/tests/fault/fault" --seeds 42,450 --asks --theme mixed --seconds 3 --jobs 2
    [[ $output == *"2 scenarios in "* ]]
}

@test "the same for contenders that take slots" {
    yields 0 "$PYTHON" "$top_srcdir/tests/fault/fault" --seeds 42,450 --slots 2 --theme mixed --seconds 3 --jobs 2
    [[ $output == *"2 scenarios in "* ]]
}
