#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# The model of the protocol (tests/model): the searches that make up "make model".

load ../lib/redis

@test "the models of the protocol hold, and fail without any one rule" {
    command -v spin >/dev/null || must_run 'spin is not installed'
    attempt "$top_srcdir/tests/model/run"
    echo "# ${output//$'\n'/$'\n'# }" >&3
    exits 0
}
