# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154
#
# Shared by the tests of TLS, beside redis.bash: temporary certificates, and servers that use them.
#
#   setup_file()    { certificates; tls_start t good; }

# shellcheck source=tests/lib/redis.bash disable=SC1091
. "${BASH_SOURCE[0]%/*}/redis.bash"

certs() { echo "$(servers_root)/certs"; }

# sign NAME AUTHORITY SUBJECT [x509 option...]: the certificate NAME.crt and its key, for the names
# and addresses in SUBJECT ("DNS:localhost,IP:127.0.0.1").
sign() {
    local name=$1 authority=$2 subject=$3
    shift 3
    openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj "/CN=$name" \
        -keyout "$name.key" -out "$name.csr"
    openssl x509 -req -in "$name.csr" -CA "$authority.crt" -CAkey "$authority.key" -CAcreateserial \
        -extfile <(echo "subjectAltName=$subject") -out "$name.crt" "$@"
}

# authority NAME
authority() {
    openssl req -x509 -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 \
        -subj "/CN=$1" -keyout "$1.key" -out "$1.crt"
}

# certificates: two authorities; of the first the servers' good, expired and elsewhere (another
# host's) and the client's; of the second stranger.
certificates() {
    mkdir -p "$(certs)/folder"
    (
        cd "$(certs)"
        authority ca
        authority other-ca
        sign good ca DNS:localhost,DNS:redis.test,IP:127.0.0.1,IP:::1 -days 2
        # Older versions of openssl take no dates, newer ones no negative numbers.
        if [[ $(openssl x509 -help 2>&1) == *-not_after* ]]; then
            sign expired ca DNS:localhost,IP:127.0.0.1 -not_before 20200101000000Z -not_after 20200102000000Z
        else
            sign expired ca DNS:localhost,IP:127.0.0.1 -days -1
        fi
        sign elsewhere ca DNS:elsewhere.test,IP:192.0.2.1 -days 2
        sign stranger other-ca DNS:localhost,IP:127.0.0.1 -days 2
        sign client ca DNS:client -days 2
        cat client.crt client.key >both.pem
        chmod 600 both.pem
        openssl ec -aes128 -passout pass:hidden-word -in client.key -out locked.key
        cp ca.crt folder/
        openssl rehash folder
    ) >"$(servers_root)/certificates.log" 2>&1 || {
        cat "$(servers_root)/certificates.log" >&2
        return 1
    }
}

# tls_start NAME CERTIFICATE [redis-server argument...]: a server that speaks TLS, and nothing
# else, on a port; its unix socket is plain, for rcli.
tls_start() {
    local name=$1 certificate=$2 dir port i
    shift 2
    dir=$(server_dir "$name")
    for ((i = 0; i < 20; i++)); do
        port=$((20000 + RANDOM % 12768))
        if redis_start "$name" --tls-port "$port" --bind 127.0.0.1 --tls-auth-clients no \
            --tls-cert-file "$(certs)/$certificate.crt" --tls-key-file "$(certs)/$certificate.key" \
            --tls-ca-cert-file "$(certs)/ca.crt" "$@" 2>/dev/null; then
            echo "$port" >"$dir/port"
            return
        fi
        redis_stop "$name"
    done
    echo "no server $name with TLS: $(tail -n 3 "$dir/log")" >&2
    return 1
}

# tls_node NAME [HOST]
tls_node() { echo "rediss://${2:-127.0.0.1}:$(port_of "$1")"; }

# trust: the authority that signed the good ones.
trust() {
    DLOCK_CACERT=$(certs)/ca.crt
    export DLOCK_CACERT
}

# takes_and_releases FREE [SERVER]: acquire, renew, status and release of $key; FREE "$key" SERVER succeeds afterwards, and
# not before.
takes_and_releases() {
    take "$key"
    ! "$1" "$key" "${@:2}" 2>/dev/null || fail "expected $key to be held"
    works renew "$key" "$token"
    works status "$key"
    works status
    [[ $output == *"$key"* ]] || fail "expected the lock"
    works release "$key" "$token"
    "$1" "$key" "${@:2}"
}
