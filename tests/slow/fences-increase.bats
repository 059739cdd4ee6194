#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# The long rows of acquisitions of tests/quorum/fences-increase.bats at full length: 10,000 each.

load ../lib/fences

@test "10,000 fences increase over rotating majorities, with one client two hours ahead and one two hours behind" {
    need_clock
    rotate 10000
}

@test "10,000 fences increase over rotating majorities, with nodes restarted empty and correct clocks" {
    restart 10000 100
}

@test "10,000 fences increase on one node, with one client two hours ahead and one two hours behind" {
    need_clock
    alone 10000
}
