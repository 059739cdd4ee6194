#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# The examples do what they say.

load ../lib/examples

# --------------------------------------------------------------------- demo.sh

# demo: run the demo with its own folder for temporary files.
demo() {
    mkdir -p tmp
    TMPDIR=$PWD/tmp attempt timeout --foreground 300 "$examples/demo.sh"
}

@test "the demo shows each promised result, whatever variables are set for dlock, and leaves nothing behind" {
    unset DLOCK
    DLOCK_PREFIX=p: DLOCK_TTL=10ms DLOCK_NODES=/nowhere DLOCK_PASSWORD=x demo
    ! grep -E '^(KEY|nightly|deploy) .{75}' <<<"$output" || fail 'a table is wider than 80 columns'
    succeeds
    [[ $output == *"All results are as promised." ]] || fail "expected the last line"
    [[ $output == *'$ dlock acquire deploy'*'[exit status 75]'* ]] || fail "expected a refusal"
    [ -z "$(ls tmp)" ]
    [ -z "$(leftovers)" ]
}

@test "the demo fails if a result is not the promised one" {
    # A dlock that grants a held lock.
    stub wrong 'case "$*" in' \
        '"acquire deploy") echo a-token ;;' \
        '*) exec '"'$DLOCK'"' "$@" ;;' \
        'esac'
    DLOCK=$PWD/bin/wrong demo
    exits 1
    [[ $stderr == "demo: expected exit status 75: "* ]] || fail "expected the reason"
    [ -z "$(ls tmp)" ]
    [ -z "$(leftovers)" ]
}

@test "the demo names what is missing" {
    DLOCK=$PWD/nothing demo
    exits 1
    [[ $stderr == "demo: there is no $PWD/nothing" ]] || fail "expected the missing program"
    REDIS_SERVER=false demo
    exits 1
    [[ $stderr == *"redis-server ended"* ]] || fail "expected the missing server"
    [ -z "$(ls tmp)" ]
}

# --------------------------------------------------------------------- crontab

# cron_line NAME: the command of the line that takes this lock.
cron_line() { grep -P '^[0-9*].*\t' "$examples/crontab" | cut -f 2 | grep -F " $1 "; }

# cron STATUS NAME: run it as cron does, with nothing but what the crontab sets.
cron() {
    yields "$1" env -i HOME="$HOME" LOGNAME=somebody SHELL=/bin/sh PATH="$PATH" DLOCK_NODES="$DLOCK_NODES" \
        TEST_MARK="$TEST_MARK" DLOCK_CONFIG=/dev/null sh -c "$(cron_line "$2")"
}

# cron_works NAME: the same, and it succeeds without a word.
cron_works() {
    cron 0 "$1"
    succeeds
}

@test "this file tests every line of the crontab" {
    [ "$(grep -P '^[0-9*].*\t' "$examples/crontab" | cut -f 2 | sed -E 's/.* ([a-z]+) -.*/\1/' | tr '\n' ' ')" = \
        'backup rates import update copy report ' ]
    # Each line that is neither a comment, nor a variable, nor empty.
    [ "$(grep -cvP '^#|^[A-Z_]+=|^$' "$examples/crontab")" = 6 ]
}

@test "crontab: the backup runs on one host and is skipped silently on the others" {
    stub nightly-backup 'echo x >>'"$PWD/runs"
    cron_works backup
    prints ''
    cron_works backup
    prints ''
    [ "$(wc -l <runs)" -eq 1 ]
    [ "$(rcli a pttl backup)" -gt 200000 ]
}

@test "crontab: a failing job and a missing server are not skipped silently" {
    rcli a del backup >/dev/null
    stub nightly-backup 'exit 3'
    cron 3 backup
    DLOCK_NODES=/nowhere/s cron 69 backup
    complains /nowhere/s
}

@test "crontab: the rates are fetched once, by the first host where that succeeds" {
    stub fetch-rates 'echo x >>'"$PWD/runs" '[ "$(wc -l <'"$PWD/runs"')" -gt 1 ]'
    cron 1 rates
    cron_works rates
    cron_works rates
    [ "$(wc -l <runs)" -eq 2 ]
}

@test "crontab: the import is skipped while the one before runs" {
    stub import-orders 'echo x >>'"$PWD/runs" 'until [ -e '"$PWD/finish"' ]; do sleep 0.2; done'
    set -m
    DLOCK_CONFIG=/dev/null sh -c "exec $(cron_line import)" </dev/null >out 2>&1 3>&- 4>&- &
    bg=$!
    set +m
    wait_until '[ -e runs ]'
    cron_works import
    touch finish
    wait "$bg"
    [ "$(wc -l <runs)" -eq 1 ]
    [ ! -s out ]
    is_free import
}

@test "crontab: the update waits for its turn" {
    stub update-this-host 'echo x >>'"$PWD/runs"
    take_for 1000 update
    cron_works update
    [ "$(wc -l <runs)" -eq 1 ]
}

@test "crontab: three hosts copy at a time, the fourth waits" {
    local runs=() i
    stub copy-to-store 'echo "$DLOCK_SLOT" >>'"$PWD/runs" 'until [ -e '"$PWD/finish"' ]; do sleep 0.2; done'
    for _ in 1 2 3 4; do
        cron 0 copy &
        runs+=($!)
    done
    wait_until '[ "$(wc -l 2>/dev/null <runs)" = 3 ] && status_is_waiting 1'
    [ "$(sort runs | tr -d "\n")" = 123 ]
    touch finish
    for i in "${runs[@]}"; do wait "$i"; done
    [ "$(wc -l <runs)" = 4 ]
}
# status_is_waiting N: so many wait for a slot of "copy".
status_is_waiting() { [ "$(dlock status --json --slots 3 copy | jq -s '.[0].waiting')" = "$1" ]; }

@test "crontab: the report is one line for the shell" {
    stub make-report 'echo figures'
    stub mail-to-all 'cat >'"$PWD/mail"
    cron_works report
    [ "$(cat mail)" = figures ]
}

# ------------------------------------------------------------------- deploy.sh

@test "deploy.sh holds the lock for all hosts and releases it; without a host it prints its usage" {
    yields 64 "$examples/deploy.sh"
    is_free deploy
    stub deploy-to 'echo "$1 $('"$REDIS_CLI"' -s '"$(node a)"' get deploy)"'
    passes "$examples/deploy.sh" one two three
    token=${lines[0]#one }
    [ ${#token} -eq 22 ] || fail "expected the token that holds the lock"
    prints "one $token"$'\n'"two $token"$'\n'"three $token"
    is_free deploy
}

@test "deploy.sh stops at a step that fails, with its status, and releases the lock" {
    stub deploy-to 'echo "$1"; [ "$1" != two ] || exit 7'
    yields 7 "$examples/deploy.sh" one two three
    prints $'one\ntwo'
    is_free deploy
}

@test "deploy.sh stops when its lock was lost" {
    stub deploy-to 'echo "$1"; '"$REDIS_CLI"' -s '"$(node a)"' set deploy other px 60000 >/dev/null'
    yields 1 "$examples/deploy.sh" one two
    prints one
    [ "$(rcli a get deploy)" = other ]
    rcli a del deploy >/dev/null
}

@test "deploy.sh: a deploy that does not get the lock does not change it" {
    stub deploy-to 'echo "$1"'
    take deploy
    sed 's/^wait=.*/wait=100ms/' "$examples/deploy.sh" >deploy.sh
    stalls_note
    attempt sh deploy.sh one
    waited_in_vain 75 deploy
    [ "$(rcli a get deploy)" = "$token" ]
    dlock release deploy "$token"
}

@test "deploy.sh: a signal ends it and the lock is released" {
    stub deploy-to 'echo begun >'"$PWD/begun"'; exec sleep 60'
    set -m
    sh "$examples/deploy.sh" one two >out 2>&1 3>&- 4>&- &
    bg=$!
    set +m
    wait_until '[ -e begun ]'
    kill -TERM -- "-$bg"
    waits_for 143 "$bg"
    is_free deploy
}

# ------------------------------------------------------------------------ slots

@test "test-device.sh: each run has a device of its own, and its exit status" {
    local runs=() i
    for _ in 1 2 3 4 5; do
        "$examples/test-device.sh" sh -c 'echo "$DEVICE" >>devices; until [ -e finish ]; do sleep 0.2; done' &
        runs+=($!)
    done
    wait_until '[ "$(wc -l 2>/dev/null <devices)" = 5 ]'
    [ "$(sort -u devices | tr '\n' ' ')" = "$(printf 'device%d.lab.example.net ' 1 2 3 4 5)" ]
    touch finish
    for i in "${runs[@]}"; do wait "$i"; done
    yields 3 "$examples/test-device.sh" sh -c 'exit 3'
    yields 64 "$examples/test-device.sh"
}

# restarts STATUS HOST: rolling-restart.sh there.
restarts() {
    stub uname "echo $2"
    yields "$1" "$examples/rolling-restart.sh" api
}

@test "newest-deploy.sh: the newest of three runs, when the one that ran has ended" {
    local pids=() version
    stub deploy 'mkdir '"$PWD/inside"' || exit' 'echo $1 >>'"$PWD/ran" \
        'trap "sleep 0.3; rmdir '"$PWD/inside"'; exit" TERM' 'until [ -e '"$PWD/finish"' ]; do sleep 0.2; done' \
        'rmdir '"$PWD/inside"
    for version in 1 2; do
        DLOCK_TTL=3s "$examples/newest-deploy.sh" $version 3>&- 4>&- &
        pids+=($!)
        wait_until "[ \"\$(tail -n 1 ran)\" = $version ]"
    done
    touch finish
    yields 0 "$examples/newest-deploy.sh" 3
    waits_for 76 "${pids[0]}"
    waits_for 0 "${pids[1]}"
    [ "$(tr '\n' ' ' <ran)" = '1 2 3 ' ]
    yields 64 "$examples/newest-deploy.sh"
}

@test "rolling-restart.sh: two hosts at a time; a failure stops those that come after it" {
    local runs=() i failed=0
    stub is-healthy 'true'
    stub uname 'echo host$PPID'
    stub restart 'echo x >>'"$PWD/restarts" 'until [ -e '"$PWD/finish"' ]; do sleep 0.2; done'
    for _ in 1 2 3; do
        "$examples/rolling-restart.sh" web >/dev/null 2>&1 &
        runs+=($!)
    done
    wait_until '[ "$(wc -l 2>/dev/null <restarts)" = 2 ]'
    wait_until '[ "$(dlock status --json --slots 2 web-restart | jq -s ".[0].waiting")" = 1 ]'
    stub is-healthy 'exit 4'
    touch finish
    for i in "${runs[@]}"; do
        wait "$i" || failed=$((failed + 1))
    done
    [ "$failed" = 3 ] || fail "$failed of 3 hosts failed"
    [ "$(wc -l <restarts)" = 2 ]
}

@test "rolling-restart.sh: the host that failed is named, and restarted after its repair, and then the others" {
    stub restart 'echo x >>'"$PWD/restarts"
    stub is-healthy 'exit 4'
    restarts 4 api1
    restarts 1 api2
    [[ $stderr == *api-restart/api1*'exit 4'* ]] || fail 'expected the host that failed'
    [ "$(wc -l <restarts)" = 1 ]
    DLOCK_NODES=/nowhere/s restarts 69 api2
    stub is-healthy 'true'
    restarts 0 api1
    restarts 0 api2
    succeeds
}

# --------------------------------------------------------------------- pinged.sh

# pings: what the dead-man's switch got.
pings() { cut -d / -f 4- <pinged 2>/dev/null | paste -sd ' '; }

@test "pinged.sh tells a start, a success and a failure, and passes the exit status through" {
    stub curl 'for url; do :; done' 'echo "$url" >>'"$PWD/pinged" 'exit 22' # a switch that fails hides nothing
    passes dlock run pinged -- "$examples/pinged.sh" https://hc.test/1 sh -c 'echo done'
    prints 'done'
    yields 3 dlock run pinged -- "$examples/pinged.sh" https://hc.test/2 sh -c 'exit 3'
    take pinged
    yields 75 dlock run pinged -- "$examples/pinged.sh" https://hc.test/3 true
    [ "$(pings)" = '1/start 1/0 2/start 2/3' ] || fail "pinged: $(pings)"
    yields 64 "$examples/pinged.sh" https://hc.test/4
}

@test "pinged.sh tells the end of a command that dlock ended" {
    stub curl 'for url; do :; done' 'echo "$url" >>'"$PWD/pinged"
    yields 124 dlock run --max-run 500ms ended -- "$examples/pinged.sh" https://hc.test/1 sleep 60
    [ "$(pings)" = '1/start 1/143' ] || fail "pinged: $(pings)"
}

# -------------------------------------------------------------------- alerts.yml

@test "alerts.yml: promtool accepts the rules, and dlock has each series that they name" {
    dlock run nightly/a -- true
    eval "$(sed -n 's/^# .* && \(dlock status .*\) >dlock.tmp.*/\1/p' "$examples/alerts.yml")" >metrics
    grep -o 'dlock_[a-z_]*' "$examples/alerts.yml" | sort -u >named
    [ "$(wc -l <named)" -ge 6 ]
    take nightly/a
    dlock status --prometheus nightly/a >>metrics
    grep -v '^#' metrics | grep -o '^[a-z_]*' | sort -u >there
    [ -z "$(comm -23 named there)" ] || fail "no such series: $(comm -23 named there)"
    command -v promtool >/dev/null || must_run 'there is no promtool'
    passes promtool check rules "$examples/alerts.yml"
}
