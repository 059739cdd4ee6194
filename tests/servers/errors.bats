#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# Servers that are not there, are no Redis, or reply slowly.  Servers that refuse are in states.bats.

load ../lib/redis

setup_file() {
    redis_start a
    servers_start bad silent close http random endless bulk array nested truncated trickle lengths yes types \
        rounds \
        tcp/refused tcp/unanswered tcp/silent unanswered
}

bad() { echo "$(server_dir bad)/$1.sock"; }
bad_tcp() { echo "127.0.0.1:$(cat "$(server_dir bad)/$1.port")"; }

# everywhere URL [REGEX]: each command that needs a node, all of them at the same time, fails on
# that one soon after its node timeout, exits 69 and says so in one line.
everywhere() {
    local DLOCK_NODES=$1 DLOCK_NODE_TIMEOUT=300ms from pid each
    export DLOCK_NODES DLOCK_NODE_TIMEOUT
    stalls_note
    from=$(now_ms)
    start_each "$key"
    for pid in "${each[@]}"; do
        finishes 69 "$pid"
        complains "${2-}"
    done
    took_at_most 5000 "$from"
    [ ! -e begun ]
}

# ------------------------------------------------------------------- no server

@test "a path without a server: missing, nobody listens, no socket, a queue that is full" {
    "$PYTHON" -c 'import socket; socket.socket(socket.AF_UNIX).bind("dead.sock")'
    : >file
    for path in "$PWD/nobody" "$PWD/dead.sock" "$PWD/file" "$PWD" "$(bad unanswered)"; do everywhere "$path" "$path"; done
}

@test "a port that refuses connections, or does not accept them" {
    everywhere "$(bad_tcp refused)" "$(bad_tcp refused)"
    everywhere "$(bad_tcp unanswered)" "$(bad_tcp unanswered)"
}

@test "a host that does not resolve" {
    within 20000 refuses 69 no-such-host.invalid acquire --node redis://no-such-host.invalid:1 "$key"
}

@test "a server that accepts connections and sends nothing" {
    everywhere "$(bad silent)" "$(bad silent)"
    everywhere "$(bad_tcp silent)" "$(bad_tcp silent)"
}

@test "the default node timeout of a silent server is a tenth of the lease" {
    within 2000 try acquire --ttl 3s --node "$(bad silent)" "$key"
    at_least 290
    fails 69
}

# -------------------------------------------------------------------- no Redis

# each_is_refused MODE...: of servers.py, which describes them.
each_is_refused() {
    local mode
    for mode; do everywhere "$(bad "$mode")" "$(bad "$mode")"; done
}

@test "a server that closes, a web server, random bytes" { each_is_refused close http random; }
@test "a line, a string, an array, nested arrays without an end" { each_is_refused endless bulk array nested; }
@test "a reply that is cut off, one that never ends, numbers that no server may send" { each_is_refused truncated trickle lengths; }
@test "a server that replies OK to everything grants no lock" { each_is_refused yes; }

@test "a list may take longer than a node timeout if each part of it comes in time" {
    rcli a -n 1 eval 'for i = 1, 4000 do redis.call("set", "k" .. i, "") end' 0
    proxy_start far a far=0.3
    works status -N "unix://$(proxy_node far)?db=1" --node-timeout 2s
}

@test "status waits for a majority, although one node is far nearer than the others" {
    local asked
    redis_start behind
    proxy_start far behind far=0.3
    proxy_start farther behind far=0.3
    DLOCK_NODES="$(node a) $(proxy_node far) $(proxy_node farther)"
    rcli behind set "$key" "$OTHER_TOKEN" px 60000
    for asked in "$key" "$key*"; do
        works status --node-timeout 10s "$asked"
        [[ $output == *"$key "* ]] || fail "expected what most nodes have"
    done
}

@test "a SCAN that would never end is aborted" {
    DLOCK_NODE_TIMEOUT=10s within 8000 refuses 69 'SCAN does not end' status -N "$(bad rounds)"
}

@test "a type that a server invents is shown escaped" {
    for command in 'status -o CLIENT' status 'break --force'; do
        DLOCK_NODES=$(bad types) DLOCK_NODE_TIMEOUT=10s try $command "$key"
        [[ $output$stderr == *'a \e[2J\nx'* ]] || fail "expected the type, escaped"
        is_plain
    done
}

@test "control characters of a server do not reach the terminal" {
    for name in http random truncated lengths; do
        DLOCK_NODE_TIMEOUT=300ms gives 69 acquire -v --node "$(bad "$name")" "$key"
        is_plain
    done
}

# ----------------------------------------------------------------- slow and lossy

@test "a reply that is lost, or arrives too slowly, is given up at the deadline and the lock rolled back" {
    for rule in trickle@1=0.05 drop@1; do
        proxy_start slow behind "$rule"
        within 5000 refuses 69 '' acquire --ttl 60s --node-timeout 1s --node "$(proxy_node slow)" "$key"
        wait_until "free '$key' behind"
    done
}

@test "a connection that goes silent: the renewal is sent on another one" {
    proxy_start lossy behind
    DLOCK_NODES=$(proxy_node lossy) DLOCK_NODE_TIMEOUT=1500ms start_holding "$key" --ttl 15s 'sleep 60'
    proxy_rules lossy drop
    wait_until "grep -q 'a renewal failed' bg.1.err" 20
    proxy_rules lossy
    wait_until "! alive $bg || grep -q 'renewed again' bg.1.err" 20
    alive "$bg"
}

@test "a reply that arrives slowly but in time counts" {
    proxy_start slow behind trickle=0.001
    works acquire --ttl 60s --node-timeout 10s --node "$(proxy_node slow)" "$key"
    [ "$(rcli behind get "$key")" = "$output" ]
}

@test "a late reply: the lock is rolled back" {
    proxy_start late behind delay@1=20
    within 1500 refuses 69 '' acquire --ttl 60s --node-timeout 300ms --node "$(proxy_node late)" "$key"
    proxy_rules late
    wait_until "[ \$(proxy_log late | grep -c EVAL) -ge 2 ] && free '$key' behind"
}

@test "a reply that is later than the lease grants nothing" {
    proxy_start late behind delay@1=0.6
    refuses 69 '' acquire --ttl 400ms --node-timeout 2s --node "$(proxy_node late)" "$key"
    wait_until "free '$key' behind"
}

@test "a frozen server: the lock that it grants when it resumes is rolled back" {
    redis_start frozen
    redis_freeze frozen
    within 1500 refuses 69 '' acquire --ttl 60s --node-timeout 300ms --node "$(node frozen)" "$key"
    redis_thaw frozen
    rcli frozen ping
    wait_until "free '$key' frozen"
}

@test "a lost reply of a release: the lock is free" {
    redis_start behind
    DLOCK_NODES=$(node behind) take "$key" --ttl 60s
    proxy_start lossy behind drop@1
    DLOCK_NODE_TIMEOUT=1500ms gives 69 release --node "$(proxy_node lossy)" "$key" "$token"
    wait_until "free '$key' behind"
    # A second attempt does not treat that lock as another client's.
    try release --node "$(node behind)" "$key" "$token"
    [[ $stderr != *another* ]] || fail "taken for another's"
}
