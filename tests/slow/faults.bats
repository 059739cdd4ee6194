#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# tests/fault for some minutes: fixed seeds in which dlock has to keep its promises, and dlocks with a bug each, which
# fixed seeds have to find.

# shellcheck disable=SC2030,SC2031,SC2154
bats_require_minimum_version 1.5.0
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

@test "a release that does not check the owner is found" { is_found release-any; }
@test "an expiry that is set by a second request is found" { is_found setnx-expire; }
@test "validity that is extended without a renewal is found" { is_found renew-late; }
@test "a rollback that omits silent nodes is found" { is_found no-undo; }
@test "a release that omits silent nodes is found" { is_found release-replied; }
@test "a fence that is not written back is found" { is_found fence-alone; }
@test "a quorum of fewer than half is found" { is_found minority; }
@test "a restart guard that does nothing is found" { is_found no-guard; }
@test "a command that continues without its dlock is found" { is_found unguarded; }
@test "a command that outlives its dlock is found" { is_found orphan; }
@test "an exit status that hides a loss is found" { is_found liar; }
@test "a request that is lost with an idle connection is found" { is_found closed; }
@test "a handoff token that is used twice is found" { is_found handoff-twice; }
