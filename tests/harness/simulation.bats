#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# dlock's code and scripts in a simulated world, see sim/README.md: some seconds of it.  slow/simulation.bats
# goes on for longer, and tries all the mistakes that the simulation must find.

load ../lib/redis
load ../lib/sim

@test "a thousand schedules keep the rules" { keeps_rules 1-1000; }

@test "schedules that once found a bug keep the rules" {
    scenarios=$("$sim" --scenarios)
    for scenario in $scenarios; do
        yields 0 "$sim" --scenario "$scenario"
    done
}

@test "the same seed is the same schedule" {
    yields 0 "$sim" --seeds 7-9 --trace
    first=$output
    attempt "$sim" --seeds 7-9 --trace
    prints "$first"
}

@test "a schedule that breaks a rule is reduced, and printed step by step" {
    yields 1 "$sim" --seeds 1-100 --mutant set-without-nx --shrink
    [[ $output == "seed "*"the smallest schedule found that fails:"*"BROKEN: "* ]] || fail "no such story"
    [ "$(grep -c '' <<<"$output")" -lt 60 ] || fail "not short"
}

@test "some of the mutants are found" {
    catches half-a-majority 1000
    catches late-renewal 2000
    catches no-sending-again 2000
    catches no-undo 2000
    catches release-without-check 2000
    catches undo-without-check 2000
    catches handoff-twice 2000
    catches fence-not-written-back 2000
    catches fence-not-bounded 2000
    catches no-guard 10000
    catches shared-all-marked 2000
    catches shared-behind-nobody 2000
    catches shared-first-not-added 2000
    catches shared-nobody-invited 2000
    catches shared-set-says-ended late-entrance
}

@test "every mutant applies to the source" {
    for mutant in $("$sim" --mutants); do
        attempt "$sim" --seed 1 --mutant "$mutant"
        [ "$status" -le 1 ] || fail "not $mutant"
    done
}

@test "the simulated server replies as Redis does" { behaves_as_redis 2; }

@test "invalid options are refused" {
    for arguments in --seeds --seeds=9-1 --seed=x --jobs=0 --mutant=none --scenario=none --nonsense 1; do
        yields 64 "$sim" $arguments
    done
}
