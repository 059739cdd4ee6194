#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# What tests/harness/simulation.bats does in seconds, for minutes: more schedules, and all mistakes.

load ../lib/redis
load ../lib/sim

@test "a hundred thousand schedules keep the rules" { keeps_rules 1-100000; }

@test "every mutant is found" {
    mutants=$("$sim" --mutants)
    for mutant in $mutants; do
        schedules=60000
        [ "$mutant" != shared-set-says-ended ] || schedules=late-entrance # too rare
        catches "$mutant" "$schedules"
    done
}

@test "the simulated server replies as Redis does" { behaves_as_redis 60; }
