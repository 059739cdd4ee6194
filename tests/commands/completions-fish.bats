#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# What fish offers behind dlock.

load ../lib/completions

@test "fish: make install puts the completions where fish looks, without XDG_DATA_DIRS" {
    prefix=()
    need in_fish
    # Below another prefix they stay there.
    grep -qx 'prefix = /usr/local' "${top_builddir:-$top_srcdir}/Makefile" || prefix=(prefix=/usr)
    attempt env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS make -s -C "${top_builddir:-$top_srcdir}" install-dist_fishcompDATA \
        "${prefix[@]}" DESTDIR="$PWD/root"
    exits 0
    env -i HOME="$PWD/nowhere" PATH="$PATH" fish -c 'printf "%s\n" $fish_complete_path' >looks
    while read -r folder; do
        [ ! -e "root$folder/dlock.fish" ] || return 0
    done <looks
    fail "fish looks in $(xargs <looks), not in $(find root -name dlock.fish)"
}

@test "fish: the commands" { offers_commands in_fish; }
@test "fish: the options of each command, as its help lists them" { offers_options in_fish; }
@test "fish: the values that the help names" { offers_values in_fish; }
@test "fish: the keys of the existing locks" { offers_keys in_fish; }
@test "fish: after KEY the completions of COMMAND" { offers_command in_fish; }
@test "fish: no keys and no errors if no node replies" { is_silent in_fish; }

@test "fish: the descriptions of commands and options" {
    need in_fish
    attempt fish --no-config -c 'set -p fish_complete_path $argv[1]; complete -C "dlock re"; complete -C "dlock run --max"' \
        -- "$completions/fish"
    succeeds
    [[ $output == *$'release\trelease KEY'*$'--max-run\tend COMMAND after DUR'* ]] || fail "expected what they mean"
}
