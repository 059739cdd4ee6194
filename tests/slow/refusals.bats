#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# Every call of every command fails once; see tests/harness/refusals.bats.

load ../lib/redis
load ../inject/inject

redis_servers='b c d e' tcp_servers=a

@test "acquire" { every_fault acquire acquire-five config; }
@test "acquire over TCP, by a name" {
    need_localhost
    every_fault acquire-tcp
}
@test "acquire --wait" { every_fault wait wait-five; }
@test "release" { every_fault release release-five; }
@test "renew" { every_fault renew renew-five; }
@test "status" { every_fault status status-five; }
@test "break" { every_fault break break-five; }
@test "run" { every_fault run run-five run-report; }
@test "run, with renewals" { every_fault run-renewing; }
