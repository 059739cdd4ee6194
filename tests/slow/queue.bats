#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# Long queues, and many contenders, of which waiters and holders are killed at random: each one is served,
# mostly in order of arrival, never two at once, and nothing is left in the end.

load ../lib/queue
load ../lib/crowd

@test "50 and 200 waiters on one node are served in order, each woken once" {
    for count in 50 200; do
        rm -f served bg.*
        unset waiter
        take "$key" --ttl 10m
        rcli n1 config resetstat
        queue_waiters "$count" -v
        dlock release "$key" "$token"
        all_served $(seq "$count")
        asked=$(cat bg.*.err | grep -c 'asking 1 node')
        [ "$(calls n1 blpop)" -eq "$count" ]
        # Beside the attempts and the releases, each looks once how long earlier runs took.
        [ "$(calls n1 eval)" -eq $((asked + 2 * count + 1)) ]
        # One attempt at the start, one that gets the lock, and one every 2 to 10 seconds between.
        [ "$asked" -le $((2 * count + count * SECONDS / 2)) ] || fail "$asked attempts in $SECONDS s"
        nothing_is_left "$key" n1
    done
}

@test "a waiter without a terminal names the holder each minute" {
    lines_of=bg.1.err
    DLOCK_NODES=$(node n1)
    take "$key" --ttl 10m --label first
    start run --wait 10m "$key" -- true
    wait_until "grep -q 'waiting for 2m' $lines_of" 300
    dlock release "$key" "$token"
    finishes 0
    [[ ${stderr_lines[0]} == "dlock: $key: waiting; held by "*'(first)'* ]] || fail 'expected the begin'
    [[ ${stderr_lines[1]} =~ ^"dlock: $key: waiting for 1m00".*"; held by ".*'(first)'.*'; held since ' ]] || fail 'expected a line after a minute'
    [[ ${stderr_lines[2]} =~ ^"dlock: $key: waiting for 2m00" ]] || fail 'expected a line after the second'
    [[ ${stderr_lines[-1]} == "dlock: $key: got it after 2m"* ]] || fail 'expected the end'
}

@test "50 waiters on five nodes are served in order" {
    use 5
    take "$key" --ttl 10m
    queue_waiters 50
    dlock release "$key" "$token"
    all_served $(seq 50)
    nothing_stays "$key" $(node_names 5)
}

# What each of the crowd does: now and then it kills the dlock that started it.  The line that tells of
# its visit is written last.
crowded="$enter"'
[ $(($(od -An -N1 -tu1 /dev/urandom) % 50)) -ne 0 ] || kill -KILL "$PPID"
echo "$1 $(date +%s%3N)" >>ran
'"$leave"

# Each tenth is killed after a while, mostly as it waits.
killed() {
    one_in 10 || return 0
    sleep "0.$((RANDOM % 10))"
    kill -KILL "$1" || true
}

# crowd COUNT VISITS: contenders that come again until so many visits were made, one at a time and about in order.
crowd() {
    local visits=$2
    : >ran
    visit() { exec "$DLOCK" run --ttl 1s --wait 5m "$key" -- sh -c "$crowded" sh "$(now_ms)"; }
    contend "$1" '[ "$(wc -l <ran)" -lt "$visits" ]' visit killed
    no_overlap
    attempt "$PYTHON" -c "$overtaking"
    echo "# $output" >&3
    exits 0
}

# Which clients were served before others that came at least 50 ms earlier, and the longest wait.
overtaking='
import sys
visits = [tuple(map(int, line.split())) for line in open("ran")]
visits.sort(key=lambda visit: visit[1])
overtaken = sorted(sum(1 for other in visits[:i] if other[0] > came + 50) for i, (came, _) in enumerate(visits))
waited = max(served - came for came, served in visits)
at = lambda part: overtaken[int(len(overtaken) * part)]
print(f"{len(visits)} visits; overtaken by: median {at(0.5)}, 90% {at(0.9)}, 99% {at(0.99)}, most {overtaken[-1]}; "
      f"the longest wait {waited} ms")
sys.exit(at(0.5) > 1 or at(0.9) > 10 or overtaken[-1] > 200)'

@test "2,000 turns of 50 contenders, with waiters and holders that are killed" {
    crowd 50 2000
    nothing_is_left "$key" n1
    [ "$(rcli n1 --raw keys "*$key*" | sort | paste -sd ' ')" = "$metadata $metadata:history" ] || fail "$(rcli n1 keys "*$key*")"
    [ "$(rcli n1 pttl "$metadata")" -gt 0 ]
}

@test "500 turns of 20 contenders on five nodes, with waiters and holders that are killed" {
    use 5
    crowd 20 500
    nothing_is_left "$key" $(node_names 5)
}
