#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# The queue: waiters have their turn in order of arrival, a release wakes one of them, and whatever
# becomes of a waiter, a holder or a node, the next one gets the lock.

# shellcheck disable=SC2005,SC2016,SC2030,SC2031,SC2034,SC2046,SC2094,SC2116,SC2154
bats_require_minimum_version 1.5.0
load ../lib/queue

setup_file() { nodes_start 5; }

# A release with this leaves a window of 20 seconds: whatever ends sooner did not wait for it.
long_window=--node-timeout=10s
at_once=8000

# hang_served [NODES]: the first waiter is stopped, and then it is handed the lock, with a long window.
hang_served() {
    kill -STOP "${waiter[0]}"
    wait_until "[ \"\$(process_state ${waiter[0]})\" = T ]"
    dlock release "$long_window" "$key" "$token"
}

status_is() {
    attempt dlock status --json "$key"
    jq -e "$1" <<<"$output" >/dev/null || fail "expected $1"
}

# ---------------------------------------------------------------- order and cost

@test "without waiters a lock costs one script to acquire and one to release" {
    local wait
    for wait in 0 20s; do
        rcli n1 config resetstat
        take "$key" --wait "$wait"
        dlock release "$key" "$token"
        [ "$(calls n1 eval)" -eq 2 ]
        [ "$(calls n1 blpop lpop zadd rpush evalsha)" -eq 0 ]
    done
}

@test "2 and 10 waiters are served in order, for four requests each" {
    local count asked began
    for count in 2 10; do
        rm -f served bg.*
        unset waiter
        take "$key"
        rcli n1 config resetstat
        began=$SECONDS
        queue_waiters "$count" -v
        dlock release "$key" "$token"
        all_served $(seq "$count")
        # Who waits for seconds tries again now and then.
        asked=$(cat bg.*.err | grep -c 'asking 1 node')
        [ $((SECONDS - began)) -ge 2 ] || [ "$asked" -eq $((2 * count)) ] || fail "$asked attempts of $count waiters"
        [ "$(calls n1 blpop)" -eq "$count" ]
        [ "$(calls n1 eval)" -eq $((asked + count + 1)) ] || fail "$(calls n1 eval) scripts"
        [ "$(calls n1 lpop)" -eq 0 ]
        nothing_is_left "$key" n1
    done
}

@test "10 waiters on five nodes are served in order, in one queue" {
    local asked
    use 5
    take "$key"
    on_all 5 config resetstat
    queue_waiters 10 -v
    dlock release "$key" "$token"
    all_served $(seq 10)
    asked=$(cat bg.*.err | grep -c 'asking 5 nodes')
    [ "$(calls n1 blpop)" -eq 10 ]
    [ "$(calls n2 blpop)" -eq 0 ]
    # Beside attempts and releases: what is taken back, and asked again since the release was on its way.
    [ "$(calls n5 eval)" -le $((3 * asked + 11)) ] || fail "$(calls n5 eval) scripts for $asked attempts"
    nothing_stays "$key" $(node_names 5)
}

@test "a holder that releases and comes again queues behind those that waited" {
    local again
    take "$key"
    queue_waiters 2
    : >stay
    dlock release "$key" "$token"
    wait_until '[ -e served ]'
    queue_waiters 1
    rm stay
    all_served 1 2 3
    again=$(rcli n1 hget "$facts" served)
    [ "$again" -eq 3 ] || fail "the last number served is $again"
}

@test "callers that do not wait never overtake waiters, though the first node is far away" {
    local newcomers
    use 3
    proxy_start p1 n1
    DLOCK_NODES="$(proxy_node p1) $(node n2) $(node n3)"
    take "$key" --ttl 60s
    queue_waiters 3
    proxy_rules p1 far=0.03
    : >newcomers
    while [ -e newcomers ]; do
        # shellcheck disable=SC2154
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

# ---------------------------------------------------------------- hand-over

@test "during a handoff all others see the lock held" {
    local client
    take "$key"
    queue_waiters 1
    hang_served
    status_is '.state == "handover" and .waiting == 1 and .ttl_ms > 10000'
    try status "$key"
    exits 0
    [[ $output == *handover* ]]
    try acquire --no-wait "$key"
    fails 75 held
    client=$(rcli n1 set "$key" foreign nx px 1000)
    [ -z "$client" ]
    start run --wait 60s "$key" -- sh -c "$queued_command" sh newcomer
    queue_length_is 1
    kill -CONT "${waiter[0]}"
    waiter+=("$bg")
    all_served 1 newcomer
    nothing_is_left "$key" n1
}

@test "a handoff token renews and releases nothing" {
    local left
    take "$key"
    queue_waiters 1
    hang_served
    left=$(rcli n1 pttl "$key")
    try renew --ttl 10m "$key" "$token"
    fails 1
    try release "$key" "$token"
    fails 1
    [ "$(rcli n1 pttl "$key")" -le "$left" ]
    : >stay
    kill -CONT "${waiter[0]}"
    wait_until '[ -e served ]'
    left=$(rcli n1 get "$key")
    try renew --ttl 10m "$key" "$token"
    fails 1 another
    try release "$key" "$token"
    fails 1 another
    [ "$(rcli n1 get "$key")" = "$left" ]
    [ "$(rcli n1 pttl "$key")" -le 30000 ]
    rm stay
    all_served 1
}

@test "a waiter that gives up while it is served passes the lock on at once" {
    local n
    for n in 1 5; do
        rm -f served
        unset waiter
        use "$n"
        take "$key"
        queue_waiters 2
        hang_served
        kill -TERM "${waiter[0]}"
        kill -CONT "${waiter[0]}"
        within "$at_once" finish "${waiter[1]}"
        exits 0
        [ "$(cat served)" = 2 ]
        finish "${waiter[0]}"
        exits 143
        nothing_stays "$key" $(node_names "$n")
    done
}

@test "a handoff token that nobody has popped is for the next waiter, and for nobody else until the window ends" {
    local n
    for n in 1 5; do
        use "$n"
        key=job-$BATS_TEST_NUMBER-$n
        take "$key"
        unset waiter
        queue_waiters 1
        end_process "${waiter[0]}"
        queue_length_is 0
        dlock release "$long_window" "$key" "$token"
        status_is '.state == "handover"'
        try acquire "$key"
        fails 75
        [ -z "$(rcli n1 set "$key" foreign nx px 1000)" ]
        within "$at_once" take "$key" --wait 20s
        status_is '.state == "held"'
        dlock release "$key" "$token"
    done
    [ ! -e served ]
}

# ---------------------------------------------------------------- waiters that go

@test "a waiter that was killed costs other waiters nothing" {
    take "$key"
    queue_waiters 3
    end_process "${waiter[0]}" "${waiter[1]}"
    dlock release "$long_window" "$key" "$token"
    within "$at_once" finish "${waiter[2]}"
    exits 0
    [ "$(cat served)" = 3 ]
}

@test "a waiter that hangs while it is served loses its turn, and does not enter when it resumes" {
    start_holding "$key" --ttl 3s 'while [ ! -e stop ]; do sleep 0.1; done'
    local holder=$bg
    queue_waiters 2 --ttl 3s
    kill -STOP "${waiter[0]}"
    : >stay
    : >stop
    finish "$holder"
    exits 0
    wait_until '[ -e served ]' 20
    [ "$(cat served)" = 2 ]
    local second
    second=$(rcli n1 hget "$facts" token)
    kill -CONT "${waiter[0]}"
    queue_length_is 1
    [ "$(rcli n1 hget "$facts" token)" = "$second" ]
    rm stay
    all_served 2 1
}

@test "waiters whose connections are closed queue again" {
    local last pid
    take "$key" --ttl 60s
    queue_waiters 3
    last=$(rcli n1 client id)
    rcli n1 client kill type normal
    # Three stand in line by connections that are newer.
    wait_until '[ "$(rcli n1 client list | sed -n "s/^id=\([0-9]*\) .* cmd=blpop .*/\1/p" |
        awk -v last="$last" "\$1 > last" | wc -l)" -eq 3 ]'
    queue_length_is 3
    dlock release "$key" "$token"
    for pid in "${waiter[@]}"; do
        finish "$pid"
        exits 0
    done
    no_overlap
    [ "$(wc -l <served)" -eq 3 ]
    nothing_is_left "$key" n1
}

@test "a proxy that ends does not end a wait" {
    proxy_start p1 n1
    take "$key" --ttl 60s
    DLOCK_NODES=$(proxy_node p1) queue_waiters 1
    redis_stop p1
    queue_length_is 0
    proxy_start p1 n1
    queue_length_is 1
    within "$at_once" dlock release "$key" "$token"
    all_served 1
}

@test "a signal ends a wait at once and leaves nothing" {
    local name
    for name in TERM INT; do
        take "$key"
        unset waiter
        queue_waiters 2
        kill -s "$name" "${waiter[0]}"
        within "$at_once" finish "${waiter[0]}"
        exits $((128 + $(kill -l "$name")))
        queue_length_is 1
        [ "$(rcli n1 zcard "$facts:waiting")" -eq 1 ]
        [ -z "$(rcli n1 keys '*:leave:*')" ]
        dlock release "$long_window" "$key" "$token"
        within "$at_once" finish "${waiter[1]}"
        exits 0
    done
    [ "$(paste -sd ' ' served)" = '2 2' ]
    nothing_is_left "$key" n1
}

@test "a wait that ends leaves nothing on any node" {
    use 5
    take "$key"
    stalls_note
    try run --wait 300ms "$key" -- true
    waited_in_vain 75
    nothing_waits "$key" $(node_names 5)
}

# ---------------------------------------------------------------- holders that go

@test "a holder that was killed: the waiters get the lock when its lease ends, and keep their places" {
    start_holding "$key" --ttl 4s 'sleep 60'
    local holder=$bg first
    queue_waiters 4
    end_process "$holder"
    held "$key" n1
    for pid in "${waiter[@]}"; do
        finish "$pid"
        exits 0
    done
    no_overlap
    # They try 15 ms apart, so on a slow machine another than the first may be the first to try.
    first=$(head -n 1 served)
    [ "$(tail -n +2 served)" = "$(seq 4 | grep -vx "$first")" ] || fail "$(cat served)"
}

@test "a foreign release is noticed within a second, also after a long wait" {
    rcli n1 set "$key" foreign
    start run --wait 60s -v "$key" -- true
    wait_until '[ "$(grep -c asking bg.1.err)" -ge 4 ]'
    rcli n1 del "$key"
    within 4000 finish
    exits 0
}

@test "waiters behind a foreign holder are served in order once a dlock holds the lock" {
    rcli n1 set "$key" foreign px 300
    take "$key" --wait 20s
    queue_waiters 2
    dlock release "$key" "$token"
    all_served 1 2
}

# ---------------------------------------------------------------- nodes that go

@test "waiters of a queue node that dies or hangs queue at the next node" {
    local how
    use 5
    for how in redis_stop redis_freeze; do
        rm -f begun stop served
        unset waiter
        start_holding "$key" --ttl 3s --node-timeout 1s 'while [ ! -e stop ]; do sleep 0.1; done'
        local holder=$bg
        queue_waiters 3 --ttl 3s --node-timeout 1s
        "$how" n1
        queue_length_is 3 n2
        : >stop
        finish "$holder"
        exits 0
        for pid in "${waiter[@]}"; do
            finish "$pid"
            exits 0
        done
        no_overlap
        [ "$(sort served | tr -d '\n')" = 123 ]
        nodes_restore
    done
    nothing_stays "$key" $(node_names 5)
}

@test "handoffs continue in order while a minority of the nodes is dead or hangs" {
    use 5
    take "$key" --ttl 60s
    queue_waiters 4 --node-timeout 1s
    redis_stop n4
    redis_freeze n5
    dlock release --node-timeout 1s "$key" "$token"
    all_served 1 2 3 4
    nodes_restore
    nothing_stays "$key" $(node_names 5)
}

@test "a node that receives a release late takes part again from the next one on" {
    use 3
    proxy_start p2 n2
    take "$key" --ttl 60s
    : >stay
    queue_waiters 2 "$long_window" --ttl 60s
    proxy_rules p2 hold
    DLOCK_NODES="$(node n1) $(proxy_node p2) $(node n3)" dlock release "$long_window" "$key" "$token"
    wait_until '[ -e served ]'
    proxy_rules p2
    wait_until '[ "$(rcli n2 lindex "{$key}:dlock:wake" 0)" = "$token" ]'
    rm stay
    all_served 1 2
    within "$at_once" nothing_stays "$key" $(node_names 3)
}

@test "the only node restarts while many wait: all get the lock" {
    take "$key" --ttl 60s
    queue_waiters 3
    redis_stop n1
    redis_start n1
    for pid in "${waiter[@]}"; do
        finish "$pid"
        exits 0
    done
    no_overlap
    [ "$(sort served | tr -d '\n')" = 123 ]
}

@test "--wait and signals end a wait in time when the queue node hangs" {
    take "$key" --ttl 60s
    start acquire --wait 3s "$long_window" --ttl 60s "$key"
    local waits=$bg
    start acquire --wait 60s "$long_window" --ttl 60s "$key"
    queue_length_is 2
    redis_freeze n1
    within 9000 finish "$waits"
    exits 69
    kill -TERM "$bg"
    within 6000 finish "$bg"
    exits 143
}

# ---------------------------------------------------------- handoff tokens by hand

@test "stale, duplicate and invalid handoff tokens do no harm" {
    local junk began
    take "$key"
    stalls_note
    began=$(now_ms)
    queue_waiters 1 --node-timeout 2s
    for junk in "$OTHER_TOKEN" "$token" leave '' $'\xff\r\n' "$(printf '%05000d' 0)"; do
        rcli n1 rpush "$facts:wake" "$junk"
        wait_until "[ \"\$(rcli n1 llen '$facts:wake')\" = 0 ]"
        queue_length_is 1
        [ "$(rcli n1 get "$key")" = "$token" ]
    done
    # It comes back at once each time, not with its next try, which is two seconds later at the least.
    took_at_most 11000 "$began"
    [ ! -e served ]
    dlock release "$key" "$token"
    rcli n1 rpush "$facts:wake" "$token" "$token" "$OTHER_TOKEN"
    all_served 1
    unset waiter
    rm served
    take "$key" --wait 20s
    queue_waiters 2
    dlock release "$key" "$token"
    all_served 1 2
}

@test "a wake or waiting key of another type does no harm" {
    take "$key" --ttl 60s
    rcli n1 config resetstat
    rcli n1 set "$facts:wake" x
    start run --wait 60s "$key" -- sh -c "$queued_command" sh 1
    waiter=("$bg")
    wait_until '[ "$(calls n1 blpop)" -ge 1 ]'
    dlock release "$key" "$token"
    all_served 1
    rcli n1 del "$facts:wake"
    take "$key" --ttl 5s
    queue_waiters 1
    rcli n1 del "$facts:waiting"
    rcli n1 set "$facts:waiting" x
    dlock release "$key" "$token"
    all_served 1 2
    rcli n1 del "$facts:waiting"
    nothing_is_left "$key" n1
}

# ---------------------------------------------------------------- the server's settings

@test "a server that accepts no second connection does not break a wait" {
    redis_start m
    DLOCK_NODES=$(node m)
    take "$key" --ttl 4s
    start run -v --wait 60s "$key" -- sh -c "$queued_command" sh 1
    waiter=("$bg")
    queue_length_is 1 m
    # Both of its connections end, and when it comes back there is room for one.
    printf '%s\n' 'config set maxclients 1' 'client kill type normal' | rcli m
    wait_until 'grep -q "max number of clients" bg.1.err'
    all_served 1
}

# passes_on NODE SERVER: where BLPOP is refused, a lock that is given back is not kept for anybody, and who waits takes it.
passes_on() {
    take "$key"
    DLOCK_NODES=$1 start run -v --wait 60s "$key" -- true
    wait_until 'grep -q "refuses BLPOP" bg.*.err'
    wait_until "[ \"\$(rcli '$2' zcard '$facts:waiting')\" = 0 ]"
    # Further tries leave no note either.
    wait_until '[ "$(grep -c asking bg.*.err)" -ge 4 ]'
    [ "$(rcli "$2" zcard "$facts:waiting")" -eq 0 ]
    dlock release "$long_window" "$key" "$token"
    within "$at_once" finish
    exits 0
    nothing_is_left "$key" "$2"
}

@test "a user without the right to block waits without a place in the queue" {
    rcli n1 acl setuser worker on '>secret' '~*' '+@all' '-@blocking'
    passes_on "unix://worker:secret@$(server_dir n1)/s" n1
    # One of several nodes that refuses is enough: nothing is kept on any.
    DLOCK_NODES="unix://worker:secret@$(server_dir n1)/s $(node n2) $(node n3)"
    take "$key"
    start run -v --wait 60s "$key" -- true
    wait_until "grep -q 'refuses BLPOP' bg.$bg_count.err"
    wait_until "[ \"\$(rcli n3 zcard '$facts:waiting')\" = 0 ]"
    dlock release "$long_window" "$key" "$token"
    within "$at_once" finish
    exits 0
    nothing_is_left "$key" n1 n2 n3
}

@test "behind twemproxy, which closes the connection instead, the same applies" {
    command -v nutcracker >/dev/null || must_run "nutcracker (twemproxy) is not installed"
    local dir
    dir=$(server_dir n1)
    printf '%s\n' 'pool:' "  listen: $dir/twem" '  redis: true' '  hash_tag: "{}"' '  distribution: ketama' \
        '  servers:' "    - $dir/s:1" >twem.yml
    twem_answers() { [ "$("$REDIS_CLI" -s "$dir/twem" get "$key" 2>&1)" = '' ]; }
    twem_starts() {
        runs twem ||
            spawn twem nutcracker -c "$PWD/twem.yml" -s $((20000 + RANDOM % 12768)) -a 127.0.0.1
        twem_answers
    }
    wait_until twem_starts
    passes_on "$dir/twem" n1
}

@test "a server that closes idle connections does not break a wait; dead ones are probed" {
    redis_start_tcp t 127.0.0.1 --timeout 1 --tcp-keepalive 1
    local port
    port=$(printf '%04X' "$(port_of t)")
    # shellcheck disable=SC2031
    DLOCK_NODES=$(node t)
    take "$key" --ttl 60s
    start run --wait 60s "$key" -- sh -c "$queued_command" sh 1
    waiter=("$bg")
    queue_length_is 1 t
    # Its own end of both connections has a timer that probes (02).
    [ "$(awk -v port=":$port" '$3 ~ port "$" && $4 == "01" && $6 ~ /^02/' /proc/net/tcp | wc -l)" -ge 1 ] ||
        fail "$(grep -i ":$port" /proc/net/tcp)"
    # Ours and the blocked one are left.
    wait_until '[ "$(rcli t info clients | sed -n "s/^connected_clients:\([0-9]*\).*/\1/p")" -eq 2 ]'
    dlock release "$key" "$token"
    all_served 1
}

# ---------------------------------------------------------------- what one sees

@test "status counts waiters, and shows none of their keys as a lock" {
    take "$key"
    status_is '.waiting == 0'
    queue_waiters 2
    status_is '.waiting == 2 and .state == "held"'
    try status "*$key*"
    exits 0
    [ "${#lines[@]}" -eq 2 ] || fail 'expected one lock'
    [[ ${lines[0]} == *WAITING* && ${lines[1]} =~ \ 2\ +1/1 ]] || fail 'expected two who wait'
    kill -TERM "${waiter[0]}"
    finish "${waiter[0]}"
    queue_length_is 1
    status_is '.waiting == 1'
    kill -TERM "${waiter[1]}"
    finish "${waiter[1]}"
    queue_length_is 0
    status_is '.waiting == 0'
    dlock release "$key" "$token"
    nothing_is_left "$key" n1
}

@test "on a terminal a line says who holds the lock, since when, and when the lease ends" {
    take "$key" --label 'nightly backup' --ttl 3s
    attempt "$PYTHON" "$top_srcdir/tests/lib/terminal.py" 'expect=lease ends in' -- \
        sh -c "stty cols 200; exec \"\$DLOCK\" run --wait 20s $key -- echo begun"
    exits 0
    local line
    line="$key: waiting for [0-9.]+m?s, held by $(id -un)@$(uname -n):[0-9]+ \(nightly backup\) for [0-9.]+m?s, lease ends in [0-9.]+m?s"
    [[ $output =~ $line ]] || fail "expected $line"
    [[ $output == *begun* ]]
}
