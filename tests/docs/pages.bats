#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# README and the other pages: their commands run, their claims have tests, and their links lead somewhere.

load ../lib/pages

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

@test "every command in the sh blocks of README runs, and does what README says" {
    done=0
    dlock_first
    rcli a flushall >/dev/null
    cut_blocks
    for block in block.*; do
        # The last line shows that the whole block was run.
        printf '\necho "end of %s"\n' "$block" >>"$block"
        yields 0 sh -eu "$block"
        [[ $output == *"end of $block"* ]] || fail "not run to its end: $block"
        # The only messages are refusals, which README shows on purpose.
        ! grep -v ': held by ' <<<"$stderr" | grep . || fail "unexpected words on standard error"
        done=$((done + 1))
        cat "$BATS_TEST_TMPDIR/attempt.out" >>shown
        cat "$BATS_TEST_TMPDIR/attempt.err" >>errors
    done
    [ "$done" -ge 4 ]
    [ "$done" -eq "$(grep -c '^```sh$' "$readme")" ] || fail "blocks that were not run"
    [ "$(grep -cx 'the backup runs' shown)" -eq 1 ]
    grep -qE '^migrating as holder [0-9]+$' shown
    grep -qx 'the migration failed with 3' shown
    [ "$(grep -cx 'refused with 75' shown)" -eq 2 ]
    [ "$(grep -cE '^maintenance +held .*disk replacement' shown)" -eq 2 ]
    grep '^{' shown | jq -e '.state == "held" and .label == "disk replacement"' >/dev/null
    grep -qx free shown
    # The skipped job prints nothing; two others print that they were refused.
    [ "$(wc -l <errors)" -eq 2 ]
    is_free deploy
    is_free maintenance
    is_held backup
}

@test "README starts a Redis before the recipes, where none runs" {
    inside=(unshare --net)
    [ "$(id -u)" -eq 0 ] || inside+=(--map-root-user)
    command -v redis-server redis-cli >/dev/null || must_run "there is no redis-server"
    "${inside[@]}" true 2>err || must_run "no network namespaces here: $(cat err)"
    dlock_first
    {
        echo "trap 'redis-cli shutdown nosave' EXIT"
        # It is ready a moment later; then the same line starts no other.
        printf '%s\nuntil redis-cli ping 2>/dev/null; do sleep 0.1; done\n' "$(grep 'redis-server --daemonize' "$readme")"
        printf '%s\n' "$(grep 'redis-server --daemonize' "$readme")" 'pgrep -cx redis-server --ns $$ --nslist net'
        awk '/^```/ { n++; next } n == 1' "$readme"
    } >job
    unset DLOCK_NODES
    yields 0 timeout -k 2 30 "${inside[@]}" "$PYTHON" "$lib_dir/dns.py" redis.test 127.0.0.1 sh -e job 3>&- 4>&-
    [[ $output == *PONG$'\n'PONG$'\n1\n'*'the backup runs'* ]] || fail "expected one server, and the recipe"
}

# ---------------------------------------------------------------- claims.tsv

# claimed PAGE: the statements of a page that tests/claims.tsv has tests for.
claimed() { awk -F '\t' -v page="$1" '$1 == page { print $2 }' "$top_srcdir/tests/claims.tsv" | sort -u; }

# rows FILE FROM CONDITION: the first cells of the table's rows that meet awk's condition, from a line that matches on.
rows() { awk -F ' *\\| *' "/$2/ { inside = 1 } inside && /^\\| / && ($3) { print \$2 }" "$top_srcdir/$1" | sort -u; }

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
    printf '%s\n' SECURITY.md docs/comparison.md docs/guarantees.md >known
    same known pages "pages that are checked here (-) and in claims.tsv (+)"
}

@test "each failure and each hazard in docs/guarantees.md has a test" {
    rows docs/guarantees.md '^## Failures' '$2 != "event" && $2 != "hazard"' >rows
    claimed docs/guarantees.md >claims
    [ "$(wc -l <rows)" -ge 37 ]
    same rows claims "rows of the tables (-) and claims.tsv (+)"
}

@test "each yes of dlock in docs/comparison.md has a test" {
    rows docs/comparison.md '^# ' '$3 == "yes"' >rows
    claimed docs/comparison.md >claims
    [ "$(wc -l <rows)" -ge 13 ]
    same rows claims "rows with yes (-) and claims.tsv (+)"
}

@test "each statement in bold in SECURITY.md has a test" {
    tr '\n' ' ' <"$top_srcdir/SECURITY.md" | sed 's/  */ /g' | grep -oE '\*\*[^*]+\*\*' | tr -d '*' | sort >bold
    claimed SECURITY.md >claims
    [ "$(wc -l <bold)" -ge 28 ]
    same bold claims "statements in bold (-) and claims.tsv (+)"
    # Each item under "It cannot" is a statement in bold.
    sed -n '/^It cannot:/,/^#/p' "$top_srcdir/SECURITY.md" | grep '^- ' >cannot
    ! grep -v '^- \*\*' cannot || fail "not in bold"
}

@test "the commands in docs/proof.md exist" {
    rows docs/proof.md '^# ' '1' >methods
    [ "$(wc -l <methods)" -ge 7 ]
    grep -oE '`make [a-z-]+' "$top_srcdir/docs/proof.md" | cut -d ' ' -f 2 | sort -u >targets
    [ "$(wc -l <targets)" -ge 5 ]
    while read -r name; do
        [ "$name" = check ] || grep -qE "^$name:" "$top_srcdir"/Makefile.am "$top_srcdir"/*/local.mk || fail "there is no make $name"
    done <targets
}

@test "make model, fuzz, dist-static and demo-zookeeper name the packages that they lack" {
    mkdir bin
    for tool in bash dirname nproc pkg-config rm sh uname; do ln -s "$(command -v "$tool")" bin/; done
    PATH=$PWD/bin yields 77 bash "$top_srcdir/tests/model/run"
    [ "$stderr" = 'spin is not installed; on Debian: apt install spin' ] || fail "expected the package"
    export top_srcdir
    PATH=$PWD/bin CLANG=clang yields 1 bash "$top_srcdir/tests/fuzz/run"
    [[ $stderr == *'on Debian: apt install clang libclang-rt-dev liblua5.1-0-dev' ]] || fail "expected the packages"
    # A compiler that finds some of the libraries.
    printf '#!/bin/sh\ncase " $* " in *" -lc "* | *" -lssl "*) ;; *) exit 1 ;; esac\n' >bin/cc
    rm bin/pkg-config
    printf '#!/bin/sh\necho -lssl -lz -lzstd -ldl\n' >bin/pkg-config
    chmod +x bin/cc bin/pkg-config
    PATH=$PWD/bin CC=cc yields 1 sh "$top_srcdir/build-aux/dist-static.sh" source 0
    [ "$stderr" = 'make dist-static needs static libraries; on Debian: apt install libhiredis-dev zlib1g-dev libzstd-dev' ] ||
        fail "expected the packages"
    ZOOKEEPER_JAR=/nowhere yields 1 "$top_srcdir/examples/demo.sh" zookeeper
    [[ $stderr == *'on Debian: apt install '*zookeeper* ]] || fail "expected the package"
}

@test "make check says why tests were skipped, and which packages would run them" {
    printf 'SKIP: tests/%s\n' 'a.bats 1 x # SKIP there is no vi' 'a.bats 2 y # SKIP fish is not installed' \
        'b.bats 1 z # SKIP no fish' 'b.bats 2 a - b # SKIP only root can become another user' \
        'c.bats 1 m # SKIP /usr/bin/python3 has no module yaml' 'd.bats - no tmux' >log
    printf 'ok 1 x\nPASS: tests/d.bats 1 x\n' >>log
    passes sh "$top_srcdir/build-aux/skipped.sh" log log
    prints 'Skipped: 12 tests.
     2  for lack of vim-tiny
     4  for lack of fish
     2  only root can become another user
     2  for lack of python3-yaml
     2  for lack of tmux
On Debian these packages run them: apt install vim-tiny fish python3-yaml tmux'
    sed -i /SKIP/d log
    passes sh "$top_srcdir/build-aux/skipped.sh" log
    prints ''
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
    passes sqlite3 -bail -cmd '.param init' -cmd ".read $top_srcdir/examples/stock.sql" :memory: <session
    prints $'10\nchanged by 5: 1\n105\nchanged by 5: 1\n105\nchanged by 7: 1\nchanged by 5: 0'
}

@test "the Chinese README has the sections, commands, tables and links of README" {
    chinese=$top_srcdir/README.zh-CN.md
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

@test "README is short, and shows the two commands, each on a line of its own" {
    [ "$(wc -l <"$readme")" -le 130 ]
    grep -qx '    ./bootstrap && make demo' "$readme"
    grep -qx '    ./bootstrap && make check' "$readme"
}

# anchors FILE: the names of its headings, as links have them.
anchors() { sed -nE 's/^#+ //p' "$1" | tr '[:upper:]' '[:lower:]' | sed 's/[^a-z0-9 -]//g; s/ /-/g'; }

@test "links lead to existing files and headings" {
    links=0
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

@test "the folders and files that DESIGN names exist" {
    grep -oE '`(src|tests|man|examples)/[A-Za-z0-9/._-]+`' "$top_srcdir/DESIGN.md" | tr -d '`' >names
    [ "$(wc -l <names)" -ge 5 ]
    while read -r name; do
        [ -e "$top_srcdir/$name" ] || fail "DESIGN.md names $name, which is not there"
    done <names
}
