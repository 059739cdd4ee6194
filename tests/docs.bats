#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# The help, the manual page and README say the same as the program.

# shellcheck disable=SC2016,SC2030,SC2031,SC2094,SC2154
bats_require_minimum_version 1.5.0
load lib/redis

setup_file() { redis_start a; }
teardown_file() { redis_stop_all; }
setup() {
    test_begin
    manual=$top_srcdir/man/dlock.1
}
teardown() { test_end; }

commands='run acquire renew release status'

# Every long option that some command's help shows, one to a line.
options_in_help() {
    local command
    for command in $commands; do
        dlock "$command" --help
    done | grep -oE -- '--[a-z][a-z-]+' | sort -u
}

# The same of the manual page, where they are written "Fl Fl ttl".
options_in_manual() {
    grep -oE 'Fl Fl [a-z][a-z-]+' "$manual" | sed 's/^Fl Fl /--/' | sort -u
}

@test "every option in the help is in the manual" {
    options_in_help >help
    options_in_manual >manual
    [ "$(wc -l <help)" -gt 10 ]
    comm -23 help manual >missing
    [ ! -s missing ] || tell "not in the manual: $(cat missing)"
}

@test "every option in the manual is in the help" {
    {
        options_in_help
        dlock --help | grep -oE -- '--[a-z][a-z-]+'
    } | sort -u >help
    options_in_manual >manual
    comm -13 help manual >missing
    [ ! -s missing ] || tell "not in the help: $(cat missing)"
}

@test "every option in the help is taken, every one that is not is refused" {
    local command option
    for command in $commands; do
        for option in $(dlock "$command" --help | grep -oE -- '^ *(-[A-Za-z],? +)?--[a-z][a-z-]+' | grep -oE -- '--[a-z-]+'); do
            try "$command" "$option"
            [[ $stderr != *"unknown option"* && $stderr != *"unrecognized"* && $stderr != *"invalid option"* ]] ||
                tell "refused: $command $option"
        done
    done
}

# The variables of the command's environment are in the manual only.
@test "every environment variable in the help is in the manual, and the reverse" {
    local command
    for command in $commands; do
        dlock "$command" --help
    done | grep -oE 'DLOCK_[A-Z_]+' | sort -u >in-help
    grep -oE 'DLOCK_[A-Z_]+' "$manual" | grep -vxE 'DLOCK_(KEY|FENCE|TTL_MS)' | sort -u >in-manual
    diff in-help in-manual
}

@test "every exit status of the contract is in the manual" {
    local code
    for code in 64 69 70 71 75 76 77 78 124 126 127; do
        grep -qE "^\.It (Cm |Li |Sy |Ic )?$code" "$manual" || grep -qE "(^|[^0-9])$code([^0-9]|$)" "$manual" ||
            tell "not in the manual: $code"
    done
}

@test "every command is in the manual" {
    local command
    for command in $commands; do
        grep -qE "(Cm|Ic|Ar) $command" "$manual" || tell "not in the manual: $command"
    done
}

@test "the manual lints clean" {
    command -v mandoc >/dev/null || must_run "there is no mandoc"
    mandoc -T lint -W warning "$manual"
}
