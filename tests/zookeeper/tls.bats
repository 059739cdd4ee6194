#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# zks://: a private ensemble of three servers with TLS, the third of which demands a certificate of its clients.  And the
# limit of connections of one host.

load ../lib/tls
load ../lib/zookeeper

setup_file() {
    [ -z "$(zk_lacks)" ] || return 0
    certificates
    # ZooKeeper tells the kind of a file by its name, and wants key and certificate in one.
    cat "$(certs)/good.crt" "$(certs)/good.key" >"$(certs)/good.pem"
    cp "$(certs)/ca.crt" "$(certs)/ca.pem"
    zk_start --sync 40 --tls "$(certs)" --connections 20
}
setup() {
    local jar
    zk_real
    for jar in netty-codec netty-resolver; do
        [ -f "/usr/share/java/$jar.jar" ] || must_run "the package libnetty-java is not installed"
    done
    zk_begin
    read -ra zk_secure <"$zk_dir/secure"
    trust
    # The first handshakes of a Java that has just started take seconds on a busy machine.
    export DLOCK_NODE_TIMEOUT=10s
    DLOCK_NODES=$(zks_url 1 2)
}

# zks_url N...: the URL of these servers, with TLS.
zks_url() {
    local n list=
    for n; do list+=${list:+,}127.0.0.1:${zk_secure[n - 1]}; done
    echo "zks://$list$chroot"
}

@test "a valid certificate: every command, a lock that is renewed, a wait, a handover and a break" {
    takes_and_releases zk_is_free
    take "$key"
    works break --force "$key"
    try doctor --json
    [ "$status" -le 1 ] || fail "expected no failure"
    # Of two servers in the URL one demands no certificate, and both serve.
    [ "$(grep -c '"answer".*"ok"' <<<"$output")" -eq 2 ] || fail "expected two servers"
    # Each renewal is a connection, and so a handshake.
    start_holding "$key" -v --ttl 6s 'while [ ! -e stop ]; do sleep 0.2; done'
    wait_until '[ "$(grep -c "renewing the lease" bg.1.err)" -ge 4 ]' 30
    stops 0
    zk_is_free "$key"
    start_holding "$key" --ttl 10s 'sleep 60'
    holder=$bg
    start run --wait 60s "$key" -- touch entered
    queue_length_is 2
    works break --force "$key"
    finishes 76 "$holder"
    finishes 0
    [ -e entered ] || fail "expected it to run"
}

@test "a certificate of another authority or for another name: 69; --insecure accepts it" {
    refuses 69 'its certificate is not accepted for 127.0.0.1: .*; see --cacert' run --cacert "$(certs)/other-ca.crt" "$key" -- touch ran
    unset DLOCK_CACERT
    refuses 69 'its certificate is not accepted for 127.0.0.1: .*; see --cacert' run "$key" -- touch ran
    refuses 69 'its certificate is not accepted for other.test: .*' run --cacert "$(certs)/ca.crt" --sni other.test "$key" -- touch ran
    [ ! -e ran ] || fail "the command was started"
    works run --insecure "$key" -- touch ran
    zk_is_free "$key"
}

@test "a server that requires a client certificate: 77 without one, and with one of another authority" {
    DLOCK_NODES=$(zks_url 3)
    refuses 77 'it requires a client certificate; see --cert' run "$key" -- touch ran
    gives 77 doctor
    refuses 77 'it does not accept the client certificate' run --cert "$(certs)/stranger.crt" --key "$(certs)/stranger.key" "$key" -- touch ran
    [ ! -e ran ] || fail "the command was started"
    zk_is_free "$key"
    works run --cert "$(certs)/both.pem" "$key" -- touch ran
    works run --cert "$(certs)/client.crt" --key "$(certs)/client.key" "$key" -- true
}

@test "zk:// on a port with TLS, and zks:// on one without: 69, with advice" {
    within 15000 refuses 69 'or want TLS \(zks://\)' run -N "zk://127.0.0.1:${zk_secure[0]}$chroot" --node-timeout 2s "$key" -- true
    within 15000 refuses 69 'TLS handshake; does it speak TLS' run -N "zks://127.0.0.1:${zk_direct[0]}$chroot" --node-timeout 2s "$key" -- true
}

# fill: as many connections to the second server as it takes from one host, in $fds; older ones are closed.
fill() {
    for fd in "${fds[@]}"; do exec {fd}>&-; done
    fds=()
    for ((i = 0; i < 20; i++)); do
        exec {fd}<>"/dev/tcp/127.0.0.1/${zk_direct[1]}"
        fds+=("$fd")
    done
}

@test "more connections than maxClientCnxns: 69, and the message names the setting; another server is used" {
    fds=()
    # The server counts them a little later, and closes those without a session after ten seconds.
    wait_until 'fill; try run -N "zk://127.0.0.1:${zk_direct[1]}$chroot" "$key" -- true; [ "$status" -ne 0 ]'
    fails 69 "127.0.0.1:${zk_direct[1]}: the server closed the connection without an answer; .*maxClientCnxns"
    DLOCK_NODES="zk://127.0.0.1:${zk_direct[1]},127.0.0.1:${zk_direct[0]}$chroot"
    for i in 1 2 3 4; do
        works run "$key" -- true
    done
    for fd in "${fds[@]}"; do exec {fd}>&-; done
    DLOCK_NODES=zk://127.0.0.1:${zk_direct[1]}$chroot
    wait_until '"$DLOCK" run "$key" -- true' || fail "the connections have ended, and it is still refused"
}

@test "more connections than maxClientCnxns: a holder keeps its place, and its lock, over renewals" {
    DLOCK_NODES=zk://127.0.0.1:${zk_direct[1]}$chroot hold_beating --ttl 6s
    # Newcomers, who take every place that is free.
    while [ ! -e stop ]; do
        exec {fd}<>"/dev/tcp/127.0.0.1/${zk_direct[1]}"
        short_sleep 0.05
    done &
    wait_until '! "$DLOCK" run -N "zk://127.0.0.1:${zk_direct[1]}$chroot" --node-timeout 500ms other -- true'
    stays_renewed
    stops 0 "$holder"
}
