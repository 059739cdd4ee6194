#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# What somebody on the path, or a server with a certificate, can do through TLS: records without end, and data that nobody
# asked for.  The servers are those of tlsservers.py.

load ../lib/tls

setup_file() {
    redis_start a
    redis_start b
    certificates
    tls_servers_start on-path hello hellos alert ccs empty refuse
    tls_servers_start holder surplus says update ticket again
}
setup() {
    test_begin
    trust
}

# tls_servers_start NAME MODE...
tls_servers_start() {
    local name=$1 dir
    dir=$(server_dir "$name")
    shift
    spawn "$name" "$PYTHON" "$lib_dir/tlsservers.py" "$dir" "$(certs)/good.crt" "$(certs)/good.key" "$@"
    wait_until "is_ready '$name'" || cat "$dir/out" >&2
}

# at SERVER MODE: its address.
at() { echo "127.0.0.1:$(<"$(server_dir "$1")/$2.port")"; }

# ends_in_time SCHEME SERVER MODE...: a command on such a server fails about the node timeout.
ends_in_time() {
    local scheme=$1 server=$2 mode
    shift 2
    for mode; do
        within 8000 gives 69 acquire --node-timeout 200ms -N "$scheme://$(at "$server" "$mode")" "$key"
        complains "$(at "$server" "$mode")"
    done
}

@test "records without end of somebody on the path: 69 in time" {
    ends_in_time rediss on-path hello hellos alert ccs empty
    ends_in_time zks on-path hello hellos alert ccs empty
    refuses 69 'TLS failed: it sends records without end, and no data' acquire --node-timeout 20s -N "rediss://$(at on-path hello)" "$key"
}

@test "records without end of a server with a certificate: 69 in time" {
    ends_in_time rediss holder update ticket again
    ends_in_time zks holder update ticket again
}

@test "SIGTERM ends a start that meets records without end" {
    for node in "rediss://$(at on-path hellos)" "zks://$(at on-path hellos)" "rediss://$(at holder update)"; do
        start run -v --node-wait forever -N "$node" "$key" -- touch ran
        wait_until '[ "$(wc -l <bg.$bg_count.err)" -ge 2 ]'
        terminate
        [ ! -e ran ]
    done
}

@test "records without end on one link of three do not end the command" {
    for server in on-path:hellos holder:update; do
        start_holding "$key" -v --ttl 6s -N "$(node a)" -N "$(node b)" -N "rediss://$(at "${server%:*}" "${server#*:}")" \
            'while [ ! -e stop ]; do sleep 0.2; done'
        is_renewed "$key"
        is_renewed "$key"
        stops 0
        rm stop
    done
}

@test "an alert before a certificate was asked for is no word about certificates" {
    for scheme in rediss zks; do
        refuses 69 'TLS failed: .*handshake failure' acquire -N "$scheme://$(at on-path refuse)" "$key"
    done
}

@test "a world-readable private key causes a warning" {
    node=rediss://$(at on-path refuse)
    cp "$(certs)/both.pem" "$(certs)/client.crt" "$(certs)/client.key" .
    chmod 644 both.pem client.key
    try status -N "$node" --cert client.crt --key client.key "$key"
    [[ $stderr == *'the private key client.key is world-readable; use chmod o-r'* ]] || fail 'expected a warning'
    try status -N "$node" --cert both.pem "$key"
    [[ $stderr == *'the private key both.pem is world-readable; use chmod o-r'* ]] || fail 'expected a warning'
    chmod 640 both.pem client.key
    try status -N "$node" --cert client.crt --key client.key "$key"
    complains 'TLS failed'
}

@test "more data than was asked for, in the record of an answer, crashes nothing" {
    for node in "rediss+sentinel://$(at holder surplus)/service" "rediss+cluster://$(at holder surplus)" \
        "rediss://$(at holder surplus)"; do
        within 15000 refuses 69 'ERR no' acquire -N "$node" "$key"
    done
}
