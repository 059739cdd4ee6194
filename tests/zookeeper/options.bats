#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# On ZooKeeper: locks that are kept after their command, or until a process ends; what is shown of waiters and of a break;
# and options that matter when servers are down.

load ../lib/zookeeper

setup_file() { zk_start --read-only; }
setup() {
    zk_begin
    # The node of the KEY stays as long as something is below it.
    zk_ask 1 create "$chroot/$key/stays" ''
}

# ---------------------------------------------------------------- locks that are kept

@test "--min-hold and --once-per keep the lock, and status names the option" {
    for option in min-hold once-per; do
        start=$(now_ms)
        works run --ttl 30s "--$option" 20s --label job "$key" -- sh -c 'echo "$DLOCK_TOKEN"; date +%s%3N >began'
        token=$output
        # The release waits until the leader knows of the session, 1.2 s after it was made.  This time counts.
        status_is ".state == \"kept\" and .kept_by == \"$option\" and .label == \"job\" and .ttl_ms > 0 and
            .ttl_ms + .ended_ms <= 18800 + $(<began) - $start"
        refuses 75 "kept until .* \(--$option\); job on .* ended" run "$key" -- true
        # Its token does not hold the lock any more.
        refuses 1 'gone' renew "$key" "$token"
        tells 1 '.outcome == "gone"' release --json "$key" "$token"
        status_is '.state == "kept" and .ended_ms > 0'
        works break --force "$key"
    done
}

@test "--once-per with --wait: one of three hosts runs the command, the others wait until it is done" {
    runs_once 8s 20s
    within 4000 refuses 75 'it is free in 1[0-9.]+s, dlock break' run --wait 8s "$key" -- true
}

@test "a waiter behind another gives up as soon as it sees that the lock is kept beyond its wait" {
    start_holding "$key" --ttl 30s --once-per 29s 'until [ -e stop ]; do sleep 0.2; done'
    start run --wait 10m "$key" -- true
    first=$bg
    queue_length_is 2
    start run --quiet --wait 25s "$key" -- touch ran
    queue_length_is 3
    requests_reset
    : >stop
    within 12000 finishes 75 "$bg"
    [ ! -e ran ] || fail "the command was started"
    # The first one learns it by its watch.
    [ "$(requests getData)" -le 6 ] || fail "$(requests getData) looks at the holder"
    queue_length_is 2
    terminate "$first"
}

@test "--once-per frees the lock of a command that failed, at once; longer than any lease: 64, before the command runs" {
    gives 3 run --once-per 25s "$key" -- sh -c 'exit 3'
    status_is '.state == "free"'
    refuses 64 'at most 30(\.0)?s, and 1h.* was asked for; use a shorter --min-hold or --once-per, or raise maxSessionTimeout' run --once-per 1h "$key" -- touch ran
    [ ! -e ran ] || fail "the command was started"
    status_is '.state == "free"'
}

@test "a kept lock whose reply is lost is kept for no longer" {
    DLOCK_NODE_TIMEOUT=1500ms
    zk rules cut:setData@1
    requests_reset
    works run --min-hold 10s "$key" -- true
    zk rules
    # The second time is on a connection that made the session as long as before.
    [ "$(requests setData)" -ge 2 ] || fail 'it is not shortened again'
    status_is '.state == "kept"'
    works run --wait 40s "$key" -- true
}

@test "--min-hold: another process enters the lock just before it is kept: its session stays as long as before" {
    start_holding "$key" --ttl 30s --min-hold 20s 'until [ -e stop ]; do sleep 0.2; done'
    token_of_command
    zk rules hold:connect
    requests_reset
    : >stop
    wait_until '[ "$(requests getData)" -ge 1 ]'
    inner=$(dlock acquire -N "zk://127.0.0.1:${zk_direct[0]}$chroot" --token "$token" "$key")
    zk rules
    finishes 0
    status_is '.ttl_ms > 20000 and .holds == 1'
    works renew "$key" "$inner"
}

@test "servers that are away for longer than the node timeout once they have kept the lock: it is kept nevertheless" {
    start_holding "$key" -v --ttl 30s --node-timeout 1s --once-per 25s 'until [ -e stop ]; do sleep 0.2; done'
    zk rules cut:setData@1 $(printf 'before:connect@%s ' {2..60})
    : >stop
    wait_until "[ \"\$(grep -c 'releasing the lock' bg.$bg_count.err)\" -ge 2 ]"
    zk rules
    finishes 0 "$bg" 40
    status_is '.state == "kept" and .kept_by == "once-per"'
}

@test "a lock that --min-hold keeps is free before its lease would have ended" {
    # Unless a server stalls meanwhile, and tells the leader late of the session as it was.
    for i in 1 2 3 4 5; do
        works run --ttl 30s --min-hold 3s "$key-$i" -- true
        try run --wait 15s "$key-$i" -- true
        [ "$status" -ne 0 ] || return 0
    done
    fail "they were kept for their leases"
}

# watch_process: a process, $watched.
watch_process() {
    sleep 600 3>&- 4>&- &
    watched=$!
    wait_for_exec "$watched"
}

@test "acquire --keep holds the lock until a process ends" {
    watch_process
    works acquire --keep "$watched" --ttl 5s "$key"
    token=$output
    status_is ".state == \"held\" and .owner.pid == $watched"
    # It is held for longer than its lease.
    requests_reset
    wait_until '[ "$(requests setData)" -ge 4 ]' 30
    status_is '.state == "held"'
    kill "$watched"
    wait_until '[[ $(dlock status --json "$key") == *\"state\":\"free\",* ]]' 30
}

@test "acquire --keep: a release ends the keeper, and the process goes on; it ends if the lock is broken" {
    watch_process
    take "$key" --keep "$watched"
    works release "$key" "$token"
    [ -z "$(keepers)" ] || fail "the keeper goes on"
    alive "$watched" || fail "the process has ended"
    status_is '.state == "free"'
    works acquire --keep "$watched" "$key"
    works break --force "$key"
    wait_until "! alive $watched" 30 || fail "it lives"
    waits_for 143 "$watched"
}

# ---------------------------------------------------------------- who broke it

@test "renew, release and run report who broke the lock, and when" {
    by="$(id -un)@$(uname -n):[0-9]+"
    take "$key"
    works break --force "$key"
    warns 1 "$key: gone: broken by $by at $instant, [0-9.]+m?s ago" renew --json "$key" "$token"
    jq -e --arg user "$(id -un)" '.outcome == "broken" and .broken_by.user == $user' <<<"$output" || fail "expected who"
    refuses 1 "gone: broken by $by" release "$key" "$token"
    start_holding "$key" 'sleep 60'
    works break --force "$key"
    finishes 76
    complains "broken by $by"
    # Only commands about that lock report the break.
    take "$key"
    works release "$key" "$token"
    refuses 1 'gone: it expired, was broken or was released' release "$key" "$token"
}

@test "a lease counts from the request, however late the reply is" {
    zk rules late:connect=2
    tells 0 '.valid_ms > 0 and .valid_ms <= 18000' acquire --json --node-timeout 8s "$key"
    token=$(jq -r .token <<<"$output")
    tells 0 '.valid_ms > 0 and .valid_ms <= 18000' renew --json --node-timeout 8s "$key" "$token"
    zk rules
    take "$key-short" --ttl 1s
    zk rules late:setData=1.5
    refuses 69 'granted too late' acquire --token "$token" --node-timeout 8s "$key-short"
    zk rules late:multi@1=1.6 late:setData=3.2
    refuses 69 'granted too late' acquire --ttl 3s --node-timeout 8s "$key-late"
}

@test "release: a lock whose other nodes were removed by hand is free" {
    take "$key"
    names=$(zk_ask 1 children "$chroot/$key" | grep -v -e -lock- -e stays)
    [ -n "$names" ]
    for name in $names; do zk_ask 1 delete "$chroot/$key/$name"; done
    works release "$key" "$token"
    [ -z "$(entries "$key")" ] || fail "it is held until its lease ends"
}

@test "the data of a node that is not dlock's is not changed" {
    zk_ask 1 create "$chroot/other" 'precious'
    take other
    works break --force other
    [ "$(zk_ask 1 get "$chroot/other")" = precious ] || fail "overwritten"
    refuses 1 'gone: it expired, was broken or was released' renew other "$token"
}

# ---------------------------------------------------------------- waiters, history

@test "status --waiters shows who waits, in order, and only as long as they wait" {
    gives 1 status --waiters "$key"
    prints ''
    start_holding "$key" 'while [ ! -e stop ]; do sleep 0.2; done'
    two_waiters
    zk_ask 1 create "$chroot/$key/_c_00112233445566778899aabbccddeeff-lock-2000000000" 'somebody'
    grep -q 'waiting, 1 before us; held by' bg.*.err || fail "$(cat bg.*.err)"
    within 5000 refuses 75 '2 wait already .--max-waiters 1.; held by' run --wait 60s --max-waiters 1 "$key" -- true
    refuses 75 ': held by' run --max-waiters 1 "$key" -- true
    two_are_listed '(go-zookeeper) null'
    the_second_leaves 2
    terminate "${waiter[0]}"
    : >stop
}

@test "ZooKeeper keeps no history: 64 for what needs one, and --history changes nothing" {
    refuses 64 'ZooKeeper keeps no history' history "$key"
    refuses 64 'ZooKeeper keeps no history' status --max-age 1h "$key"
    works run --history 5 "$key" -- true
    try status --all
    complains 'only those that are held are shown'
    [[ ${lines[0]} == KEY*NODES ]] || fail "expected the usual columns: ${lines[0]}"
}

# ---------------------------------------------------------------- servers that are not there

@test "a server without a majority, which only serves reads: 69, and --node-wait waits for the others" {
    zk_real
    zk_roles
    left=${follower[1]}
    zk kill "$leader"
    zk kill "${follower[0]}"
    wait_until '[[ $("$PYTHON" "$lib_dir/zkwire.py" "${zk_direct[left - 1]}" mode) == read-only ]]' 60
    within 15000 refuses 69 'may have no leader, .*see dlock doctor' run -N "$(zk_url "$left")" --node-timeout 2s "$key" -- touch ran
    within 15000 refuses 69 'may have no leader' status -N "$(zk_url "$left")" --node-timeout 2s "$key"
    gives 69 doctor -N "$(zk_url "$left")" --node-timeout 2s
    [ ! -e ran ] || fail "the command was started"
    start run --node-wait 90s --node-timeout 500ms "$key" -- echo ran
    wait_until "grep -q -- '--node-wait' bg.$bg_count.err"
    zk start "$leader"
    finishes 0 "$bg" 100
    prints ran
}

@test "--exec-on-lost runs when the lock is broken, and when no server answers" {
    start_holding "$key" --exec-on-lost 'echo "$DLOCK_KEY: $DLOCK_LOST_REASON" >hook.new; mv hook.new hook' 'sleep 60'
    works break --force "$key"
    finishes 76
    grep -q "^$key: the lock is lost: .*broken by" hook || fail "hook: $(cat hook)"
    rm hook
    start_holding "$key" --ttl 6s --exec-on-lost 'echo "$DLOCK_LOST_REASON" >hook.new; mv hook.new hook' \
        'trap "" TERM; while :; do sleep 0.1; done'
    for n in 1 2 3; do zk stop "$n"; done
    finish "$bg" 40
    exits_76_or_killed
    has_ended "$command_pid"
    [ "$killed_by_timer" = yes ] || grep -q '^the lease could not be renewed: ' hook || fail "hook: $(cat hook)"
}
