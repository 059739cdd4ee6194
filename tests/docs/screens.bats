#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# docs/screens.md shows what dlock prints on a terminal of 80 columns.

load ../lib/redis
load ../lib/screens

page=$top_srcdir/docs/screens.md

setup() {
    test_begin
    export TERM=dumb NO_COLOR=1 TZ=UTC LC_ALL=C.UTF-8
    rcli a flushall >/dev/null
}

# on_screen COMMAND...: run it on a terminal of 80 columns; what it prints is the file "printed".
on_screen() {
    attempt "$PYTHON" "$lib_dir/terminal.py" -- sh -c 'stty cols 80 rows 24; exec "$@"' sh "$@"
    tr -d '\r' <"$BATS_TEST_TMPDIR/attempt.out" | sed 's/\x1b\[K//g' >printed
    while IFS= read -r line; do [ ${#line} -le 80 ] || fail "wider than 80: $line"; done <printed
}

# same_screen LINE: the page shows under this line of input what was printed.  Numbers, and how wide they make columns,
# may differ.
same_screen() {
    awk -v line="    \$ $1" '/^[^ ]/ { shown = 0 } shown && /^    / { print substr($0, 5) } $0 == line { shown = 1 }' \
        "$page" >shown
    [ -s shown ] || fail "not in the page: $1"
    sed -i "s|$(node a)|redis.example.net:6379|g" printed
    sed -i -E 's/[0-9]+(\.[0-9]+)?([a-z]+[0-9]+)*(ms|[smhd])?\b/N/g; s/less than |(ahead of|behind)//g; s/ +/ /g; s/ $//' \
        shown printed
    diff -u shown printed >difference || fail "the page (-) and the screen (+): $(<difference)"
}

@test "the screen of status" {
    lock backup ops@web-01.example.net:4711 nightly 190
    lock deploy-production-eu-west-1-frontend ci@runner-7.example.net:902 'web 4.2' 8
    lock deploy-production-eu-west-2-frontend ci@runner-8.example.net:917 'web 4.2' 7
    lock import-orders-eu ops@web-02.example.net:31337 import-orders 3723
    on_screen "$DLOCK" status
    same_screen 'dlock status'
}

@test "the screen of status --all" {
    past backup 03:15:00 ran 0 254 0 ops@web-01.example.net:4711 nightly
    past backup 13:15:00 ran -15 3723 0 ops@web-01.example.net:9342 nightly
    past deploy-production-eu-west-1-frontend 09:30:00 released - 61 12500 ci@runner-7.example.net:731 'web 4.1'
    lock deploy-production-eu-west-1-frontend ci@runner-7.example.net:902 'web 4.2' 8
    past import-orders-eu 12:05:00 ran 0 130 0 ops@web-02.example.net:8015 import-orders
    past rotate-keys 11:00:00 lost - 17 0 ops@web-02.example.net:5120 rotate
    on_screen "$DLOCK" status --all
    same_screen 'dlock status --all'
}

@test "the screen of status --waiters" {
    waiter backup "$OTHER_TOKEN" ops@web-02.example.net:5120 nightly 95
    waiter backup "$THIRD_TOKEN" admin@bastion.example.net:7731 manual 12
    on_screen "$DLOCK" status --waiters backup
    same_screen 'dlock status --waiters backup'
}

@test "the screens of history and --max-age" {
    past backup 03:15:00 ran 0 254 0 ops@web-01.example.net:4711 nightly
    past backup 09:30:00 released - 61 12500 admin@bastion.example.net:7731 manual
    past backup 11:00:00 ran 3 17 0 ops@web-02.example.net:5120 nightly
    past backup 11:20:00 broken - 600 250 ops@web-01.example.net:6100 nightly admin@bastion.example.net:7802
    past backup 12:05:00 expired - 130 0 ops@web-02.example.net:8015 nightly
    past backup 13:15:00 ran -15 3723 0 ops@web-01.example.net:9342 nightly
    on_screen "$DLOCK" history backup
    same_screen 'dlock history backup'
    on_screen "$DLOCK" status --max-age 26h backup
    same_screen 'dlock status --max-age 26h backup'
}

@test "the line while dlock waits" {
    lock backup ops@web-01:4711 db 190
    attempt "$PYTHON" "$lib_dir/terminal.py" 'expect=waiting for' 'expect=waiting for' 'send=\x03' -- \
        sh -c 'stty cols 80 rows 24; exec "$@"' sh "$DLOCK" run --wait 10m backup -- true
    tr '\r' '\n' <"$BATS_TEST_TMPDIR/attempt.out" | sed 's/\x1b\[K//g' | grep -m 1 'waiting for' >printed
    same_screen 'dlock run --wait 10m backup -- nightly-backup'
}

@test "the screen of doctor" {
    export DLOCK_TTL=3s DLOCK_NODE_TIMEOUT=2s # a server must have been up for the one, and answer in a quarter of the other
    wait_until '[ "$(rcli a info server | sed -n "s/^uptime_in_seconds:\([0-9]*\).*/\1/p")" -ge 5 ]'
    on_screen "$DLOCK" doctor
    sed -i '/^  warn     reach /,/-> name a server/d; s/^ *proxy to one$//; /^$/d' printed # the page shows a server of the network
    same_screen 'dlock doctor'
}
