#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# The resources of examples/ that check fences: a holder that was stopped for longer than its lease is refused when it
# goes on.  Without the check the same holder does harm.

load ../lib/examples

# find_postgresql: its programs are in the folder $postgresql.
find_postgresql() {
    local initdb
    initdb=$(command -v initdb || printf '%s\n' /usr/lib/postgresql/*/bin/initdb | sort -V | tail -n 1)
    postgresql=$(dirname "$(realpath "$initdb")")
    [ -x "$postgresql/postgres" ] && command -v psql >/dev/null
}

# postgresql_start: a server on a unix socket in a folder of its own, which is PGHOST.
postgresql_start() {
    local as=() setup
    PGHOST=$(mktemp -d /tmp/dlock-test.XXXXXX)
    export PGHOST PGUSER=dlock PGDATABASE=postgres
    cd "$PGHOST" || return
    # It refuses to run as root.
    if [ "$(id -u)" -eq 0 ]; then
        chown nobody .
        as=(setpriv --reuid=nobody --regid="$(id -g nobody)" --clear-groups)
    fi
    setup=(--auth=trust --username=dlock --no-locale --encoding=UTF8 --no-sync --no-instructions)
    "${as[@]}" "$postgresql/initdb" -D "$PGHOST/data" "${setup[@]}" >"$PGHOST/initdb.log" 2>&1 ||
        fail "$(cat "$PGHOST/initdb.log")"
    spawn postgresql "${as[@]}" "$postgresql/postgres" -D "$PGHOST/data" -k "$PGHOST" -c listen_addresses= \
        -c fsync=off -c shared_buffers=16MB -c max_connections=10
    wait_until 'psql -X -c "SELECT 1" >/dev/null 2>&1' 30 || fail "$(cat "$(server_dir postgresql)/out")"
}

setup_file() {
    redis_start a
    if find_postgresql; then postgresql_start; fi
}

teardown_file() {
    if [ -n "${PGHOST-}" ]; then
        # Killed it would leave shared memory behind.
        kill -QUIT "$(server_pid postgresql)" && wait_until "! alive $(server_pid postgresql)"
        rm -rf "$PGHOST"
    fi
    redis_stop_all
}

setup() {
    begin_example
    export STORE=$PWD/store STOCK=$PWD/stock.db
    # A delivery of 5 that waits for "go" to be counted, then others of 3.
    printf '%s\n' '#!/bin/sh' 'mkdir first 2>/dev/null || exec echo 3' ': >counting' \
        'until [ -e go ]; do sleep 0.1; done' 'echo 5' >bin/count-delivery
    chmod +x bin/count-delivery
}

# stock KIND: ten apples, in the store $store.
stock() {
    store=$examples/fence-$1.sh
    case $1 in
        files)
            command -v flock >/dev/null || must_run "there is no flock"
            mkdir "$STORE"
            echo 10 | DLOCK_FENCE=0 "$store" write apples
            ;;
        sqlite)
            command -v sqlite3 >/dev/null || must_run "there is no sqlite3"
            sqlite3 "$STOCK" <"$examples/stock.sql"
            ;;
        postgresql)
            [ -n "${PGHOST-}" ] || must_run "there is no PostgreSQL"
            psql -X -q -c 'DROP TABLE IF EXISTS stock' 2>/dev/null
            psql -X -q <"$examples/stock.sql"
            ;;
    esac
}

# unfenced: replace $store by a copy without the check.
unfenced() {
    sed '/-le "\$fence"/d; s/ AND fence <= :*\$*fence//' "$store" >bin/unfenced
    chmod +x bin/unfenced
    ! cmp -s "$store" bin/unfenced || fail "nothing was left out of $store"
    ! grep -e '<= ' -e '-le ' bin/unfenced || fail "there still is a check"
    store=$PWD/bin/unfenced
}

# apples: how many there are, read without a fence.
apples() { DLOCK_FENCE=9007199254740991 "$store" read apples; }

# paused: a holder reads, its whole host is stopped until its lease is over and another has read and written, and it goes
# on before its dlock does.  That one would end the command in time, so it is told not to.
paused() {
    start_holding "$key" --ttl 3s --node-timeout 2s --on-lost warn "exec '$examples/fence-job.sh' '$store'"
    wait_until '[ -e counting ] || ! alive $bg'
    kill -STOP "$bg"
    kill -STOP -- "-$command_pid"
    works run --wait 20s "$key" -- "$examples/fence-job.sh" "$store"
    : >go
    kill -CONT -- "-$command_pid"
    wait_until "! alive $command_pid"
    kill -CONT "$bg"
    finish
}

# refused STORE, harmed STORE: what that holder does to a store with the check, and to one without.
refused() {
    stock "$1"
    paused
    [ "$status" -ne 0 ] || fail "expected it to fail"
    [[ $stderr == *"apples: fence "*" is stale"* ]] || fail "expected it to be refused"
    # A new run under the lock succeeds.
    rmdir first
    works run "$key" -- "$examples/fence-job.sh" "$store"
    [ "$(apples)" -eq 18 ] || fail "$(apples) apples"
}

harmed() {
    stock "$1"
    unfenced
    paused
    [[ $stderr != *stale* ]] || fail "expected it not to be refused"
    # The delivery of three is overwritten.
    [ "$(apples)" -eq 15 ] || fail "$(apples) apples"
}

# checks STORE: which fences it accepts.
checks() {
    local fence
    stock "$1"
    [ "$(DLOCK_FENCE=5 "$store" read apples)" -eq 10 ]
    echo 11 | DLOCK_FENCE=5 "$store" write apples
    echo 12 | DLOCK_FENCE=5 "$store" write apples
    # After a read with a fence, smaller fences can neither write nor read.
    [ "$(DLOCK_FENCE=7 "$store" read apples)" -eq 12 ]
    DLOCK_FENCE=5 attempt "$store" write apples <<<20
    stale
    DLOCK_FENCE=5 attempt "$store" read apples
    stale
    echo 13 | DLOCK_FENCE=7 "$store" write apples
    for fence in '' -1 x '8 OR 1=1' "8'"; do
        DLOCK_FENCE=$fence yields 1 "$store" write apples <<<20
        [[ $stderr == *"not a fence: '$fence'"* ]] || fail "expected it to say what is wrong"
    done
    DLOCK_FENCE=9 attempt "$store" read "pears' OR 1=1 --"
    [ "$status" -ne 0 ] || fail "expected it to fail"
    DLOCK_FENCE=9 yields 1 "$store" delete apples
    [ "$(DLOCK_FENCE=1795262658000000 "$store" read apples)" -eq 13 ]
}

stale() {
    exits 1
    [ -z "$output" ] || fail "expected no output"
    [[ $stderr == *"apples: fence 5 is stale"* ]] || fail "expected it to be stale"
}

@test "files: a fence that is less than one that has read or written is refused" { checks files; }
@test "files: a holder that was stopped is refused when it continues" { refused files; }
@test "files: without the check it overwrites what another has written" { harmed files; }
@test "SQLite: a fence that is less than one that has read or written is refused" { checks sqlite; }
@test "SQLite: a holder that was stopped is refused when it continues" { refused sqlite; }
@test "SQLite: without the check it overwrites what another has written" { harmed sqlite; }
@test "PostgreSQL: a fence that is less than one that has read or written is refused" { checks postgresql; }
@test "PostgreSQL: a holder that was stopped is refused when it continues" { refused postgresql; }
@test "PostgreSQL: without the check it overwrites what another has written" { harmed postgresql; }
