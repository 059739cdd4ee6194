#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# tests/fault for some minutes: fixed seeds in which dlock has to keep its promises, and dlocks with a bug each, which
# fixed seeds have to find.

load ../lib/redis
load ../lib/mutants

setup() {
    test_begin
    fault=$top_srcdir/tests/fault
}

@test "60 scenarios of all kinds break no promise" {
    attempt "$PYTHON" "$fault/fault" --seeds 1-60 --jobs 5
    echo "# ${output##*$'\n'}" >&3
    exits 0
}

@test "40 scenarios with slots break no promise" {
    yields 0 "$PYTHON" "$fault/fault" --seeds 1-20 --slots 2 --jobs 5
    yields 0 "$PYTHON" "$fault/fault" --seeds 21-40 --slots 3 --jobs 5
}

@test "40 scenarios of readers and writers break no promise" {
    yields 0 "$PYTHON" "$fault/fault" --seeds 1-40 --shared --jobs 5
    yields 0 "$PYTHON" "$fault/fault" --seeds 41-60 --shared --nodes 5 --theme nodes --jobs 5
}

@test "30 scenarios in which holders are asked to end break no promise" {
    yields 0 "$PYTHON" "$fault/fault" --seeds 1-20 --theme mixed --asks --jobs 5
    yields 0 "$PYTHON" "$fault/fault" --seeds 1-10 --theme network --asks --jobs 5
}

@test "mutant: a release that does not check the owner is found" { is_found release-any; }
@test "mutant: an expiry that is set by a second request is found" { is_found setnx-expire; }
@test "mutant: validity that is extended without a renewal is found" { is_found renew-late; }
@test "mutant: a rollback that omits silent nodes is found" { is_found no-undo; }
@test "mutant: a release that omits silent nodes is found" { is_found release-replied; }
@test "mutant: a fence that is not written back is found" { is_found fence-alone; }
@test "mutant: a quorum of fewer than half is found" { is_found minority; }
@test "mutant: a restart guard that does nothing is found" { is_found no-guard; }
@test "mutant: a command that continues without its dlock is found" { is_found unguarded; }
@test "mutant: a command that outlives its dlock is found" { is_found orphan; }
@test "mutant: an exit status that hides a loss is found" { is_found liar; }
@test "mutant: a request that is lost with an idle connection is found" { is_found closed; }
@test "mutant: a handoff token that is used twice is found" { is_found handoff-twice; }
@test "mutant: grants of different slots that are added up are found" { is_found slots-added; }
@test "mutant: a slot that has another number than its lock is found" { is_found slots-number; }
@test "mutant: a holder that is asked and frees its lock at once is found" { is_found asked-frees; }
@test "mutant: a --replace that takes the lock away is found" { is_found replace-breaks; }
@test "mutant: a reader that enters what is not shared is found" { is_found shared-enters-any; }
@test "mutant: a first reader that is not in the set is found" { is_found shared-first-not-added; }
@test "mutant: a reader that ends the lock of all is found" { is_found shared-ends-all; }
