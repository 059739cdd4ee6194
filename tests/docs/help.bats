#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# The help, the manual and README have the same commands, options, variables and exit statuses.

load ../lib/pages

commands='run acquire renew release status history break doctor config help'

# help_of_all: the help of dlock and of every command.
help_of_all() {
    local command
    for command in '' $commands; do
        dlock $command --help all
    done
}

# ------------------------------------------------------------------- options

# The options with letter and argument, "-t, --ttl DUR", from the help.
options_in_help() { help_of_all | sed -nE 's/^ {2,6}((-[A-Za-z], )?--[a-z-]+( [^ ]+)?).*/\1/p' | sort -u; }

# The same from the manual, where they are the items of lists.
options_in_manual() {
    sed -nE '/^\.It Fl/{s/^\.It //;s/Fl Fl /--/;s/^Fl (.) , /-\1, /;s/ Op (Ar|Cm) (.*)/ [\2]/;s/ (Ar|Cm) / /;s/ \| /|/;p}' "$manual" | sort -u
}

@test "the manual and the help show the same options, letters and arguments" {
    options_in_help >help
    options_in_manual >manual
    same help manual "options in the help (-) and the manual (+)"
    [ "$(wc -l <help)" -ge 24 ]
}

@test "every option that the manual names exists" {
    grep -oE 'Fl Fl [a-z][a-z-]*' "$manual" | sed 's/Fl Fl /--/' | sort -u >named
    options_in_manual | grep -oE -- '--[a-z-]+' | sort -u >manual
    same named manual "options named (-) and explained (+)"
}

@test "every command accepts the options that its help shows" {
    DLOCK_NODES=$PWD/nowhere # which ends those that would go on
    for command in $commands; do
        for option in $(dlock "$command" --help all | sed -nE 's/^ {2,6}((-[A-Za-z]), )?(--[a-z-]+).*/\2 \3/p'); do
            try "$command" "$option"
            [[ $stderr != *"unknown"* && $stderr != *"not an option"* ]] || fail "refused: $command $option"
        done
    done
}

@test "the manual and the help name the same variables for options" {
    help_of_all | awk '
        /^ +(-[A-Za-z], )?--/ { match($0, /--[a-z-]+/); option = substr($0, RSTART, RLENGTH) }
        /environment: |\(DLOCK_[A-Z_]+\)/ { match($0, /DLOCK_[A-Z_]+/); print option, substr($0, RSTART, RLENGTH) }
    ' | sort -u >help
    awk '
        /^\.It / { option = ""; if (match($0, /Fl Fl [a-z-]+/)) option = "--" substr($0, RSTART + 6, RLENGTH - 6) }
        twin { print option, $2; twin = 0 }
        /^Environment:$/ { twin = 1 }
    ' "$manual" | sort -u >manual
    same help manual "twins in the help (-) and the manual (+)"
}

@test "every environment variable that the help names is in the manual" {
    help_of_all | grep -oE 'DLOCK_[A-Z_]*[A-Z]|REDISCLI_AUTH' | sort -u >help
    sed -n '/^\.Sh ENVIRONMENT/,/^\.Sh FILES/p' "$manual" | grep -oE 'DLOCK_[A-Z_]*[A-Z]|REDISCLI_AUTH' | sort -u >manual
    comm -23 help manual >missing
    [ ! -s missing ] || fail "not in the manual: $(cat missing)"
}

@test "the program knows every environment variable in the manual" {
    sed -n '/^\.Sh ENVIRONMENT/,/^\.Sh FILES/p' "$manual" | grep -E '^\.(It )?Ev ' | grep -oE '[A-Z_]{2,}' >names
    [ "$(wc -l <names)" -ge 15 ]
    while read -r name; do
        grep -aq "$name" "$DLOCK" || fail "not in the program: $name"
    done <names
}

@test "the defaults in the help are in the manual" {
    help_of_all | awk '
        /^ +(-[A-Za-z], )?--/ { match($0, /--[a-z-]+/); option = substr($0, RSTART + 2, RLENGTH - 2) }
        option != "" && /\([^()]+\)$/ { match($0, /\([^()]+\)$/); print option, substr($0, RSTART + 1, RLENGTH - 2) }
        /^$/ { option = "" }
    ' | sort -u >defaults
    [ "$(wc -l <defaults)" -ge 8 ]
    while read -r option default; do
        awk -v option="$option" '
            /^\.It / { inside = $0 ~ "Fl Fl " option "( |$)" }
            inside { sub(/^\.[A-Z][a-z] /, ""); print }
        ' "$manual" | grep -qF "$default" || fail "the manual says not of --$option: $default"
    done <defaults
}

# --------------------------------------------------- commands, exit statuses

@test "the manual and the help show the same commands" {
    dlock --help | sed -nE '/^Commands:/,/^$/s/^  ([a-z]+) .*/\1/p' | sort >help
    sed -n '/^\.Sh SYNOPSIS/,/^\.Sh DESC/p' "$manual" | sed -nE 's/^\.Cm ([a-z]+)$/\1/p' | sort >synopsis
    same help synopsis "commands in the help (-) and the synopsis (+)"
    sed -n '/^\.Sh DESC/,/^\.Ss Options/p' "$manual" | sed -nE 's/^\.It Cm ([a-z]+)( .*)?$/\1/p' | sort >manual
    same help manual "commands in the help (-) and the manual (+)"
    tr ' ' '\n' <<<"$commands" | sort >here
    same help here "commands in the help (-) and in this test (+)"
}

@test "the manual, README and the help show the same exit statuses" {
    help_of_all | sed -nE '/^Exit status:/,/^$/s/^  ([0-9]+) .*/\1/p' | sort -nu >help
    sed -n '/^\.Sh EXIT STATUS/,/^\.Sh SIGNALS/p' "$manual" | sed -nE 's/^\.It ([0-9]+)$/\1/p' | sort -n >manual
    same help manual "exit statuses in the help (-) and the manual (+)"
    sed -nE 's/^\| ([0-9, ]+) \|.*/\1/p' "$readme" | tr ',' '\n' | tr -d ' ' | sort -n >readme
    same help readme "exit statuses in the help (-) and README (+)"
}
