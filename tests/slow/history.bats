#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# What tests/history.bats does once, for three minutes: a new random order each time.

# shellcheck disable=SC2154
bats_require_minimum_version 1.5.0
load ../lib/redis

setup() { test_begin; }
teardown() { test_end; }

@test "holders that are attacked for three minutes keep each other out" {
    attempt "$PYTHON" "$lib_dir/history.py" "$BATS_TEST_TMPDIR" 180
    exits 0
    echo "# $output" >&3
}
