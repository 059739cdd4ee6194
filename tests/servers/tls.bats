#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# TLS, with temporary certificates: which servers dlock trusts, its own certificate, and that everything that
# works without TLS works with it.

load ../lib/tls

setup_file() {
    redis_start_tcp a
    certificates
    tls_start t good
}
setup() {
    test_begin
    trust
    DLOCK_NODES=$(tls_node t)
}

# ------------------------------------------------------------------------ whom dlock trusts

@test "a valid certificate: acquire, renew, status, release" { takes_and_releases is_free t; }

@test "the authority by --cacert, --cacertdir and their variables" {
    unset DLOCK_CACERT
    gives 1 status --cacert "$(certs)/ca.crt" "$key"
    gives 1 status --cacertdir "$(certs)/folder" "$key"
    gives 1 status --cacertdir "$PWD:$(certs)/folder" "$key"
    DLOCK_CACERTDIR=$(certs)/folder gives 1 status "$key"
    DLOCK_CACERT=$(certs)/other-ca.crt gives 1 status --cacert "$(certs)/ca.crt" "$key"
    printf 'cacert %s\n' "$(certs)/ca.crt" >config
    gives 1 status --config config "$key"
}

@test "another authority, or without --cacert those of the system: 69" {
    refuses 69 'its certificate is not accepted.*certificate' acquire --cacert "$(certs)/other-ca.crt" "$key"
    is_free "$key" t
    unset DLOCK_CACERT
    refuses 69 "$(port_of t): its certificate is not accepted for 127.0.0.1: .*; see --cacert" acquire "$key"
    SSL_CERT_FILE=$(certs)/ca.crt gives 1 status "$key"
    SSL_CERT_FILE=$(certs)/ca.crt refuses 69 'its certificate is not accepted' status --cacert "$(certs)/other-ca.crt" "$key"
}

@test "a certificate that has expired, of another host, of another authority: 69" {
    need_localhost
    for which in expired:expired elsewhere:mismatch stranger:issuer; do
        tls_start bad "${which%:*}"
        refuses 69 "its certificate is not accepted for 127.0.0.1: .*${which#*:}" acquire -N "$(tls_node bad)" "$key"
        try acquire -N "$(tls_node bad localhost)" "$key"
        fails 69 "its certificate is not accepted for localhost: .*${which#*:}"
        is_free "$key" bad
        redis_stop bad
    done
}

@test "--insecure accepts all of them" {
    tls_start bad stranger
    DLOCK_NODES=$(tls_node bad)
    gives 1 status --insecure "$key"
    DLOCK_INSECURE=1 gives 1 status "$key"
    DLOCK_INSECURE=0 gives 69 status "$key"
    DLOCK_INSECURE=maybe refuses 64 DLOCK_INSECURE status "$key"
}

@test "--insecure: --cacert is ignored, which is said; doctor warns" {
    warns 1 '--cacert is ignored' status --insecure "$key"
    unset DLOCK_CACERT
    warns 1 '--cacertdir is ignored' status --insecure --cacertdir "$(certs)/folder" "$key"
    quietly 1 status -N "$(node a)" --insecure --cacert nobody "$key"
    gives 1 doctor --insecure --json
    [ "$(jq -r 'select(.check == "tls") | .result' <<<"$output")" = warn ] || fail "expected a warning"
    try doctor --cacert "$(certs)/ca.crt" --json
    [ "$(jq -r 'select(.check == "tls") | .result' <<<"$output")" = ok ] || fail "expected no warning"
    try doctor -N "$(node a)" --json
    [[ $output != *'"tls"'* ]] || fail "expected nothing of TLS"
}

@test "the name is that of the URL, or that of --sni" {
    need_localhost
    gives 1 status -N "$(tls_node t localhost)" "$key"
    gives 1 status --sni redis.test "$key"
    DLOCK_SNI=redis.test gives 1 status "$key"
    refuses 64 "--sni: invalid name ''; it is empty" status --sni '' "$key"
    gives 69 status --sni other.test "$key"
    [[ $stderr == *'not accepted for other.test'*mismatch* ]] || fail "expected the name"
}

@test "the server receives the requested name, if it is no address" {
    need_localhost
    spawn sni stdbuf -oL openssl s_server -accept 127.0.0.1:0 -www -cert "$(certs)/good.crt" -key "$(certs)/good.key" \
        -servername good -cert2 "$(certs)/good.crt" -key2 "$(certs)/good.key"
    wait_until "grep -q '^ACCEPT' '$(server_dir sni)/out'"
    for name in 127.0.0.1 ::1 localhost redis.test; do
        gives 69 status -N "rediss://localhost:$(sed -n 's/^ACCEPT.*://p' "$(server_dir sni)/out" | head -n 1)" \
            --sni "$name" --node-timeout 1500ms "$key"
        case $name in *[0-9]) continue ;; esac # an address is no name
        wait_until "grep -q 'Hostname in TLS extension: .$name.' '$(server_dir sni)/out'"
    done
    [ "$(grep -c 'Hostname in TLS extension' "$(server_dir sni)/out")" -eq 2 ] || fail "the server got an address as a name"
}

# --------------------------------------------------------------------------- as whom it comes

@test "a server that requires a certificate gets it; without one, or with another: 77" {
    tls_start strict good --tls-auth-clients yes
    DLOCK_NODES=$(tls_node strict)
    refuses 77 'it requires a client certificate; see --cert' acquire "$key"
    try acquire --cert "$(certs)/stranger.crt" --key "$(certs)/stranger.key" "$key"
    fails 77 'it does not accept the client certificate'
    is_free "$key" strict
    gives 1 status --cert "$(certs)/client.crt" --key "$(certs)/client.key" "$key"
    DLOCK_CERT=$(certs)/client.crt DLOCK_CERT_KEY=$(certs)/client.key gives 1 status "$key"
    gives 1 status --cert "$(certs)/both.pem" "$key"
    # TLS 1.2 asks before the handshake is over.
    tls_start strict good --tls-auth-clients yes --tls-protocols TLSv1.2
    DLOCK_NODES=$(tls_node strict)
    refuses 77 'it requires a client certificate; see --cert' acquire "$key"
    gives 1 status --cert "$(certs)/both.pem" "$key"
}

@test "unusable files: 78, and the option and the file are named" {
    for file in nobody . "$(certs)/ca.key"; do
        refuses 78 "--cacert: $file cannot be used: " status --cacert "$file" "$key"
        refuses 78 "--cert: $file cannot be used: " status --cert "$file" "$key"
        try status --cert "$(certs)/client.crt" --key "${file/ca.key/client.csr}" "$key"
        fails 78 "--key: ${file/ca.key/client.csr} cannot be used: "
    done
    try status --cert "$(certs)/client.crt" --key nobody "$key"
    fails 78 'nobody cannot be used: No such file or directory'
    refuses 78 "--cert: " status --cert "$(certs)/client.crt" "$key"
    refuses 64 '--key.*--cert' status --key "$(certs)/client.key" "$key"
    refuses 78 '--key: .*mismatch' status --cert "$(certs)/client.crt" --key "$(certs)/stranger.key" "$key"
    # A passphrase is not asked for.
    refuses 78 '--key: ' status --cert "$(certs)/client.crt" --key "$(certs)/locked.key" "$key"
    # They are not read if no node uses TLS.
    quietly 1 status -N "$(node a)" --cacert nobody --cert nobody "$key"
}

# ------------------------------------------------------------------------ who doesn't speak it

@test "a plain server or a web server behind rediss://: 69, within the node timeout; a TLS server behind redis://: advice" {
    within 15000 refuses 69 'TLS' acquire --node-timeout 1s -N "rediss://127.0.0.1:$(port_of a)" "$key"
    is_free "$key"
    servers_start web tcp/http
    try acquire -N "rediss://127.0.0.1:$(cat "$(server_dir web)/http.port")" "$key"
    fails 69 'does not speak TLS.*use a URL without TLS'
    refuses 69 'speaks TLS.* use rediss://' acquire -N "redis://127.0.0.1:$(port_of t)" "$key"
    is_free "$key" t
}

# It takes hardly any time of the processor.
@test "a handshake that hangs, or a server that hangs after it, ends with the node timeout: 69" {
    servers_start hung tcp/silent tcp/close tcp/unanswered
    within 15000 attempt bash -c 'ulimit -t 1; exec "$@"' - "$DLOCK" acquire --node-timeout 3s \
        -N "rediss://127.0.0.1:$(cat "$(server_dir hung)/silent.port")" "$key"
    at_least 3000
    fails 69 'no TLS handshake in time; does it speak TLS'
    try acquire -N "rediss://127.0.0.1:$(cat "$(server_dir hung)/close.port")" "$key"
    fails 69 'closed the connection at the TLS handshake'
    within 15000 try acquire --node-timeout 500ms -N "rediss://127.0.0.1:$(cat "$(server_dir hung)/unanswered.port")" "$key"
    fails 69 'no connection in time'
    redis_freeze t
    within 15000 try acquire --node-timeout 500ms "$key"
    redis_thaw t
    fails 69 'in time'
}

# ---------------------------------------------------------------- everything else works the same

@test "run renews over TLS, and ends the command when the server has ended" {
    tls_start short good
    DLOCK_NODES=$(tls_node short)
    start_holding "$key" -v --ttl 6s -k 1300ms 'exec sleep 60'
    wait_until "[ \$(grep -c 'done\$' bg.1.err) -ge 2 ]"
    redis_stop short
    finishes 76
    has_ended "$command_pid"
}

@test "a wait over TLS ends when the lock is released" {
    take "$key"
    began=$SECONDS
    start acquire -v --wait 60s "$key"
    wait_until "[[ \$(rcli t info clients) == *blocked_clients:1* ]]"
    dlock release "$key" "$token"
    finishes 0
    [ "$(rcli t get "$key")" = "$output" ]
    # A waiter repeats its attempt after two seconds.
    [ $((SECONDS - began)) -ge 2 ] || [ "$(grep -c 'asking 1 node' <<<"$stderr")" -eq 2 ] ||
        fail "the lock was not handed over"
    wait_until "[ \$(rcli t exists '{$key}:dlock:wake' '{$key}:dlock:waiting') = 0 ]"
}

@test "re-entry, break and doctor over TLS" {
    try run "$key" -- sh -c 'exec "$DLOCK" run "$DLOCK_KEY" -- echo entered'
    prints entered
    is_free "$key" t
    take "$key"
    works break --force "$key"
    is_free "$key" t
    gives 1 doctor
    [[ $output != *fail* ]] || fail "expected no failure"
}

@test "user, password and database over TLS" {
    tls_start locked good --requirepass 's:e/c@r%t'
    DLOCK_NODES="rediss://:s%3ae%2fc%40r%25t@127.0.0.1:$(port_of locked)/3"
    take "$key"
    [ "$(REDISCLI_AUTH='s:e/c@r%t' rcli locked -n 3 get "$key")" = "$token" ]
    DLOCK_PASSWORD=wrong refuses 77 'wrong user or password' status -N "$(tls_node locked)" "$key"
}

@test "large replies over TLS: hundreds of locks are listed; large requests, which wait for the handshake" {
    rcli t flushall >/dev/null
    # Each SCAN answers with more than one record of TLS holds.
    rcli t eval 'for i = 1, 900 do redis.call("SET", "l" .. string.rep("x", 400) .. i, "t", "PX", 60000) end' 0
    # Slowly, so that records come in parts: what is read in vain has a limit, but this is not in vain.
    servers_start parts "tcp/late=$(port_of t)"
    works status -N "rediss://127.0.0.1:$(<"$(server_dir parts)/late.port")" --node-timeout 60s --json 'l*'
    [ "${#lines[@]}" -eq 900 ]
    works status -N "$(tls_node t)" $(printf 'free%0400d ' {1..99})
    [ "$(grep -c ' free ' <<<"$output")" -eq 99 ] || fail 'expected 99 locks'
}

@test "a quorum of three nodes under TLS, plain and on a unix socket; one may hang, or be gone" {
    redis_start u
    DLOCK_NODES="$(tls_node t) redis://127.0.0.1:$(port_of a) $(node u)"
    export DLOCK_NODE_TIMEOUT=2s
    take_on_all 3
    works release "$key" "$token"
    DLOCK_NODES="$(tls_node t) redis://127.0.0.1:$(port_of a) rediss://127.0.0.1:$(port_of a)x"
    DLOCK_NODES=${DLOCK_NODES%x}
    refuses 64 'same server' acquire "$key"
    servers_start hung tcp/silent
    DLOCK_NODES="rediss://127.0.0.1:$(<"$(server_dir hung)/silent.port") redis://127.0.0.1:$(port_of a) $(node u)"
    DLOCK_NODE_TIMEOUT=20s within 8000 works run "$key" -- true
    redis_stop u
    DLOCK_NODES="$(tls_node t) redis://127.0.0.1:$(port_of a) $(node u)"
    works acquire "$key-2" # the release may have been too slow for one of the nodes
}

@test "certificates are loaded when they are needed, and --version shows the library" {
    works --version
    [[ $output == *'TLS: OpenSSL '* ]] || fail "expected the library"
    # The binary of make dist-static loads no library.
    [[ $output != *', linked statically' ]] || return 0
    start_holding "$key" -N "$(node a)" 'exec sleep 60'
    grep -q libc.so "/proc/$bg/maps" # it can be read
    [ "$(grep -c libssl "/proc/$bg/maps")" -eq 0 ] || fail "libssl is loaded without need"
    terminate_command
    start_holding "$key" 'exec sleep 60'
    grep -q libssl "/proc/$bg/maps"
    terminate_command
}

@test "a first node whose connection takes longer than an attempt has the queue of the waiters" {
    for i in b c; do redis_start "$i"; done
    servers_start slow "tcp/late=$(port_of t)"
    DLOCK_NODES="$(server_dir t)/s $(node b) $(node c)"
    export DLOCK_NODE_TIMEOUT=2s
    for i in 1 2 3; do # it is waited for for 0.3 s; the host may stall as long
        take "$key-$i" --ttl 1m
        DLOCK_NODES="rediss://127.0.0.1:$(<"$(server_dir slow)/late.port") $(node b) $(node c)" \
            start run --wait 1m "$key-$i" -- true
        # It goes on connecting though the others have refused.
        wait_until "[ \"\$(rcli t zcard '{$key-$i}:dlock:waiting')\" = 1 ]"
        wait_until '[[ $(rcli t info clients)$(rcli b info clients) == *blocked_clients:1* ]]'
        [[ $(rcli t info clients) != *blocked_clients:1* ]] || i=10
        dlock release "$key-$bg_count" "$token"
        finishes 0
        [ "$i" -lt 10 ] || return 0
    done
    fail "expected the waiter at the first node"
}

@test "a release waits for a node whose connection takes longer" {
    for i in b c; do redis_start "$i"; done
    servers_start slow "tcp/late=$(port_of t)"
    export DLOCK_NODE_TIMEOUT=2s
    for i in 1 2 3; do # it is waited for for 0.1 s; the host may stall as long
        DLOCK_NODES="$(server_dir t)/s $(node b) $(node c)" take "$key-$i" --ttl 1m
        DLOCK_NODES="rediss://127.0.0.1:$(<"$(server_dir slow)/late.port") $(node b) $(node c)" works release "$key-$i" "$token"
        held "$key-$i" t || return 0
    done
    fail "expected that the release reaches that node, too"
}
