# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154
#
# Shared by the tests of services, beside redis.bash: masters with replicas and sentinels, and Redis
# Clusters, all of real servers on TCP ports.

# shellcheck source=tests/lib/redis.bash disable=SC1091
. "${BASH_SOURCE[0]%/*}/redis.bash"

# place NAME: its host:port.
place() { echo "127.0.0.1:$(port_of "$1")"; }

# places NAME...: several of them, as in a URL.
places() {
    local name list=
    for name; do list+=${list:+,}$(place "$name"); done
    echo "$list"
}

# is_master NAME
is_master() { [ "$(rcli "$1" role | head -n 1)" = master ]; }

# replica_start NAME MASTER [redis-server argument...]: returns when it has the data of the master.
replica_start() {
    local name=$1 master=$2
    shift 2
    redis_start_tcp "$name" 127.0.0.1 --replicaof 127.0.0.1 "$(port_of "$master")" --repl-diskless-sync-delay 0 "$@"
    wait_until "rcli '$name' info replication | grep -q '^master_link_status:up'" 30
}

# sentinel_start NAME MASTER SERVICE [QUORUM [line of its configuration...]]: $down_after_ms is how
# long the master must be silent before a replica is promoted.
sentinel_start() {
    local name=$1 master=$2 service=$3 quorum=${4:-2} dir port i
    shift 3
    [ $# -eq 0 ] || shift
    dir=$(server_dir "$name")
    mkdir -p "$dir"
    for ((i = 0; i < 20; i++)); do
        port=$((20000 + RANDOM % 12768))
        cat >"$dir/sentinel.conf" <<EOF
port $port
bind 127.0.0.1
unixsocket $dir/s
dir $dir
logfile $dir/log
sentinel monitor $service 127.0.0.1 $(port_of "$master") $quorum
sentinel down-after-milliseconds $service ${down_after_ms:-60000}
sentinel failover-timeout $service 5000
$(printf '%s\n' "$@")
EOF
        spawn "$name" "$REDIS_SERVER" "$dir/sentinel.conf" --sentinel
        wait_until "redis_answers '$name' || ! alive $(server_pid "$name")"
        if redis_answers "$name"; then
            echo "$port" >"$dir/port"
            return
        fi
        redis_stop "$name"
    done
    echo "no sentinel $name: $(tail -n 3 "$dir/log")" >&2
    return 1
}

# sentinels_agree SERVICE REPLICAS NAME...: each of them knows the others and the replicas.
sentinels_agree() {
    local service=$1 replicas=$2 name master
    shift 2
    for name; do
        master=$(rcli "$name" sentinel master "$service" | paste - -)
        grep -qx "num-other-sentinels.$(($# - 1))" <<<"$master" || return
        grep -qx "num-slaves.$replicas" <<<"$master" || return
        grep -qx "flags.master" <<<"$master" || return
    done
}

# cluster_node_start NAME [redis-server argument...]: its bus has its own port.
cluster_node_start() {
    local name=$1 i dir
    shift
    dir=$(server_dir "$name")
    for ((i = 0; i < 20; i++)); do
        rm -f "$dir/nodes.conf"
        if redis_start_tcp "$name" 127.0.0.1 --cluster-enabled yes --cluster-config-file "$dir/nodes.conf" \
            --cluster-node-timeout 1500 --cluster-port $((20000 + RANDOM % 12768)) --cluster-replica-validity-factor 0 \
            --repl-diskless-sync-delay 0 "$@" && rcli "$name" cluster info >/dev/null; then
            return
        fi
    done
    return 1
}

# cluster_meet NAME...: all of them know the first one.
cluster_meet() {
    local first=$1 name
    for name; do
        rcli "$first" cluster meet 127.0.0.1 "$(port_of "$name")" \
            "$(rcli "$name" config get cluster-port | tail -n 1)" >/dev/null
    done
}

cluster_id() { rcli "$1" cluster myid; }

# cluster_ok NAME...: each reports that all slots are served, and knows that many nodes.
cluster_ok() {
    local name
    for name; do
        rcli "$name" cluster info | tr -d '\r' | grep -qx 'cluster_state:ok' || return
        [ "$(rcli "$name" cluster nodes | grep -vc handshake)" -eq $# ] || return
    done
}

# cluster_start PREFIX MASTERS REPLICAS: masters PREFIX1 to PREFIXn share the slots; the replicas are
# distributed over them in turn.
cluster_start() {
    local prefix=$1 masters=$2 replicas=$3 i names=()
    for ((i = 1; i <= masters + replicas; i++)); do
        cluster_node_start "$prefix$i"
        names+=("$prefix$i")
    done
    for ((i = 1; i <= masters; i++)); do
        rcli "$prefix$i" cluster addslotsrange $((16384 * (i - 1) / masters)) $((16384 * i / masters - 1)) >/dev/null
        rcli "$prefix$i" cluster set-config-epoch "$i" >/dev/null
    done
    cluster_meet "${names[@]}"
    wait_until "cluster_ok ${names[*]}" 60
    for ((i = 1; i <= replicas; i++)); do
        rcli "$prefix$((masters + i))" cluster replicate "$(cluster_id "$prefix$(((i - 1) % masters + 1))")" >/dev/null
    done
    for ((i = 1; i <= replicas; i++)); do
        wait_until "rcli '$prefix$((masters + i))' info replication | grep -q '^master_link_status:up'" 60
    done
    wait_until "cluster_ok ${names[*]}" 60
}

# cluster_owner KEY NAME...: the one that has the slot of the key.
cluster_owner() {
    local key=$1 name slot
    shift
    slot=$(rcli "$1" cluster keyslot "$key")
    for name; do
        if rcli "$name" cluster nodes | awk -v slot="$slot" '
            $3 ~ /myself/ && $3 ~ /master/ {
                for (i = 9; i <= NF; i++) {
                    n = split($i, range, "-")
                    if ($i !~ /\[/ && slot >= range[1] && slot <= range[n]) found = 1
                }
            }
            END { exit !found }'; then
            echo "$name"
            return
        fi
    done
    return 1
}

# cluster_move KEY FROM TO: move the slot of the key to another master, with all its keys, one by one.
cluster_move() {
    local slot from=$2 to=$3 key
    cluster_move_begin "$@"
    slot=$(rcli "$from" cluster keyslot "$1")
    while key=$(rcli "$from" cluster getkeysinslot "$slot" 1) && [ -n "$key" ]; do
        rcli "$from" migrate 127.0.0.1 "$(port_of "$to")" "$key" 0 5000 >/dev/null
    done
    for name in "$to" "$from"; do
        rcli "$name" cluster setslot "$slot" node "$(cluster_id "$to")" >/dev/null
    done
}

# cluster_move_begin KEY FROM TO: begin the move; no key is moved yet.
cluster_move_begin() {
    local slot
    slot=$(rcli "$2" cluster keyslot "$1")
    rcli "$3" cluster setslot "$slot" importing "$(cluster_id "$2")" >/dev/null
    rcli "$2" cluster setslot "$slot" migrating "$(cluster_id "$3")" >/dev/null
}

# readers_and_writer NAME: readers share $key, a writer waits for them, and they for the writer; NAME is the server.
readers_and_writer() {
    token=$(dlock acquire --shared "$key")
    works run --shared "$key" -- true
    refuses 75 'shared by 1 reader, ' run "$key" -- true
    start run --wait 60s "$key" -- true
    wait_until "[[ \$(rcli $1 info clients) == *blocked_clients:1* ]]"
    refuses 75 'a writer waits' run --shared "$key" -- true
    works release "$key" "$token"
    finishes 0
}
