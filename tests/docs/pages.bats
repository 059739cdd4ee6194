#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# The help, the manual page and README say the same as the program.

# shellcheck disable=SC2016,SC2030,SC2031,SC2094,SC2154
bats_require_minimum_version 1.5.0
load ../lib/redis

manual=$top_srcdir/man/dlock.1
readme=$top_srcdir/README.md
commands='run acquire renew release status history break doctor help'

setup_file() { redis_start a; }

# same FILE FILE WHAT: no difference between two lists, of which neither is empty.
same() {
    [ -s "$1" ] || fail "nothing found: $3"
    diff -u "$1" "$2" >difference || fail "$3: $(cat difference)"
}

# help_of_all: what every command's help says, in a row.
help_of_all() {
    local command
    for command in '' $commands; do
        # shellcheck disable=SC2086
        dlock $command --help all
    done
}

# dlock_first: the program under test is what PATH leads to.
dlock_first() {
    mkdir -p bin
    ln -s "$DLOCK" bin/dlock
    PATH=$PWD/bin:$PATH
}

# stub NAME...: commands of the user's that do nothing.
stub() {
    local name
    mkdir -p bin
    for name; do
        printf '#!/bin/sh\necho %s >>"%s"\n' "$name" "$PWD/stubs" >"bin/$name"
        chmod +x "bin/$name"
    done
}

# ------------------------------------------------------------------- options

# The options with letter and argument, "-t, --ttl DUR", from the help.
options_in_help() {
    help_of_all | sed -nE 's/^ {2,6}((-[A-Za-z], )?--[a-z-]+( [^ ]+)?).*/\1/p' | sort -u
}

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
    local command option
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
    local name
    sed -n '/^\.Sh ENVIRONMENT/,/^\.Sh FILES/p' "$manual" | grep -E '^\.(It )?Ev ' | grep -oE '[A-Z_]{2,}' >names
    [ "$(wc -l <names)" -ge 15 ]
    while read -r name; do
        grep -aq "$name" "$DLOCK" || fail "not in the program: $name"
    done <names
}

@test "the defaults in the help are in the manual" {
    local option default
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

statuses_in_help() {
    help_of_all | sed -nE '/^Exit status:/,/^$/s/^  ([0-9]+) .*/\1/p' | sort -nu
}

@test "the manual and the help show the same exit statuses" {
    statuses_in_help >help
    sed -n '/^\.Sh EXIT STATUS/,/^\.Sh SIGNALS/p' "$manual" | sed -nE 's/^\.It ([0-9]+)$/\1/p' | sort -n >manual
    same help manual "exit statuses in the help (-) and the manual (+)"
}

@test "README and the help show the same exit statuses" {
    statuses_in_help >help
    sed -nE 's/^\| ([0-9, ]+) \|.*/\1/p' "$readme" | tr ',' '\n' | tr -d ' ' | sort -n >readme
    same help readme "exit statuses in the help (-) and README (+)"
}

# -------------------------------------------------------------------- manual

@test "the manual passes mandoc -T lint" {
    command -v mandoc >/dev/null || must_run "there is no mandoc"
    mandoc -T lint -W warning "$manual"
}

@test "dlock-protocol(7) passes mandoc -T lint, and names the existing keys and fields" {
    local page=$top_srcdir/man/dlock-protocol.7
    mandoc -T lint -W warning "$page"
    take "$key"
    dlock break --force "$key"
    take "$key" --label backup
    dlock run --token "$token" --min-hold 1s "$key" -- true
    start run --wait 20s "$key" -- true
    wait_until '[ "$(rcli a exists "{$key}:dlock:waiting")" -eq 1 ]'
    rcli a keys "{$key}:dlock:*" | sed 's/.*:dlock//' >there
    dlock release "$key" "$token"
    finish
    exits 0
    rcli a hkeys "{$key}:dlock" | sort >facts
    sed -n '/^Its fields are/,/^\.El/p' "$page" | sed -n 's/^\.It Li //p' | sort >named
    same facts named "fields in Redis (-) and in the page (+)"
    # One is blocked on two further keys, which don't exist until something is pushed.
    printf '%s\n' :wake ':leave: Ns Ar NAME' >>there
    sort -o there there
    { echo :holds && sed -n 's/^\.It Li :/:/p' "$page"; } | sort >named
    grep -qx '\.Li :holds ;' "$page"
    same there named "keys in Redis (-) and in the page (+)"
    sed -n '/^\.Bl -tag -width release/,/^\.El/p' "$page" | sed -n 's/^\.It //p' | sort >named
    (cd "$top_srcdir/src/lua" && printf '%s\n' *.lua | sed 's/\.lua//' | sort) >there
    same there named "scripts (-) and in the page (+)"
}

@test "the examples of dlock-protocol(7) do what it says" {
    take backup --label nightly
    sed -n '/^\.Sh EXAMPLES/,/^\.Sh SEE/s/^\.Dl \$ redis-cli //p' "$top_srcdir/man/dlock-protocol.7" >examples
    [ "$(wc -l <examples)" -eq 3 ]
    sed -i "s|^|'$REDIS_CLI' -s '$(server_dir a)/s' |" examples
    attempt sh -eu examples
    succeeds
    [[ ${lines[0]} == backup && ${lines[1]} == *@*:* && ${lines[2]} == nightly && ${lines[4]} == 1 ]] ||
        fail "expected the lock, its facts, and that it was deleted"
    is_free backup
    held '{backup}:dlock'
}

@test "the table in the manual works with troff, too" {
    [ "$(head -n 1 "$manual")" = "'\\\" t" ]
    sed -n '/^\.TS/{n;p}' "$manual" | grep -qxE '(lw\([0-9]+n\) ?)+\.'
}

# literal SECTION: the commands that a section of the manual shows, without troff's escapes.
literal() {
    sed -n "/^\.S[hs] $1\$/,/^\.S[hs] /p" "$manual" | awk '
        /^\.Ed/ { block = 0 }
        block { print }
        /^\.Bd -literal/ { block = 1 }
        sub(/^\.Dl /, "") { print }
    ' | sed -E 's/\\-/-/g; s/\\&//g; s/\\e$/\\/; s/^\$ //'
}

@test "the examples of the manual run" {
    dlock_first
    stub nightly-backup migrate build publish import
    ln -s bin/{migrate,build,publish,import} .
    literal EXAMPLES | sed -E 's/^([0-9*,]+ ){5}//' >examples
    attempt sh -eu examples
    succeeds
    [[ $output == 'KEY '*$'\ndeploy  held '*$'\nimported' ]] || fail "expected the table and the last line"
    [ "$(tr '\n' ' ' <stubs)" = 'nightly-backup migrate build publish import ' ]
}

# manual_script: the script of several steps that the manual shows.
manual_script() {
    dlock_first
    literal EXAMPLES | sed -n '/^export DLOCK_TOKEN=$/,/^\.\/publish$/p' >script
    [ "$(wc -l <script)" -eq 9 ] || fail "not the script: $(cat script)"
    stub publish
    mv bin/publish .
}

# shells: those that are installed here.
shells() {
    local shell
    for shell in sh dash bash ksh mksh zsh yash; do
        if command -v "$shell" >/dev/null; then echo "$shell"; fi
    done
}

# script_in SHELL: the manual's script in the background, in a process group of its own.
script_in() {
    rm -f begun
    set -m
    "$1" script >out 2>&1 3>&- 4>&- &
    bg=$!
    set +m
}

# script_ends STATUS SHELL: it does with this status, and its lock is free.
script_ends() {
    status=0
    wait "$bg" || status=$?
    [ "$status" -eq "$1" ] || fail "$2: expected status $1, not $status: $(cat out)"
    # A shell that does not wait for acquire leaves it without a reader, and so it releases the lock itself.
    wait_until "free deploy" || fail "$2: expected the lock to be free: $(cat out)"
}

@test "the script in the manual releases the lock when it ends and when a step fails" {
    local shell
    manual_script
    for shell in $(shells); do
        printf '#!/bin/sh\n%s -s %s exists deploy >held\n' "$REDIS_CLI" "$(node a)" >build
        chmod +x build
        script_in "$shell"
        script_ends 0 "$shell"
        [ "$(cat held)" = 1 ]
        printf '#!/bin/sh\nexit 7\n' >build
        script_in "$shell"
        script_ends 7 "$shell"
    done
    [ "$(sort -u stubs)" = publish ]
}

@test "the script in the manual releases the lock when a signal ends it" {
    local shell signal
    manual_script
    printf '#!/bin/sh\n: >begun\nexec sleep 60\n' >build
    chmod +x build
    for shell in $(shells); do
        for signal in HUP/129 INT/130 TERM/143; do
            script_in "$shell"
            wait_until '[ -e begun ]'
            is_held deploy
            kill "-${signal%/*}" -- "-$bg"
            script_ends "${signal#*/}" "$shell, ${signal%/*}"
        done
    done
    [ ! -e stubs ]
}

@test "the script in the manual releases a lock that it gets after a signal" {
    local shell
    manual_script
    sed -i 's/ acquire / acquire --wait 30s /' script
    stub build
    mv bin/build .
    for shell in $(shells); do
        take deploy
        script_in "$shell"
        wait_until '[[ $(rcli a info clients) == *blocked_clients:1* ]]'
        kill -TERM "$bg"
        dlock release deploy "$token"
        script_ends 143 "$shell"
    done
    [ ! -e stubs ]
}

@test "the configuration in the manual is valid" {
    # This server has no password.
    literal FILES | sed "s|^node .*|node $(node a)|; /^password-file /d" >config
    [ "$(grep -c . config)" -ge 3 ]
    unset DLOCK_NODES
    try acquire --json --config config "$key"
    succeeds
    [ "$(jq .ttl_ms <<<"$output")" = 60000 ]
}

@test "the packages are of this version, and contain every manual page" {
    local version page
    version=$(dlock --version | sed -n 's/^dlock //p')
    grep -q "^dlock ($version-" "$top_srcdir/packaging/debian/changelog"
    grep -qx "Version: *$version" "$top_srcdir/packaging/dlock.spec"
    grep -qx "pkgver=$version" "$top_srcdir/packaging/APKBUILD"
    for page in "$top_srcdir"/man/*; do
        grep -q "man[17]/${page##*/}" "$top_srcdir/packaging/dlock.spec" || fail "not in the spec: $page"
    done
}

# -------------------------------------------------------------------- README

# Cut README's blocks of sh into files block.1, block.2 ...; fails where a fence has no end.
cut_blocks() {
    awk '
        /^```sh$/ && !inside { inside = 1; file = "block." ++n; next }
        /^```/ && !inside { print FILENAME ":" FNR ": a block that is not sh"; bad = 1; exit }
        /^```$/ { inside = 0; close(file); next }
        inside { print >file }
        END { exit bad || inside }
    ' "$readme"
}

@test "every command in the sh blocks of README runs" {
    local block done=0
    dlock_first
    rcli a flushall >/dev/null
    cut_blocks
    for block in block.*; do
        # To the last line, or it has not been run.
        printf '\necho "end of %s"\n' "$block" >>"$block"
        attempt sh -eu "$block"
        exits 0
        [[ $output == *"end of $block"* ]] || fail "not run to its end: $block"
        # What dlock says of its own is a refusal, which README shows on purpose.
        ! grep -v ': held by ' <<<"$stderr" | grep . || fail "unexpected words on standard error"
        done=$((done + 1))
    done
    [ "$done" -ge 4 ]
    [ "$done" -eq "$(grep -c '^```sh$' "$readme")" ] || fail "blocks that were not run"
}

@test "the commands of README do what README says" {
    dlock_first
    rcli a flushall >/dev/null
    cut_blocks
    for block in block.*; do
        sh -eu "$block" >>shown 2>>errors
    done
    [ "$(grep -cx 'the backup runs' shown)" -eq 1 ]
    grep -qE '^migrating as holder [0-9]+$' shown
    grep -qx 'the migration failed with 3' shown
    [ "$(grep -cx 'refused with 75' shown)" -eq 2 ]
    [ "$(grep -cE '^maintenance +held .*disk replacement' shown)" -eq 2 ]
    grep '^{' shown | jq -e '.state == "held" and .label == "disk replacement"' >/dev/null
    grep -qx free shown
    # The skipped job has said nothing; two were refused aloud.
    [ "$(wc -l <errors)" -eq 2 ]
    is_free deploy
    is_free maintenance
    is_held backup
}

# ---------------------------------------------------------------- claims.tsv

# claimed PAGE: the statements of a page that tests/claims.tsv has tests for.
claimed() {
    awk -F '\t' -v page="$1" '$1 == page { print $2 }' "$top_srcdir/tests/claims.tsv" | sort -u
}

# rows FILE FROM CONDITION: the first cells of the table's rows that meet awk's condition, from a line that matches on.
rows() {
    awk -F ' *\\| *' "/$2/ { inside = 1 } inside && /^\\| / && ($3) { print \$2 }" "$top_srcdir/$1" | sort -u
}

@test "claims.tsv: each line has a page, a statement and the title of an existing test" {
    find "$top_srcdir/tests" -name '*.bats' -exec sed -n 's/^@test "\(.*\)" {.*/\1/p' {} + | sort -u >there
    [ "$(wc -l <there)" -gt 500 ]
    ! awk -F '\t' 'NF != 3 || $1 == "" || $2 == "" || $3 == ""' "$top_srcdir/tests/claims.tsv" | grep . ||
        fail "not three columns"
    cut -f 3 "$top_srcdir/tests/claims.tsv" | sort -u >named
    [ "$(wc -l <named)" -gt 90 ]
    comm -23 named there >missing
    [ ! -s missing ] || fail "there is no test: $(cat missing)"
    cut -f 1 "$top_srcdir/tests/claims.tsv" | sort -u >pages
    printf '%s\n' DESIGN.md SECURITY.md docs/comparison.md docs/guarantees.md >known
    same known pages "pages that are checked here (-) and in claims.tsv (+)"
}

@test "each failure in docs/guarantees.md has a test" {
    rows docs/guarantees.md '^## Failures' '$2 != "event"' >rows
    claimed docs/guarantees.md >claims
    [ "$(wc -l <rows)" -ge 17 ]
    same rows claims "rows of the table (-) and claims.tsv (+)"
}

@test "each yes of dlock in docs/comparison.md has a test" {
    rows docs/comparison.md '^# ' '$3 == "yes"' >rows
    claimed docs/comparison.md >claims
    [ "$(wc -l <rows)" -ge 13 ]
    same rows claims "rows with yes (-) and claims.tsv (+)"
}

@test "each hazard in DESIGN.md has a test" {
    rows DESIGN.md '^## Hazards' '$2 != "hazard"' >rows
    claimed DESIGN.md >claims
    [ "$(wc -l <rows)" -ge 20 ]
    same rows claims "rows of the table (-) and claims.tsv (+)"
}

@test "each statement in bold in SECURITY.md has a test" {
    tr '\n' ' ' <"$top_srcdir/SECURITY.md" | sed 's/  */ /g' | grep -oE '\*\*[^*]+\*\*' | tr -d '*' | sort >bold
    claimed SECURITY.md >claims
    [ "$(wc -l <bold)" -ge 28 ]
    same bold claims "statements in bold (-) and claims.tsv (+)"
    # What cannot be done is a statement in bold.
    sed -n '/^It cannot:/,/^#/p' "$top_srcdir/SECURITY.md" | grep '^- ' >cannot
    ! grep -v '^- \*\*' cannot || fail "not in bold"
}

@test "the commands in docs/proof.md exist" {
    local name
    rows docs/proof.md '^# ' '1' >methods
    [ "$(wc -l <methods)" -ge 7 ]
    grep -oE '`make [a-z-]+' "$top_srcdir/docs/proof.md" | cut -d ' ' -f 2 | sort -u >targets
    [ "$(wc -l <targets)" -ge 5 ]
    while read -r name; do
        [ "$name" = check ] || grep -qE "^$name:" "$top_srcdir"/Makefile.am "$top_srcdir"/*/local.mk || fail "there is no make $name"
    done <targets
}

@test "the SQL statements in docs/guarantees.md do what it says" {
    command -v sqlite3 >/dev/null || must_run "there is no sqlite3"
    grep '^    UPDATE stock SET' "$top_srcdir/docs/guarantees.md" >statements
    [ "$(wc -l <statements)" -eq 2 ]
    for fence in 5 5 7 5; do
        echo "DELETE FROM temp.sqlite_parameters;"
        echo "INSERT INTO temp.sqlite_parameters VALUES (':item', 'apples'), (':fence', $fence), (':amount', 10$fence);"
        cat statements
        echo "SELECT 'changed by $fence: ' || changes();"
    done >session
    attempt sqlite3 -bail -cmd '.param init' -cmd ".read $top_srcdir/examples/stock.sql" :memory: <session
    succeeds
    prints $'10\nchanged by 5: 1\n105\nchanged by 5: 1\n105\nchanged by 7: 1\nchanged by 5: 0'
}

@test "the Chinese README has the sections, commands, tables and links of README" {
    local file chinese=$top_srcdir/README.zh-CN.md
    for file in "$readme" "$chinese"; do
        # Headings, code, the shape of tables, and where links lead; what is between is translated.
        awk '
            /^#+ / { print $1 }
            /^    / || inside { print }
            /^```/ { inside = !inside }
            /^\|/ { n = gsub(/\|/, "|"); yes = gsub(/\| (yes|是) /, ""); print "columns", n, "yes", yes }
        ' "$file" | sed 's/^ *#$//'
        grep -oE '\]\([^)]+\)' "$file" | grep -v '(README' | sort
    done >both
    head -n $(($(wc -l <both) / 2)) both >one
    tail -n $(($(wc -l <both) / 2)) both >two
    same one two "README.md (-) and README.zh-CN.md (+)"
}

@test "README shows the two commands, each on a line of its own" {
    grep -qx '    ./bootstrap && make demo' "$readme"
    grep -qx '    ./bootstrap && make check' "$readme"
}

# anchors FILE: the names of its headings, as links have them.
anchors() {
    sed -nE 's/^#+ //p' "$1" | tr '[:upper:]' '[:lower:]' | sed 's/[^a-z0-9 -]//g; s/ /-/g'
}

@test "links lead to existing files and headings" {
    local file folder path links=0
    for file in "$top_srcdir"/*.md "$top_srcdir"/docs/*.md "$top_srcdir"/bench/README.md "$top_srcdir"/tests/*/README.md; do
        folder=${file%/*}
        while IFS='#' read -r path anchor; do
            path=${path:+$folder/$path}
            [ -e "${path:-$file}" ] || fail "$file leads to $path, which is not there"
            [ -z "$anchor" ] || anchors "${path:-$file}" | grep -qx -- "$anchor" ||
                fail "$file leads to $anchor, which is no heading of ${path:-$file}"
            links=$((links + 1))
        done < <(grep -oE '\]\([^)]+\)' "$file" | grep -v '](https\?:' | sed 's/^](//; s/)$//')
    done
    [ "$links" -ge 50 ]
}

@test "README is short" {
    [ "$(wc -l <"$readme")" -le 130 ]
}

@test "the folders and files that DESIGN names exist" {
    local name
    grep -oE '`(src|tests|man|examples)/[A-Za-z0-9/._-]+`' "$top_srcdir/DESIGN.md" | tr -d '`' >names
    [ "$(wc -l <names)" -ge 5 ]
    while read -r name; do
        [ -e "$top_srcdir/$name" ] || fail "DESIGN.md names $name, which is not there"
    done <names
}
