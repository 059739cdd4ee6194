#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# A test that fails leaves no process behind, as one that succeeds.

# shellcheck disable=SC2016,SC2154
bats_require_minimum_version 1.5.0
load ../lib/redis

# bats calls teardown in a trap when a test has failed.
@test "a process is found to be alive in a trap, after a failure" {
    attempt bash -c '. "$1"; trap "alive \$\$ && echo alive" EXIT; false' bash "$lib_dir/process.bash"
    prints alive
}
