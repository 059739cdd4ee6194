#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# What bash offers behind dlock.

load ../lib/completions

@test "bash: the commands" { offers_commands in_bash; }
@test "bash: the options of each command, as its help lists them" { offers_options in_bash; }
@test "bash: the values that the help names" { offers_values in_bash; }
@test "bash: the keys of the existing locks" { offers_keys in_bash; }
@test "bash: after KEY the completions of COMMAND" { offers_command in_bash; }
@test "bash: no keys and no errors if no node replies" { is_silent in_bash; }
@test "bash: the options of a command after the cursor" { offers_options_before_command in_bash; }

@test "bash: with unusual settings of the user" {
    settings='set -u; set -o posix; shopt -s extglob nullglob failglob nocasematch; IFS=k'
    offers_keys in_bash
}

# ------------------------------------------------- bash with bash-completion

@test "bash with bash-completion: the keys of the existing locks" { offers_keys in_bash_with_package; }
@test "bash with bash-completion: after KEY the completions of COMMAND" { offers_command in_bash_with_package; }
