#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# Locks on ZooKeeper: leases, fences, the queue, break and re-entry.

load ../lib/zookeeper

setup_file() { zk_start --sync 40; }

uuid='[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}'

# ---------------------------------------------------------------- run

@test "run holds the lock while the command runs, a second run exits 75, and nothing is left behind" {
    start_holding "$key" 'while [ ! -e stop ]; do sleep 0.2; done; exit 7'
    zk_ask 2 children "$chroot/$key" >names
    [ "$(wc -l <names)" -eq 3 ]
    [ "$(grep -cE "^_c_$uuid-(lock-|__lock__|__WRIT__)[0-9]{10}\$" names)" -eq 3 ] || fail "names: $(cat names)"
    [ "$(sed 's/^_c_\(.\{36\}\).*/\1/' names | sort -u | wc -l)" -eq 1 ]
    [[ $(zk_ask 1 get "$chroot/$key/$(grep __lock__ names)") == "$(id -un)@$(uname -n):$bg"* ]] || fail 'expected the owner, whom kazoo shows'
    refuses 75 "$key: held by $(id -un)@$(uname -n):$bg \(sh\)" run "$key" -- touch second
    [ ! -e second ]
    stops 7
    zk_is_free "$key"
    outputs again run "$key" -- echo again
}

@test "the environment of the command: key, token, fence, the lease as granted" {
    try run --ttl 14s "$key" -- sh -c 'echo "$DLOCK_KEY $DLOCK_TTL_MS"; echo "$DLOCK_FENCE" >fence; echo "$DLOCK_TOKEN" >token
        "$PYTHON" "$0"/zkwire.py "$1" stat "$2/$DLOCK_KEY/$("$PYTHON" "$0/zkwire.py" "$1" children "$2/$DLOCK_KEY" |
            grep -e -lock-)" >stat' "$lib_dir" "${zk_direct[1]}" "$chroot"
    succeeds
    prints "$key 14000"
    [ "$(cat fence)" = "$(cut -d' ' -f1 stat)" ] || fail "the fence is not the czxid"
    grep -qxE '[A-Za-z0-9_-]{64}' token
}

@test "a lock is held for longer than its lease, and only renewals are sent" {
    requests_reset
    start=$(now_ms)
    start_holding "$key" --ttl 6s 'while [ ! -e stop ]; do sleep 0.2; done'
    # Each a third of the lease after the one before.
    wait_until '[ "$(requests setData)" -ge 4 ] || ! alive $bg' 30
    stops 0
    seconds=$((($(now_ms) - start) / 1000))
    connects=$(requests connect)
    [ "$connects" -ge 5 ] && [ "$connects" -le $((seconds / 2 + 4)) ] ||
        fail "$connects connections in $seconds s of leases of 6 s"
    [ "$(requests setData)" -ge 4 ] || fail "$(requests setData) writes"
    [ "$(requests ping)" -eq 0 ] || fail "$(requests ping) pings"
}

@test "a lock without contention costs two multis and a few requests" {
    # The node of the KEY stays as long as something is below it.
    zk_ask 1 create "$chroot/$key/stays" ''
    requests_reset
    dlock run "$key" -- true
    dlock run "$key" -- true
    wait_until '[ "$(requests closeSession)" -eq 2 ]' # dlock does not wait for its reply
    requests_reset
    dlock run "$key" -- true
    [ "$(requests connect)" -eq 1 ]
    [ "$(requests multi)" -eq 2 ] # one takes it, one releases it
    wait_until '[ "$(requests closeSession)" -eq 1 ]'
    [ "$(requests)" -le 8 ] || fail "$(requests) requests: $(tail -n 10 "$zk_dir/requests")"
}

@test "a waiter at a terminal asks who holds the lock, and does not list the queue again" {
    take "$key"
    requests_reset
    "$PYTHON" "$lib_dir/terminal.py" file=entered -- "$DLOCK" run --wait 60s "$key" -- touch entered >seen 3>&- &
    waiter=$!
    wait_until '[ "$(requests getData)" -ge 4 ]'
    [ "$(requests getChildren2)" -le 2 ] || fail "$(requests getChildren2) lists"
    dlock release "$key" "$token"
    wait "$waiter"
    grep -q 'waiting for .*, held by' seen || fail "expected a status line"
}

@test "a new KEY costs two more transactions, however deep the chroot is" {
    chroot=$chroot/a/b
    DLOCK_NODES=$(zk_url)
    zk_ask 1 create "$chroot/stays" ''
    requests_reset
    dlock run "$key" -- true
    wait_until '[ "$(requests closeSession)" -eq 1 ]'
    [ "$(requests multi)" -eq 3 ] || fail "$(requests multi) transactions" # one finds no node of the KEY
    [ "$(requests 'create.*')" -eq 1 ] || fail "$(requests 'create.*') nodes"
    requests_reset
    dlock run "x/y/$key" -- true
    [ "$(requests 'create.*')" -eq 3 ] || fail "$(requests 'create.*') nodes"
}

@test "a refusal names the holder, also if the lock changes hands meanwhile" {
    take "$key" --label first
    start run --wait 1m --label second "$key" -- sh -c 'while [ ! -e stop ]; do sleep 0.2; done'
    queue_length_is 2
    zk rules hold:getData@1
    start run --node-timeout 6s "$key" -- true
    queue_length_is 3
    dlock release "$key" "$token"
    wait_until '[ -n "$(dlock status --json "$key" | jq -r "select(.label == \"second\") | .label")" ]'
    zk rules
    finish "$bg"
    fails 75 'held by .*\(second\)'
    : >stop
}

@test "--min-hold keeps the lock though the command has ended" {
    start=$(now_ms)
    # A server that tells the leader late of the session as it was gives it its full length again.
    works run --ttl 14s --min-hold 12s "$key" -- true
    zk_is_held "$key"
    status_is '.state == "kept"'
    refuses 75 '' run "$key" -- true
    works run --wait 60s "$key" -- true
    [ $(($(now_ms) - start)) -ge 12000 ] || fail "free after $(($(now_ms) - start)) ms"
}

@test "the lock is free after the command is killed, and after run itself is killed" {
    start_holding "$key" 'exec sleep 60'
    kill -KILL "$command_pid"
    finishes 137
    zk_is_free "$key"
    start_holding "$key" --ttl 4s 'exec sleep 60'
    kill -KILL "$bg"
    start=$(now_ms)
    wait_until "! alive $command_pid" || fail "the command outlives its dlock"
    finish
    works run --wait 20s "$key" -- true
    took_at_most 8000 "$start"
}

# ---------------------------------------------------------------- acquire, renew, release

@test "acquire, renew and release are separate processes" {
    take "$key"
    [[ $token =~ ^[A-Za-z0-9_-]{64}$ ]] || fail "not a token: $token"
    refuses 75 'held by' acquire "$key"
    zk_is_held "$key"
    sleep 2
    works renew "$key" "$token"
    tells 0 '.ttl_ms == 20000 and .valid_ms > 15000 and .valid_ms < 20000' renew --json "$key" "$token"
    DLOCK_TOKEN=$token works release "$key"
    zk_is_free "$key"
    refuses 1 '' release "$key" "$token"
    refuses 1 '' renew "$key" "$token"
}

@test "acquire --json and --export" {
    tells 0 '.key == $key and .ttl_ms == 20000 and .valid_ms > 15000 and .valid_ms < 20000' acquire --json "$key"
    json_is '(.token | length) == 64 and .nodes == 1 and .granted == 1'
    fence=$(jq .fence <<<"$output")
    dlock release "$key" "$(jq -r .token <<<"$output")"
    eval "$(dlock acquire --export "$key")"
    [ "$DLOCK_KEY" = "$key" ]
    [ "$DLOCK_FENCE" -gt "$fence" ]
    works release "$DLOCK_KEY"
}

@test "a lease that is not renewed ends soon after its length, and not before" {
    export DLOCK_TTL=5s
    start=$(now_ms)
    take "$key"
    works acquire --ttl 20s --wait 20s "$key"
    # The lease, a tick until the next look at sessions, and what a busy machine needs.
    took_at_most 9000 "$start"
    at_least 5000
    refuses 1 'held by another' renew "$key" "$token"
    refuses 1 'held by another' release "$key" "$token"
}

@test "-E for a lock that is held; tokens: of another lock, of Redis, malformed" {
    take "$key"
    refuses 9 '' run -E 9 "$key" -- true
    refuses 9 '' acquire -E 9 "$key"
    other=$(dlock acquire "$key-2")
    refuses 1 '' release "$key" "$other"
    zk_is_held "$key"
    zk_is_held "$key-2"
    works release "$key-2" "$other"
    for other in "$OTHER_TOKEN" x "${token}A" "${token%?}" "${token/[A-Za-z]/!}"; do
        refuses 64 '' release "$key" "$other"
        refuses 64 '' renew "$key" "$other"
    done
    works release "$key" "$token"
}

# ---------------------------------------------------------------- the length of a lease

@test "a lease longer than the ensemble grants: acquire refuses, run renews" {
    refuses 64 'at most 30(\.0)?s' acquire --ttl 60s "$key"
    zk_is_free "$key"
    outputs 30000 run --ttl 60s "$key" -- sh -c 'echo "$DLOCK_TTL_MS"'
    refuses 64 'at most 30(\.0)?s' run --ttl 5s --min-hold 60s "$key" -- touch begun
    [ ! -e begun ]
    zk_is_free "$key"
}

@test "a lease shorter than the ensemble grants is rounded up, and renew cannot change its length" {
    in_time acquire --ttl 100ms --json "$key-short"
    [ "$status" -ne 0 ] || [ "$(jq .ttl_ms <<<"$output")" -eq 1000 ]
    in_time run --ttl 100ms --wait 10s "$key-short" -- sh -c 'echo "$DLOCK_TTL_MS"; sleep 2'
    [ "$status" -ne 0 ] || prints 1000
    take "$key"
    works renew --ttl 20s "$key" "$token"
    refuses 64 'cannot be changed; it is 20(\.0)?s' renew --ttl 9s "$key" "$token"
    # The value in the environment is only a default.
    DLOCK_TTL=9s works renew "$key" "$token"
    zk_is_held "$key"
}

# ---------------------------------------------------------------- fences

@test "fences increase, also after the key's node has been removed" {
    last=0
    for i in 1 2 3; do
        DLOCK_LABEL=x works run "$key/below/it" -- sh -c 'echo "$DLOCK_FENCE"'
        [ "$output" -gt "$last" ] || fail "fence $output after $last"
        last=$output
        [ "$last" -lt 9007199254740992 ]
        wait_until "! zk_ask 1 stat '$chroot/$key' >/dev/null" 20 || fail "the containers stay"
    done
}

# ---------------------------------------------------------------- waiting

# hold_until_go: the lock is held until let_go, however long the waiters take to come.
hold_until_go() {
    rm -f go
    start_holding "$key" 'while [ ! -e go ]; do sleep 0.2; done'
    holder=$bg
}
let_go() {
    : >go
    finishes 0 "$holder"
}

@test "waiters are served in order of arrival, with few requests" {
    hold_until_go
    queue_waiters 5
    requests_reset
    let_go
    all_served 1 2 3 4 5
    zk_is_free "$key"
    # Each: a look at the node before it, a list, its own node, a proof, and the end; and renewals by the holder.
    [ $(($(requests) - $(requests ping))) -le 70 ] || fail "$(requests) requests: $(tail -n 45 "$zk_dir/requests")"
}

@test "the holder goes just before a waiter watches it: it keeps its place" {
    take "$key"
    zk rules hold:exists@2
    requests_reset
    start run --wait 60s --node-timeout 15s "$key" -- true
    wait_until '[ "$(requests getData)" -ge 1 ]'
    dlock release -N "zk://127.0.0.1:${zk_direct[0]}$chroot" "$key" "$token"
    zk rules
    finishes 0
    [ "$(requests connect)" -eq 1 ] || fail 'it began again'
}

@test "a waiter keeps its connection" {
    take "$key"
    requests_reset
    start run --ttl 6s --node-timeout 10s --wait 60s "$key" -- true
    wait_until '[ "$(requests ping)" -ge 3 ]'
    [ "$(requests connect)" -eq 1 ] || fail "$(requests connect) connections"
    dlock release "$key" "$token"
    finishes 0
}

@test "the connection of a holder ends: it makes another one at once, on which it learns of a break" {
    start_holding "$key" --ttl 30s 'sleep 60'
    requests_reset
    zk kill "$(server_of_last multi)"
    wait_until '[ "$(requests connect)" -ge 1 ]' 5 || fail 'it has none' # until a third of the lease is over
    wait_until '[ "$(requests exists)" -ge 1 ]'
    works break --force "$key"
    within 6000 loses
}

@test "the node of a waiter is removed by hand: it queues up again, and does not wait for what is left of it" {
    take "$key"
    start run --ttl 30s --wait 60s "$key" -- true
    queue_length_is 2
    zk_ask 1 delete "$chroot/$key/$(entries "$key" | sort -t- -k 7 | tail -n 1)"
    queue_length_is 2
    dlock release "$key" "$token"
    finishes 0 "$bg" 15
}

@test "a wait that times out: 75, and it leaves the queue" {
    take "$key"
    within 4000 refuses 75 '' run --wait 1s --report report "$key" -- true
    # What the refusal says is of the end of the wait.
    [ "$(jq .holder.held_ms report)" -ge 1000 ] || fail "$(cat report)"
    at_least 1000
    [ "$(entry_count "$key")" -eq 1 ]
}

@test "at a terminal the line of a waiter is redrawn each second" {
    take "$key" --label first
    yields 130 "$PYTHON" "$lib_dir/terminal.py" 'expect=waiting for 1' 'expect=waiting for 2' 'send=\x03' -- \
        sh -c "stty cols 200; exec \"\$DLOCK\" acquire --wait forever $key"
    [[ $output =~ 'waiting for 2'[0-9.]*s', held by '[^$'\r']*' (first) for '[0-9.]*'s, '[0-9.]*'s of its lease left' ]] || fail 'expected the holder'
}

@test "a waiter that is ended by a signal leaves the queue" {
    take "$key"
    for sent in TERM INT; do
        start run --wait 60s "$key" -- true
        queue_length_is 2
        kill -"$sent" "$bg"
        finish
        [ "$status" -gt 128 ] || fail "expected a signal"
        queue_length_is 1
    done
}

@test "a waiter that is killed or stopped delays those behind it by its lease at most" {
    hold_until_go
    queue_waiters 3 --ttl 8s
    kill -KILL "${waiter[1]}"
    queue_length_is 3
    let_go
    unset 'waiter[1]'
    all_served 1 3
    hold_until_go
    rm served
    unset waiter
    queue_waiters 3 --ttl 8s
    kill -STOP "${waiter[1]}"
    let_go
    wait_until '[ "$(paste -sd " " served)" = "1 3" ]' 40 || fail "served: $(cat served)"
    kill -CONT "${waiter[1]}"
    # Its session has expired: it joins the end of the queue.
    all_served 1 3 2
    zk_is_free "$key"
}

# ---------------------------------------------------------------- break

@test "a run whose lock is broken ends its command at once with 76, and the waiter gets the lock" {
    start_holding "$key" 'sleep 60'
    holder=$bg
    start run --wait 30s "$key" -- touch entered
    queue_length_is 2
    requests_reset
    works break --force --json "$key"
    start=$(now_ms)
    json_is '.outcome == "broken"'
    finish "$holder"
    # Its next renewal comes up to 6.7 s later.
    took_at_most 3000 "$start"
    exits 76
    has_ended "$command_pid"
    finishes 0
    [ -e entered ]
    zk_is_free "$key"
    wait_until '[ "$(requests closeSession)" -ge 4 ]' || fail 'a session is left'
}

@test "break of a free lock exits 1, as do renew and release of a broken one" {
    refuses 1 'free' break --force "$key"
    take "$key"
    works break --force "$key"
    refuses 1 '' renew "$key" "$token"
    take "$key"
    dlock break --force "$key"
    refuses 1 '' release "$key" "$token"
}

# ---------------------------------------------------------------- entering again

@test "a nested run enters the lock again, with one fence, and the last one frees it" {
    try run "$key" -- sh -c '
        echo "$DLOCK_FENCE"
        "$DLOCK" run "$DLOCK_KEY" -- sh -c "echo \$DLOCK_FENCE; \"\$DLOCK\" status --json \$DLOCK_KEY >status"
        "$DLOCK" status --json "$DLOCK_KEY" >after'
    succeeds
    [ "${#lines[@]}" -eq 2 ] && [ "${lines[0]}" = "${lines[1]}" ] || fail "expected one fence"
    [ "$(jq .holds status)" -eq 2 ]
    [ "$(jq .state after)" = '"held"' ]
    zk_is_free "$key"
}

@test "holds end in any order, and one that is gone, or a lock that was waited for, changes no status of the command" {
    take "$key"
    start run -E 3 --node-wait 30s --wait 60s "$key" -- sh -c 'exit 75'
    wait_until "grep -q waiting 'bg.$bg_count.err'"
    dlock release "$key" "$token"
    finishes 75
    [[ ${stderr_lines[-1]} == *' got it after '* ]] || fail 'expected no error'
    DLOCK_KEY=$key DLOCK_TOKEN=$token quietly 75 run -E 3 "$key" -- sh -c 'exit 75'
    gone=$token
    take "$key" # and the next hold is tried
    DLOCK_HOLDS=$key=$gone=1 DLOCK_KEY=$key DLOCK_TOKEN=$token works run "$key" -- true
    inner=$(dlock acquire --token "$token" "$key")
    [ "$inner" != "$token" ]
    works renew "$key" "$inner"
    tells 0 '.outcome == "still-held"' release --json "$key" "$token"
    refuses 1 '' renew "$key" "$token"
    works release "$key" "$inner"
    zk_is_free "$key"
}

@test "a run whose hold another process has given back leaves the lock to the other holds" {
    DLOCK_NODES=$(zk_url 1)
    start_holding "$key" -v 'until [ -e stop ]; do sleep 0.2; done'
    token_of_command
    inner=$(dlock acquire --token "$token" "$key")
    wait_until "grep -q 'renewing the lease' bg.1.err" # it learns of that hold, as its connection is closed, and of no more
    works release "$key" "$token"
    : >stop
    finish
    works renew "$key" "$inner"
}

@test "a nested run in the place of the command: one lock, two holds" {
    DLOCK_NODES=$(zk_url 1) # which closes the connection of the one when the other comes
    start_holding "$key" 'exec "$DLOCK" run "$DLOCK_KEY" -- sh -c "echo \$\$ >inner; while [ ! -e stop ]; do sleep 0.2; done"'
    wait_until '[ -s inner ]'
    status_is '.holds == 2'
    requests_reset
    sleep 1
    [ "$(requests connect)" -le 3 ] || fail "they renew by turns: $(requests connect) times"
    stops 0
    zk_is_free "$key"
}
