#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# Connections that are closed between two requests: by a server that closes idle ones, an operator, a restart, a proxy.
# The next request is sent on a new connection, in the same round, and what dlock reports is true.

load ../lib/services
load ../lib/quorum
load ../lib/tls

redis_servers=a node_count=3

# holding KEY ARG...: dlock run ARG... holds KEY, until the test says so; then its command ends with 5.
holding() { DLOCK_NODE_TIMEOUT='' start_holding "$@" 'while [ ! -e stop ]; do sleep 0.2; done; exit 5'; }

# nobody_at SERVER...: no connection is left there but redis-cli's own and blocked ones.
nobody_at() {
    local name
    for name; do
        ! rcli "$name" client list type normal | grep -v ' cmd=client' | grep -qv ' flags=[^ ]*b' || return
    done
}

hang_up_at() {
    local name
    for name; do rcli "$name" client kill type normal skipme yes >/dev/null; done
}

# ends [PID]: the run ends, with its 5, and prints no message.
ends() {
    stops 5 "$@"
    [ -z "$stderr" ] || fail "expected nothing on standard error"
}

# served WAITER: it gets the lock soon, before the lease of the other would end.
served() { finishes_well "$1" 10; }

# ---------------------------------------------------------------- a server that closes idle connections

@test "a server with timeout 1: releases arrive, waiters are served, the exit status is correct" {
    redis_start idle --timeout 1
    for _ in 1 2 3; do rcli "n$_" config set timeout 1 >/dev/null; done
    DLOCK_NODES=$(node idle)
    holding "$key-one"
    one=$bg
    holding "$key-deleted"
    deleted=$bg
    holding "$key-broken"
    broken=$bg
    start acquire --wait 25s "$key-one"
    waiter=$bg
    use 3
    holding "$key-three"
    three=$bg
    wait_until "nobody_at idle n1 n2 n3"
    DLOCK_NODES=$(node idle)
    rcli idle del "$key-deleted" >/dev/null
    gives 0 break --force "$key-broken"
    ends "$one"
    served "$waiter"
    ends "$three"
    is_free_everywhere "$key-three" 3
    finish "$deleted"
    fails 76 'the lock was lost: gone: it expired, was broken or was released'
    finish "$broken"
    fails 76 'the lock was lost'
    for _ in 1 2 3; do rcli "n$_" config set timeout 0 >/dev/null; done
}

# ---------------------------------------------------------------- connections that are killed

@test "CLIENT KILL: each renewal takes one round" {
    holding "$key" --ttl 3s --node-timeout 2s -v
    for i in 1 2 3; do
        wait_until "[ \$(grep -c 'renewing the lease' bg.1.err) -ge $i ]"
        hang_up_at a
    done
    stops 5
    [[ $stderr != *'closed the connection'* && $stderr != *'no quorum'* ]] || fail "expected no failure"
    is_free "$key"
}

@test "CLIENT KILL: a waiter is served when its turn comes" {
    take "$key" --ttl 1m
    start acquire --wait 25s "$key"
    wait_until "rcli a client list | grep -q cmd=blpop"
    hang_up_at a
    wait_until "rcli a client list | grep -q cmd=blpop"
    hang_up_at a
    dlock release "$key" "$token"
    served "$bg"
}

@test "CLIENT KILL: status --watch continues" {
    take "$key" --ttl 1m
    start status --watch 100ms --no-headings -o key,state "$key"
    for i in 3 6 9; do
        wait_until "[ \$(grep -c '$key' bg.1.out) -ge $i ]"
        hang_up_at a
    done
    wait_until "[ \$(grep -c '$key' bg.1.out) -ge 12 ]"
    kill -INT "$bg"
    finishes_well
    [[ $output != *unknown* ]] || fail "expected the state each time"
}

# ---------------------------------------------------------------- a server that restarts

@test "a server that restarted with its data gets the release" {
    options=(--appendonly yes --appendfsync always)
    redis_start durable "${options[@]}"
    DLOCK_NODES=$(node durable) holding "$key"
    redis_stop durable
    redis_start durable "${options[@]}"
    held "$key" durable
    ends
    is_free "$key" durable
}

@test "a server that is unavailable at the release gets the release when it is back" {
    options=(--appendonly yes --appendfsync always)
    redis_start durable "${options[@]}"
    DLOCK_NODES=$(node durable) holding "$key" -v --node-timeout 10s
    redis_stop durable
    touch stop
    wait_until "grep -q 'releasing the lock' bg.1.err"
    redis_start durable "${options[@]}"
    finishes 5
    [[ $stderr != *'not released'* ]] || fail "expected it to be released"
    is_free "$key" durable
}

@test "a server that stays unavailable: run without a history ends within the node timeout, with the reason" {
    redis_start mortal
    DLOCK_NODES=$(node mortal) holding "$key" --node-timeout 2s --history 0
    redis_stop mortal
    within 4000 stops 5
    complains "$key: not released: .*no such socket"
}

@test "a minority that is unavailable does not delay a release" {
    redis_start mortal
    DLOCK_NODES="$(node n1) $(node n2) $(node mortal)" holding "$key" --node-timeout 10s
    redis_stop mortal
    within 5000 stops 5
    is_free_everywhere "$key" 2
}

@test "three nodes restart at the release: it also waits for the one that loads its data the longest" {
    options=(--appendonly yes --appendfsync always)
    redis_start one "${options[@]}"
    redis_start two "${options[@]}"
    redis_start full
    DLOCK_NODES="$(node one) $(node two) $(node full)" holding "$key" -v --node-timeout 20s
    redis_fill full
    redis_stop one two full
    touch stop
    wait_until "grep -q 'releasing the lock' bg.1.err"
    redis_start_loading full
    [[ $(rcli full ping) == *LOADING* ]]
    redis_start one "${options[@]}"
    redis_start two "${options[@]}"
    finishes 5
    wait_until "[ \"\$(rcli full ping)\" = PONG ]" 20
    is_free "$key" full
}

# ---------------------------------------------------------------- proxies

# haproxy_start NAME LISTEN UPSTREAM: it closes what is idle for a second.
haproxy_start() {
    local dir
    dir=$(server_dir "$1")
    mkdir -p "$dir"
    cat >"$dir/haproxy.cfg" <<END
defaults
    mode tcp
    timeout connect 5s
    timeout client 1s
    timeout server 60s
listen redis
    bind $2
    server redis unix@$3
END
    spawn "$1" haproxy -db -f "$dir/haproxy.cfg"
}

# haproxy_start_tls NAME UPSTREAM: on a free port, which is port_of NAME.
haproxy_start_tls() {
    local port
    for _ in {1..20}; do
        free_port
        haproxy_start "$1" "127.0.0.1:$port ssl crt $(certs)/haproxy.pem" "$2"
        wait_until "(: </dev/tcp/127.0.0.1/$port) 2>/dev/null || ! alive $(server_pid "$1")"
        if alive "$(server_pid "$1")"; then
            echo "$port" >"$(server_dir "$1")/port"
            return
        fi
    done
    return 1
}

@test "HAProxy with timeout client 1s: run, a waiter, renew and release; TLS as well" {
    type -P haproxy >/dev/null || must_run "there is no HAProxy"
    redis_start behind
    dir=$(server_dir haproxy)
    mkdir -p "$dir"
    haproxy_start haproxy "unix@$dir/h" "$(node behind)"
    wait_until "[ -S '$dir/h' ]"
    certificates
    cat "$(certs)/good.crt" "$(certs)/good.key" >"$(certs)/haproxy.pem"
    haproxy_start_tls haproxy-tls "$(node behind)"
    trust
    DLOCK_NODES=$dir/h
    holding "$key-plain"
    plain=$bg
    DLOCK_NODES=rediss://127.0.0.1:$(port_of haproxy-tls) holding "$key-tls"
    tls=$bg
    take "$key-script"
    wait_until "nobody_at behind"
    works renew "$key-script" "$token"
    works release "$key-script" "$token"
    start acquire --wait 25s "$key-plain"
    waiter=$bg
    wait_until "rcli behind client list | grep -q cmd=blpop"
    wait_until "! rcli behind client list | grep -q cmd=blpop"
    ends "$plain"
    ends "$tls"
    is_free "$key-tls" behind
    served "$waiter"
}

@test "stunnel with an idle limit of a second: rediss://" {
    type -P stunnel >/dev/null || must_run "there is no stunnel"
    certificates
    redis_start behind
    dir=$(server_dir stunnel)
    mkdir -p "$dir"
    for _ in {1..20}; do
        free_port
        printf '%s\n' foreground=yes pid= 'TIMEOUTidle=1' "cert=$(certs)/good.crt" "key=$(certs)/good.key" \
            '[redis]' "accept=127.0.0.1:$port" "connect=$(node behind)" >"$dir/stunnel.conf"
        spawn stunnel stunnel "$dir/stunnel.conf"
        wait_until "(: </dev/tcp/127.0.0.1/$port) 2>/dev/null || ! alive $(server_pid stunnel)"
        ! alive "$(server_pid stunnel)" || break
    done
    trust
    DLOCK_NODES=rediss://127.0.0.1:$port holding "$key"
    wait_until "nobody_at behind"
    ends
    is_free "$key" behind
}

# ---------------------------------------------------------------- services

# connections_end SERVER RESTART: a release arrives there although connections were killed, and one that waits for a server
# which the command RESTART starts again.
connections_end() {
    holding "$key-kill"
    hang_up_at "$1"
    ends
    is_free "$key-kill" "$1"
    rm stop
    holding "$key-restart" -v --node-timeout 15s
    redis_stop "$1"
    touch stop
    wait_until "grep -q 'releasing the lock' bg.2.err"
    eval "$2"
    finishes 5
    [[ $stderr != *'not released'* ]] || fail "expected it to be released"
    is_free "$key-restart" "$1"
}

@test "Sentinel: connections that the master closed, and a master that restarts" {
    options=(--appendonly yes --appendfsync always)
    redis_start_tcp master 127.0.0.1 "${options[@]}"
    port=$(port_of master)
    sentinel_start s1 master jobs 1
    DLOCK_NODES=redis+sentinel://$(place s1)/jobs
    connections_end master 'redis_start master --port "$port" "${options[@]}"'
}

@test "Cluster: connections that the owner closed, and an owner that restarts" {
    options=(--appendonly yes --appendfsync always)
    cluster_node_start c1 "${options[@]}" --cluster-require-full-coverage no
    rcli c1 cluster addslotsrange 0 16383 >/dev/null
    wait_until "cluster_ok c1"
    DLOCK_NODES=redis+cluster://$(place c1)
    port=$(port_of c1)
    bus=$(rcli c1 config get cluster-port | tail -n 1)
    connections_end c1 'redis_start c1 --port "$port" --cluster-enabled yes \
        --cluster-config-file "$(server_dir c1)/nodes.conf" --cluster-port "$bus" "${options[@]}"'
}
