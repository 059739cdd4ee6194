#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# Twenty contenders for one lock write down when they are inside, while dlock, the command and Redis
# are killed and stopped: at no time are there two.  See lib/history.py; slow/history.bats goes on for
# longer.

# shellcheck disable=SC2154
bats_require_minimum_version 1.5.0
load lib/redis

setup() { test_begin; }
teardown() { test_end; }

@test "holders that are killed and stopped, with Redis dead and hung, keep each other out" {
    attempt "$PYTHON" "$lib_dir/history.py" "$BATS_TEST_TMPDIR" 0
    exits 0
    [[ $output == *" attacks, "* ]]
}
