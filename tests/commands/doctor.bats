#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# dlock doctor: is this Redis fit to keep locks?  What is found of which facts, and the advice, is in tests/unit/doctor.c.

load ../lib/redis

setup_file() {
    redis_start a
    redis_start good --appendonly yes --appendfsync always
    redis_start b
    # A server that has just started is a finding.
    wait_until '[ "$(rcli b info server | sed -n "s/^uptime_in_seconds:\([0-9]*\).*/\1/p")" -ge 3 ]'
}
setup() {
    test_begin
    export DLOCK_TTL=3s DLOCK_NODE_TIMEOUT=5s
}

# doctor ARG...: its findings, as JSON.
doctor() {
    try doctor --json "$@"
    jq -e . <<<"$output" >/dev/null || fail "not JSON"
}

# diagnoses STATUS ARG...: the same, and its status.
diagnoses() {
    doctor "${@:2}"
    exits "$1"
}

# finds CHECK RESULT [REGEX]: the last run found that.
finds() {
    local found
    found=$(jq -r --arg check "$1" 'select(.check == $check) | .result + " " + .finding' <<<"$output")
    [[ $found =~ ^"$2"\ .*${3-} ]] || fail "expected of $1: $2 ${3-}"
}

@test "no problems: 0, and the table says so" {
    DLOCK_NODES=$(node good)
    try doctor
    exits 1 # only this host can reach it
    [ "$(grep -c '^  ok ' <<<"$output")" -eq 12 ] || fail "expected so many findings"
    [ "$(grep '^  warn ' <<<"$output")" = '  warn     reach        only this host can reach it so (a unix socket): a lock excludes no other host' ]
    [[ ${lines[0]} == "$(node good)" && $output == *'appendfsync always'* ]] || fail "expected the node"
    attempt env -u NO_COLOR TERM=xterm "$PYTHON" "$lib_dir/terminal.py" -- "$DLOCK" doctor
    [[ $output == *$'\e[33mwarn   \e[m'*$'\e[32mok     \e[m'* ]] || fail 'expected colours'
    doctor
    [ "$(jq -r 'select(.check != "reach").result' <<<"$output" | sort -u)" = ok ]
    [ "$(jq -r '.node // "all"' <<<"$output" | sort -u | wc -l)" -eq 2 ]
}

# in_network COMMAND...: in a network of its own, in which this host is 10.1.2.3, too.
in_network() {
    local new=(unshare --net)
    [ "$(id -u)" -eq 0 ] || new+=(--map-root-user)
    "${new[@]}" true || must_run 'no network namespaces here'
    attempt "${new[@]}" "$PYTHON" -c '
import fcntl, os, socket, struct, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
def up(name, address):
    fcntl.ioctl(s, 0x8916, struct.pack("16sH2x4s8x", name, socket.AF_INET, socket.inet_aton(address)))
    fcntl.ioctl(s, 0x8914, struct.pack("16sH22x", name, 0x41))
up(b"lo", "127.0.0.1")
up(b"lo:1", "10.1.2.3")
os.execvp(sys.argv[1], sys.argv[1:])' "$@"
}

@test "the loopback address of IPv6 is loopback, and one of IPv4 that is written as one of IPv6" {
    grep -q '^0*1 .* lo$' /proc/net/if_inet6 || must_run 'no IPv6 here'
    redis_start_tcp local '127.0.0.1 ::1'
    for address in ::1 ::ffff:127.0.0.1; do
        DLOCK_NODES="[$address]:$(port_of local)" doctor
        finds reach warn loopback
    done
}

@test "a node that only this host can reach: a warning, and what to do" {
    in_network bash -c '"$1" --bind 0.0.0.0 --protected-mode no --port 7000 --save "" --appendonly yes --appendfsync always --dir . >/dev/null &
        until "$DLOCK" status --node 10.1.2.3:7000 >/dev/null 2>&1; do sleep 0.1; done
        while [ "$("$2" -p 7000 info server | sed -n "s/^uptime_in_seconds:\([0-9]*\).*/\1/p")" -lt 3 ]; do sleep 0.1; done
        for node in 10.1.2.3 127.0.0.1 127.9.9.9; do "$DLOCK" doctor -q --node "$node:7000"; echo "$node $?"; done
        kill %1' bash "$REDIS_SERVER" "$REDIS_CLI"
    [ "${lines[0]}" = '10.1.2.3 0' ] || fail 'expected no warning'
    [[ $output == *'can reach it so (loopback)'*'name a server that all hosts share'*'127.0.0.1 1'*'127.9.9.9 1' ]] || fail 'expected warnings'
    DLOCK_NODES=$(node good) DLOCK_CONFIG='' doctor
    finds reach warn 'unix socket'
    [[ $(jq -r 'select(.check == "reach").advice' <<<"$output") == *'that all hosts share'* ]]
}

@test "a test lock is acquired, and gone afterwards" {
    rcli good monitor >monitor 3>&- 4>&- &
    monitor=$!
    wait_until 'grep -q OK monitor'
    try doctor --node "$(node good)" --prefix app:
    wait_until 'grep -q "\"DEL\" \"app:dlock-doctor-" monitor || grep -q "\"del\" \"app:dlock-doctor-" monitor' || fail "$(cat monitor)"
    kill "$monitor"
    wait "$monitor" || true
    [ -z "$(rcli good keys 'app:dlock-doctor*')" ]
}

@test "doctor under a lock" {
    DLOCK_NODES=$(node good)
    gives 1 run "$key" -- "$DLOCK" doctor --json # only this host can reach it
    finds lock ok
}

@test "a server without persistence: a warning, exit 1, and advice about the guard" {
    diagnoses 1
    finds persistence warn 'AOF and snapshots are off'
    [[ $(jq -r 'select(.check == "persistence").advice' <<<"$output") == *'--restart-guard 3s'* ]] ||
        fail "expected advice"
}

@test "a replica, no server, or one that does not reply: fail, 69" {
    redis_start replica --replicaof "127.0.0.1 1" --replica-serve-stale-data yes
    diagnoses 69 --node "$(node replica)"
    finds role fail replica
    finds lock fail 'read-only replica'
    complains "cannot keep locks: 0 of 1 nodes"
    diagnoses 69 --node "$PWD/nobody"
    finds answer fail 'no such socket'
    [ "$(jq -r .check <<<"$output" | tr '\n' ' ')" = 'answer nodes ' ]
    redis_start frozen
    redis_freeze frozen
    within 8000 doctor --node "$(node frozen)" --node-timeout 300ms
    exits 69
    finds answer fail 'no answer in time'
}

@test "a login that is refused: 77" {
    diagnoses 77 --node "unix://:wrong@$(node a)"
    finds answer fail password
    rcli a acl setuser weak on '>weak' '~*' +ping +info +time
    diagnoses 77 --node "unix://weak:weak@$(node a)"
    finds lock fail
    finds answer ok
    finds version ok "(Redis|Valkey)"
}

@test "what this user may not read is unknown, and not a failure" {
    rcli a acl setuser plain on '>plain' '~*' +@all -config
    diagnoses 1 --node "unix://plain:plain@$(node a)"
    finds idling unknown
    finds lock ok
    gives 1 doctor --quiet --node "unix://plain:plain@$(node a)"
    [[ $output == *warn* && $output != *unknown* ]] || fail 'expected warnings only'
    rcli a acl setuser plain on '>plain' '~*' +@all -config -info
    diagnoses 1 --node "unix://plain:plain@$(node a)"
    for check in version role persistence memory uptime replicas clients; do
        finds "$check" unknown
    done
    finds lock ok
    redis_start renamed --rename-command CONFIG ''
    diagnoses 1 --node "$(node renamed)"
    finds idling unknown
    finds lock ok
}

@test "an even number of nodes, and one of three that is down: warnings" {
    DLOCK_NODES="$(node a) $(node b)" doctor
    exits 1
    finds nodes warn '2, of which 2 must answer'
    finds servers ok
    finds clocks ok
    DLOCK_NODES="$(node a) $(node b) $PWD/nobody" doctor
    exits 1
    finds nodes ok '3, of which 2'
    [ "$(jq -r 'select(.check == "answer") | .result' <<<"$output" | sort | tr '\n' ' ')" = 'fail ok ok ' ]
    DLOCK_NODES="$(node a) $PWD/nobody1 $PWD/nobody" doctor
    exits 69
}

@test "each node has a test lock of its own" {
    rcli b acl setuser held on '>held' '~*' +@all -del
    DLOCK_NODES="$(node a) unix://held:held@$(node b)" doctor
    exits 77
    [ "$(jq -r 'select(.check == "lock") | .result' <<<"$output" | paste -sd ' ')" = 'ok fail' ] || fail 'expected one of the second'
    # The guard is that of all the nodes: one node alone would have none.
    unset DLOCK_RESTART_GUARD
    DLOCK_TTL=1h DLOCK_NODES="$(node a) $(node b)" doctor
    exits 69
    [ "$(jq -r 'select(.check == "lock") | .result' <<<"$output" | paste -sd ' ')" = 'fail fail' ] || fail 'expected the guard'
}

@test "a renewal or a release of the test lock that fails: fail" {
    for failed in 2 3; do
        proxy_start "p$failed" a "error@$failed"
        diagnoses 69 --node "$(proxy_node "p$failed")"
        finds lock fail
    done
}

@test "one server under two names: fail, 69" {
    ln -s "$(node a)" link
    DLOCK_NODES="$(node a) $PWD/link $(node b)" doctor
    exits 69
    finds servers fail 'are the same server'
    complains 'same server'
}

@test "usage: no operands, no options of others" {
    refuses 64 'usage: dlock doctor \[options\]$' doctor "$key"
    refuses 64 '' doctor --force
}
