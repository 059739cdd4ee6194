#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# docs/screens.md shows what dlock prints on a terminal of 80 columns.

# shellcheck disable=SC2016,SC2030,SC2031,SC2154
bats_require_minimum_version 1.5.0
load ../lib/redis

page=$top_srcdir/docs/screens.md

setup_file() { redis_start a; }
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

# lock KEY OWNER LABEL SECONDS: a lock that has been held for so long.
lock() {
    rcli a set "$1" "$OTHER_TOKEN" px 24500 >/dev/null
    rcli a hset "{$1}:dlock" token "$OTHER_TOKEN" owner "$2" label "$3" since "$((($(date +%s) - $4) * 1000))" \
        ttl 30000 fence "$((($(date +%s) - $4) * 1000000 + 437211))" node 1 >/dev/null
}

# past END OUTCOME STATUS SECONDS WAITED_MS OWNER LABEL [BY]: an entry of the history of "backup"; END is a time of day.
past() {
    local end start token success
    success=$(date -d '2026-11-20 03:15:00' +%s)
    end=$(date -d "2026-11-20 $1" +%s)
    start=$((end - $4))
    token=$(printf '%022d' "$start")
    rcli a lpush '{backup}:dlock:history' \
        "$token ${end}000 $2 $3 ${success}000 - - ${start}000 $5 ${start}437211 ${#6} ${#7} $6$7${8-}" >/dev/null
}

@test "the screen of status" {
    lock backup ops@web-01.example.net:4711 nightly 190
    lock deploy-production ci@runner-7.example.net:902 'web 4.2' 8
    lock import-orders-eu ops@web-02.example.net:31337 import-orders 3723
    on_screen "$DLOCK" status
    same_screen 'dlock status'
}

@test "the screen of status --waiters" {
    local now
    now=$(date +%s)
    rcli a zadd '{backup}:dlock:waiting' "$((now + 15))000" \
        "AAAAAAAAAAAAAAAAAAAAAA $((now - 95))500 27 7 ops@web-02.example.net:5120nightly" "$((now + 15))000" \
        "BBBBBBBBBBBBBBBBBBBBBB $((now - 12))500 30 6 admin@bastion.example.net:7731manual" >/dev/null
    on_screen "$DLOCK" status --waiters backup
    same_screen 'dlock status --waiters backup'
}

@test "the screens of history and --max-age" {
    past 03:15:00 ran 0 254 0 ops@web-01.example.net:4711 nightly
    past 09:30:00 released - 61 12500 admin@bastion.example.net:7731 manual
    past 11:00:00 ran 3 17 0 ops@web-02.example.net:5120 nightly
    past 11:20:00 broken - 600 250 ops@web-01.example.net:6100 nightly admin@bastion.example.net:7802
    past 12:05:00 expired - 130 0 ops@web-02.example.net:8015 nightly
    past 13:15:00 ran -15 3723 0 ops@web-01.example.net:9342 nightly
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
    export DLOCK_TTL=3s # which a server must have been up for
    wait_until '[ "$(rcli a info server | sed -n "s/^uptime_in_seconds:\([0-9]*\).*/\1/p")" -ge 5 ]'
    on_screen "$DLOCK" doctor
    same_screen 'dlock doctor'
}
