#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# The order of the queue, what it costs, and what a user sees of it.

# shellcheck disable=SC2005,SC2116
load ../lib/queue

# ---------------------------------------------------------------- order and cost

@test "without waiters a lock costs one script to acquire and one to release" {
    for wait in 0 20s; do
        rcli n1 config resetstat
        take "$key" --wait "$wait"
        dlock release "$key" "$token"
        [ "$(calls n1 eval)" -eq 2 ]
        [ "$(calls n1 blpop lpop zadd rpush evalsha)" -eq 0 ]
    done
}

@test "2 and 10 waiters are served in order, for four requests each" {
    for count in 2 10; do
        rm -f served bg.*
        unset waiter
        take "$key" --ttl 60s
        rcli n1 config resetstat
        began=$SECONDS
        queue_waiters "$count" -v -q # one that prints a line asks for the history, too
        dlock release "$key" "$token"
        all_served $(seq "$count")
        # A client that waits for seconds repeats its attempt from time to time.
        asked=$(cat bg.*.err | grep -c 'asking 1 node')
        [ $((SECONDS - began)) -ge 2 ] || [ "$asked" -eq $((2 * count)) ] || fail "$asked attempts of $count waiters"
        [ "$(calls n1 blpop)" -eq "$count" ]
        [ "$(calls n1 eval)" -eq $((asked + count + 1)) ] || fail "$(calls n1 eval) scripts"
        [ "$(calls n1 lpop)" -eq 0 ]
        nothing_is_left "$key" n1
    done
}

@test "10 waiters on five nodes are served in order, in one queue" {
    use 5
    take "$key" --ttl 60s
    on_all 5 config resetstat
    queue_waiters 10 -v
    dlock release "$key" "$token"
    all_served $(seq 10)
    asked=$(cat bg.*.err | grep -c 'asking 5 nodes')
    [ "$(calls n1 blpop)" -eq 10 ]
    [ "$(calls n2 blpop)" -eq 0 ]
    # Besides attempts and releases there are rollbacks, and attempts that are repeated while the release is on its way.
    [ "$(calls n5 eval)" -le $((3 * asked + 11)) ] || fail "$(calls n5 eval) scripts for $asked attempts"
    nothing_stays "$key" $(node_names 5)
}

@test "a holder that releases and comes again queues behind those that waited" {
    take "$key"
    queue_waiters 2
    : >stay
    dlock release "$key" "$token"
    wait_until '[ -e served ]'
    queue_waiters 1
    rm stay
    all_served 1 2 3
    again=$(rcli n1 hget "$metadata" served)
    [ "$again" -eq 3 ] || fail "the last number served is $again"
}

@test "callers that do not wait never overtake waiters, though the first node is far away" {
    use 3
    proxy_start p1 n1
    DLOCK_NODES="$(proxy_node p1) $(node n2) $(node n3)"
    take "$key" --ttl 60s
    queue_waiters 3
    proxy_rules p1 far=0.03
    : >newcomers
    while [ -e newcomers ]; do
        "$DLOCK" run --no-wait "$key" -- sh -c "$queued_command" sh newcomer || true
    done </dev/null >/dev/null 2>&1 3>&- 4>&- &
    newcomers=$!
    dlock release "$key" "$token"
    wait_until '[ -f served ] && grep -qx 3 served'
    rm newcomers
    wait "$newcomers"
    [ "$(head -n 3 served | paste -sd ' ')" = '1 2 3' ] || fail "$(uniq -c served)"
    no_overlap
    nothing_stays "$key" $(node_names 3)
}

# ---------------------------------------------------------------- what one sees

@test "a waiter says how many are before it, and how long the last runs took" {
    works run "$key" -- sleep 0.2
    gives 1 run "$key" -- false
    take "$key" --ttl 60s
    queue_waiters 2
    terminate "${waiter[0]}" # it has given up, and does not count
    queue_waiters 2
    terminate "${waiter[3]}"
    [[ $stderr == "dlock: $key: waiting, 2 before us; held by "*"; the last 2 took "*"ms to "*ms* ]] || fail 'expected the place'
    dlock release "$key" "$token"
    unset 'waiter[3]' 'waiter[0]'
    all_served 2 3
}

# refused_beside COUNT ARG...: one that waits beside so many may not.
refused_beside() {
    within 3000 refuses 75 "^dlock: $key: $1 waits? already [(]--max-waiters $1[)]; .*held by" \
        run --wait 60s --max-waiters "$1" "${@:2}" -- "$key" -- true
}

@test "--max-waiters: 75 at once if so many wait, and those who wait are served; also on five nodes of which two are dead" {
    for count in 1 5; do
        rm -f served
        unset waiter
        use "$count"
        [ "$count" -eq 1 ] || redis_stop n1 n4
        take "$key" --ttl 60s
        node=n$((count == 1 ? 1 : 2))
        queue_length() { blocked "$node"; }
        queue_length_is() { wait_until "[ \"\$(queue_length)\" = $1 ]"; }
        queue_waiters 1 --max-waiters 1
        refused_beside 1
        DLOCK_MAX_WAITERS=2 queue_waiters 1
        refused_beside 2
        refuses 75 'held by' run --max-waiters 9 "$key" -- true
        dlock release "$key" "$token"
        all_served 1 2
        nothing_waits "$key" n2
    done
}

@test "--max-waiters 1: of ten that come at once, one waits, on three nodes" {
    use 3
    take "$key" --ttl 60s
    for i in 1 2 3 4 5 6 7 8 9 10; do start run --wait 60s --max-waiters 1 "$key" -- sh -c 'echo ran >>served'; done
    wait_until '[ "$(grep -l "already (--max-waiters 1)" bg.*.err | wc -l)" -eq 9 ]' || fail "$(cat bg.*.err)"
    dlock release "$key" "$token"
    wait_until '[ -e served ]'
    wait
    [ "$(wc -l <served)" -eq 1 ]
    nothing_is_left "$key" n1 n2 n3
}

@test "status counts waiters, and does not show their keys as locks" {
    take "$key"
    status_is '.waiting == 0'
    queue_waiters 2
    status_is '.waiting == 2 and .state == "held"'
    gives 0 status "*$key*"
    [ "${#lines[@]}" -eq 2 ] || fail 'expected one lock'
    [[ ${lines[0]} == *WAITING* && ${lines[1]} =~ \ 2\ +1/1 ]] || fail 'expected two who wait'
    terminate "${waiter[0]}"
    queue_length_is 1
    status_is '.waiting == 1'
    terminate "${waiter[1]}"
    queue_length_is 0
    status_is '.waiting == 0'
    dlock release "$key" "$token"
    nothing_is_left "$key" n1
}

@test "on a terminal a line says who holds the lock, since when, when the lease ends, and how long the last run took" {
    works run "$key" -- true
    take "$key" --label 'nightly backup' --ttl 7s
    # It is drawn anew each second.
    attempt "$PYTHON" "$top_srcdir/tests/lib/terminal.py" 'expect=; the last one took ' 'expect=; the last one took ' -- \
        sh -c "stty cols 200; exec \"\$DLOCK\" run --wait 20s $key -- echo begun"
    exits 0
    line="$key: waiting for [0-9.]+m?s, held by $(id -un)@$(uname -n):[0-9]+ \(nightly backup\) for [0-9.]+m?s, [0-9.]+m?s of its lease left"
    [[ $output =~ $line ]] || fail "expected $line"
    # Both times go on between two attempts: together they are the lease.
    grep -oE 'for [0-9.]+s, [0-9.]+s of' <<<"$output" | tr -cd '0-9. \n' |
        awk '{ bad += $1 + $2 < 6.5 || $1 + $2 > 7.5 } END { exit NR == 0 || bad }' || fail "expected 7 s"
    [[ $output == *begun* ]]
}
