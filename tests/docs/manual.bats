#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# The manual pages: their form, and their examples, which are run.

load ../lib/pages

# stub NAME...: commands of the user's that do nothing.
stub() {
    local name
    mkdir -p bin
    for name; do
        printf '#!/bin/sh\necho %s >>"%s"\n' "$name" "$PWD/stubs" >"bin/$name"
        chmod +x "bin/$name"
    done
}

# -------------------------------------------------------------------- manual

@test "the manual passes mandoc -T lint" {
    command -v mandoc >/dev/null || must_run "there is no mandoc"
    mandoc -T lint -W warning "$manual" "$top_srcdir/man/dlock-nodes.7" "$top_srcdir/man/dlock-slots.7"
    [ "$(MANWIDTH=80 mandoc -T ascii "$manual" | wc -l)" -le 700 ] || fail "dlock(1) is too long"
}

@test "dlock-protocol(7) passes mandoc -T lint, and names the existing keys and fields" {
    page=$top_srcdir/man/dlock-protocol.7
    mandoc -T lint -W warning "$page"
    take "$key"
    dlock break --force "$key"
    take "$key" --label backup
    dlock run --token "$token" --min-hold 1s "$key" -- true
    start run --replace --wait 20s "$key" -- true
    wait_until '[ "$(rcli a exists "{$key}:dlock:waiting")" -eq 1 ]'
    rcli a keys "{$key}:dlock:*" | sed 's/.*:dlock//' >there
    dlock release "$key" "$token"
    finishes 0
    rcli a hkeys "{$key}:dlock" | sort >metadata
    sed -n '/^Its fields are/,/^\.El/p' "$page" | sed -n 's/^\.It Li //p' | sort >named
    same metadata named "fields in Redis (-) and in the page (+)"
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
    passes sh -eu examples
    [[ ${lines[0]} == backup && ${lines[1]} == *@*:* && ${lines[2]} == nightly && ${lines[4]} == 1 ]] ||
        fail "expected the lock, its metadata, and that it was deleted"
    is_free backup
    held '{backup}:dlock'
}

@test "the table in the manual works with troff, too" {
    [ "$(head -n 1 "$top_srcdir/man/dlock-nodes.7")" = "'\\\" t" ]
    sed -n '/^\.TS/{n;p}' "$top_srcdir/man/dlock-nodes.7" | grep -qxE '(lw\([0-9]+n\) ?)+\.'
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
    literal EXAMPLES | sed -E 's/^([0-9*,-]+ ){5}//' >examples
    passes sh -eu examples
    prints imported
    [ "$(tr '\n' ' ' <stubs)" = 'nightly-backup migrate build publish import ' ]
}

@test "the metrics in the manual contain the jobs that are free" {
    dlock_first
    literal EXAMPLES | sed -En 's/^([0-9*,-]+ ){5}(.*--prometheus)/\2/p' >example
    rcli a flushall >/dev/null
    dlock run backup -- true
    passes sh -eu example
    grep -q '^dlock_last_run_exit_status{key="backup"} 0$' locks.prom || fail "expected the last run: $(cat locks.prom)"
}

@test "the report in the manual tells the exit status of the command from those of dlock" {
    dlock_first
    literal EXAMPLES | sed -n '/^rm -f report.json$/,/^esac$/p' >example
    [ -s example ]
    for status_of in 0:imported 3:'the import failed' 75:'the import failed' 64:'the import failed'; do
        printf '#!/bin/sh\nexit %s\n' "${status_of%%:*}" >import
        chmod +x import
        attempt sh -u example
        prints "${status_of#*:}"
    done
    take import
    attempt sh -u example
    prints 'another host imports'
    # After a run that has left a report.
    dlock run --report report.json other -- true
    sed -i 's/run --report/run --no-such-option --report/' example
    attempt sh -u example
    prints 'not imported'
}

# manual_script: the script of several steps that the manual shows.
manual_script() {
    dlock_first
    literal EXAMPLES | sed -n '/^export DLOCK_TOKEN=$/,/^\.\/publish$/p' >script
    [ "$(wc -l <script)" -eq 9 ] || fail "not the script: $(cat script)"
    stub publish
    mv bin/publish .
}

# shells: the names of the installed shells.
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
    wait_until '[ -z "$(leftovers)" ]' || fail "$2: a process was left: $(cat out)"
    free deploy || fail "$2: expected the lock to be free: $(cat out)"
}

@test "the script in the manual releases the lock when it ends and when a step fails" {
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

# has_settled: the shell has seen the signal, and has ended or waits.
has_settled() { ! grep -qE '^(State:.*R|S[ih][gd]Pnd:.*[1-9a-f])' "/proc/$bg/status" 2>/dev/null; }

@test "the script in the manual releases a lock that it gets after a signal" {
    manual_script
    sed -i 's/ acquire / acquire --wait 30s /' script
    stub build
    mv bin/build .
    for shell in $(shells); do
        take deploy
        script_in "$shell"
        wait_until '[[ $(rcli a info clients) == *blocked_clients:1* ]]'
        kill -TERM "$bg"
        wait_until has_settled
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
    grants_for 60000 --config config "$key"
}

@test "the packages are of this version, and contain every manual page" {
    version=$(dlock --version | sed -n 's/^dlock //p')
    grep -q "^dlock ($version-" "$top_srcdir/packaging/debian/changelog"
    grep -qx "Version: *$version" "$top_srcdir/packaging/dlock.spec"
    grep -qx "pkgver=$version" "$top_srcdir/packaging/APKBUILD"
    for page in "$top_srcdir"/man/*; do
        grep -q "man[17]/${page##*/}" "$top_srcdir/packaging/dlock.spec" || fail "not in the spec: $page"
    done
}
