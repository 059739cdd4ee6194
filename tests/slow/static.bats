#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# The tarball of make dist-static: its program in a folder that has nothing else, as the root of a file system; and the
# image of packaging/Containerfile.

load ../lib/examples
load ../lib/tls

setup_file() {
    certificates
    redis_start_tcp a
    tls_start t good
}

setup() {
    test_begin
    # The program and nothing else.
    mkdir root
    cp "$(unpacked)/bin/dlock" root/
    as_root=(unshare)
    [ "$(id -u)" -eq 0 ] || as_root+=(--map-root-user)
    unset LOGNAME USER SSL_CERT_FILE SSL_CERT_DIR DLOCK_CONFIG # there is no /dev/null
    DLOCK_NODES=$(node a)
}

# unpacked: the folder that the tarball contains.
unpacked() { realpath "$top_builddir"/static/dlock-*-linux-*/; }

# inside COMMAND [ARG...]: with the folder as the root of the file system.
inside() { attempt timeout -k 2 30 "${as_root[@]}" --root=root --wd=/ "$@"; }
inside_works() {
    inside "$@"
    succeeds
}

# ----------------------------------------------------------------------- the tarball

@test "the tarball has the program, the manual, the completions and the licenses" {
    archive=$(realpath "$top_builddir"/static/dlock-*-linux-*.tar.xz)
    name=$(basename "$archive" .tar.xz)
    [ "$name" = "dlock-$(dlock --version | sed -n 's/^dlock //p')-linux-$(uname -m)" ]
    tar tf "$archive" >files
    for file in bin/dlock share/man/man1/dlock.1 share/man/man7/dlock-protocol.7 share/man/man7/dlock-nodes.7 share/man/man7/dlock-slots.7 \
        share/bash-completion/completions/dlock share/zsh/site-functions/_dlock \
        share/fish/vendor_completions.d/dlock.fish share/doc/dlock/{COPYING,README.md} \
        share/doc/dlock/copyright.{libc6,libhiredis,libssl}; do
        grep -qxF "$name/$file" files || fail "not in the tarball: $file"
    done
    [ "$(grep -c '/bin/' files)" -eq 2 ]
    tar xf "$archive"
    cmp "$name/bin/dlock" root/dlock
    # OpenSSL is most of it: 6 MB with 3.0, 9 MB with 3.5.
    [ "$(stat -c %s root/dlock)" -lt 10000000 ] || fail "$(stat -c %s root/dlock) bytes"
}

# ---------------------------------------------------------------------- nothing else

@test "the program needs no other file: run, acquire, renew, status, release, doctor" {
    inside /dlock run "$key" -- /dlock status "$key"
    exits 0
    [[ $output == *"$key"*held* ]] || fail "expected the lock"
    is_free "$key"
    inside /dlock run "$key" -- /dlock status nothing
    exits 1
    inside_works /dlock acquire --ttl 1m "$key"
    token=$output
    is_held "$key"
    inside /dlock run "$key" -- /dlock --version
    fails 75 held
    inside_works /dlock renew --ttl 1m "$key" "$token"
    inside_works /dlock release "$key" "$token"
    is_free "$key"
    inside /dlock doctor
    [ "$status" -le 1 ] || fail "expected an answer"
    inside_works /dlock --version
    [[ $output == *'TLS: OpenSSL '*', linked statically' ]] || fail "expected the library"
    [ "$(find root -type f)" = root/dlock ]
}

@test "the command is killed with dlock" {
    take other
    # A command that waits.
    "${as_root[@]}" --root=root --wd=/ /dlock run "$key" -- /dlock run --wait 1m other -- /dlock --version \
        </dev/null >out 2>&1 3>&- 4>&- &
    bg=$!
    wait_until '[[ $(rcli a info clients) == *blocked_clients:1* ]]' || fail "$(cat out)"
    is_held "$key"
    kill -KILL "$bg"
    wait_until '[[ $(rcli a info clients) == *blocked_clients:0* ]]'
    dlock release other "$token"
}

# ----------------------------------------------------------------------------- names

# The services of names that a system has, which the static binary does not load.
foreign_services() {
    mkdir -p root/etc
    printf 'hosts: resolve [!UNAVAIL=return] myhostname\npasswd: sss\n' >root/etc/nsswitch.conf
}

@test "names of hosts are those of /etc/hosts, those of users in /etc/passwd" {
    foreign_services
    echo '127.0.0.1 redis.test' >root/etc/hosts
    echo 'operator:x:1234:1234::/:' >root/etc/passwd
    DLOCK_NODES=redis.test:$(port_of a)
    inside_works /dlock run "$key" -- /dlock status "$key"
    if [ "$(id -u)" -eq 0 ]; then
        as_root+=(--setuid=1234)
        inside_works /dlock run "$key" -- /dlock status --json "$key"
        [ "$(jq -r .owner.user <<<"$output")" = operator ] || fail "expected the user"
    fi
    DLOCK_NODES=elsewhere.test:$(port_of a)
    inside /dlock status "$key"
    exits 69
}

@test "names of hosts come from DNS" {
    foreign_services
    echo 'nameserver 127.0.0.1' >root/etc/resolv.conf
    cat >job <<'SCRIPT'
"$1" --port 6379 --bind 127.0.0.1 --save '' >redis.log &
until [ "$("$2" ping 2>/dev/null)" = PONG ]; do kill -0 $! && sleep 0.05 || exit; done
status=0
DLOCK_NODES=redis.test:6379 unshare --root=root --wd=/ /dlock run a -- /dlock status a || status=1
DLOCK_NODES=elsewhere.test:6379 unshare --root=root --wd=/ /dlock status a && status=2
kill $!
exit $status
SCRIPT
    yields 0 timeout -k 2 60 "${as_root[@]}" --net "$PYTHON" "$lib_dir/dns.py" redis.test 127.0.0.1 \
        sh job "$REDIS_SERVER" "$REDIS_CLI"
    [[ ${lines[1]} == 'a '*held* ]] || fail "expected the lock"
    [[ $stderr == *elsewhere.test* ]] || fail "expected a name that does not exist"
}

# ------------------------------------------------------------------------------- TLS

@test "TLS works with nothing but the authority: by --cacert, and where systems keep theirs" {
    DLOCK_NODES=$(tls_node t)
    inside /dlock status "$key"
    fails 69 'certificate is not accepted'
    cp "$(certs)"/{ca,other-ca}.crt root/
    inside_works /dlock run --cacert /ca.crt "$key" -- /dlock status --cacert /ca.crt "$key"
    for file in etc/ssl/certs/ca-certificates.crt etc/pki/tls/certs/ca-bundle.crt etc/ssl/ca-bundle.pem etc/ssl/cert.pem; do
        mkdir -p "root/${file%/*}"
        mv root/ca.crt "root/$file"
        inside_works /dlock run "$key" -- /dlock status "$key"
        SSL_CERT_FILE=/other-ca.crt inside /dlock status "$key"
        fails 69 'certificate is not accepted'
        mv "root/$file" root/ca.crt
    done
    SSL_CERT_FILE=/ca.crt inside_works /dlock run "$key" -- /dlock status "$key"
}

@test "no openssl.cnf makes dlock load a library" {
    DLOCK_NODES=$(tls_node t)
    cp "$(certs)/ca.crt" root/
    printf '%s\n' 'openssl_conf = all' 'config_diagnostics = 1' '[all]' 'providers = some' '[some]' 'legacy = one' \
        '[one]' 'module = /nothing.so' 'activate = 1' >root/openssl.cnf
    OPENSSL_CONF=/openssl.cnf inside_works /dlock run --cacert /ca.crt "$key" -- /dlock --version
}

# ------------------------------------------------------------------------- the image

# image: builds it, from Debian's image or what DEBIAN_IMAGE names, into the folder "image".
image() {
    command -v buildah >/dev/null || must_run "there is no buildah"
    attempt env STORAGE_DRIVER=vfs BUILDAH_ISOLATION=chroot buildah --root "$PWD/storage" --runroot "$PWD/state" \
        build ${DEBIAN_IMAGE:+--build-arg "DEBIAN=$DEBIAN_IMAGE"} -f "$top_builddir/static/source/packaging/Containerfile" \
        --output type=local,dest=image "$top_builddir/static/source"
    rm -rf storage state
    exits 0
    chmod 755 image # the folder itself is the builder's
}

@test "the image is small, and the examples for Kubernetes and GitLab take dlock from it" {
    pod='d["spec"]["jobTemplate"]["spec"]["template"]["spec"]' nobody=()
    image
    [ "$(du -sm image | cut -f 1)" -le 16 ] || fail "$(du -sm image)"
    grep -q 'BEGIN CERTIFICATE' image/etc/ssl/certs/ca-certificates.crt
    [ -s image/usr/share/doc/dlock/copyright.busybox ]
    # The init container copies it into the volume, as nobody.
    mkdir -m 777 image/dlock
    [ "$(id -u)" -ne 0 ] || nobody=(--setuid=65534 --setgid=65534)
    yaml kubernetes-cronjob.yaml "${pod}['initContainers'][0]['command']" >argv
    mapfile -t argv <argv
    PATH=/usr/bin:/bin:$PATH passes "${as_root[@]}" "${nobody[@]}" --root=image --wd=/ "${argv[@]}"
    # The container of the job has it, and its own commands.
    rm root/dlock
    mkdir root/bin root/dlock
    cp image/dlock/dlock root/dlock/
    cp image/bin/busybox root/bin/sh
    printf '#!/bin/sh\necho sent as $DLOCK_KEY\n' >root/bin/send-invoices
    chmod +x root/bin/send-invoices
    yaml kubernetes-cronjob.yaml "[x for c in ${pod}['containers'] for x in c['command'] + c['args']]" >argv
    mapfile -t argv <argv
    PATH=/bin:$PATH inside_works "${argv[@]}"
    prints 'sent as billing'
    # The job before the deployment copies it into its folder, which is an artifact.
    mkdir -m 777 image/builds
    yaml gitlab-ci.yml 'd["dlock"]["script"]' >image/builds/script
    PATH=/usr/bin:/bin:$PATH passes "${as_root[@]}" "${nobody[@]}" --root=image --wd=/builds sh -eu script
    yaml gitlab-ci.yml 'd["dlock"]["artifacts"]["paths"]' >paths
    [ "$(cat paths)" = dlock ]
    cmp image/builds/dlock image/usr/bin/dlock
}
