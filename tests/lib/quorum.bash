# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154
#
# Shared by the tests of a lock over several nodes, beside redis.bash: nodes n1 to n7, and ways to
# make some of them fail.

# shellcheck source=tests/lib/redis.bash disable=SC1091
. "${BASH_SOURCE[0]%/*}/redis.bash"
# shellcheck source=tests/lib/waiters.bash disable=SC1091
. "${BASH_SOURCE[0]%/*}/waiters.bash"

# nodes_start N: servers n1 to nN.
nodes_start() {
    local i
    for ((i = 1; i <= $1; i++)); do redis_start "n$i"; done
    echo "$1" >"$(servers_root)/nodes"
}

# node_names N: n1 to nN.
node_names() {
    local i
    for ((i = 1; i <= $1; i++)); do echo "n$i"; done
}

# nodes_restore: all of them run again, whatever the previous test did; test_begin calls it.
nodes_restore() {
    local root i
    find_root
    for ((i = 1; i <= $(<"$root/nodes"); i++)); do
        if runs "n$i"; then
            redis_thaw "n$i"
        else
            redis_start "n$i"
        fi
        if [ -f "$root/p$i/pid" ]; then proxy_rules "p$i"; fi
    done
}

# restart_empty NAME...: they end, and then they start again without their data.
restart_empty() {
    local name
    redis_stop "$@"
    for name; do redis_start "$name"; done
}

# use N: DLOCK_NODES is the sockets of n1 to nN.
use() {
    local i node root
    DLOCK_NODES=
    for ((i = 1; i <= $1; i++)); do
        find_node "n$i"
        DLOCK_NODES+="${DLOCK_NODES:+ }$node"
    done
    export DLOCK_NODES
}

# split_votes: two nodes have $key for one other client, two for another, and n5 for none.
split_votes() {
    local n tokens=("$OTHER_TOKEN" "$OTHER_TOKEN" "$THIRD_TOKEN" "$THIRD_TOKEN")
    for n in 1 2 3 4; do rcli "n$n" set "$key" "${tokens[n - 1]}" px 60000; done
}

# majority N
majority() { echo $(($1 / 2 + 1)); }

# on_all N ARG...: redis-cli ARG... on n1 to nN.
on_all() {
    local name n=$1
    shift
    for name in $(node_names "$n"); do rcli "$name" "$@"; done
}

# holders KEY N: the number of nodes of n1 to nN on which it is held.
holders() {
    local name count=0
    for name in $(node_names "$2"); do
        if held "$1" "$name"; then count=$((count + 1)); fi
    done
    echo "$count"
}

# held_everywhere KEY N TOKEN, free_everywhere KEY N: the state on the servers.
held_everywhere() {
    local name
    for name in $(node_names "$2"); do
        [ "$(rcli "$name" get "$1")" = "$3" ] || return 1
    done
}
free_everywhere() { [ "$(holders "$1" "$2")" -eq 0 ]; }

is_free_everywhere() {
    free_everywhere "$1" "$2" || fail "expected $1 to be free everywhere; it is held on $(holders "$1" "$2") of $2 nodes"
}

# ---------------------------------------------------------------- faults

# faults_start N: for each of n1 to nN also a proxy pN, and xN, a server with a TCP port that
# refuses connections, one that ignores a SYN, and one that accepts connections and does not reply.
faults_start() {
    local i
    for ((i = 1; i <= $1; i++)); do
        proxy_start "p$i" "n$i"
        servers_start "x$i" tcp/refused tcp/unanswered tcp/silent
    done
}

# fault KIND I: node number I gets a fault; its URL is in $faulty.
#   killed      its process has ended
#   hung        it is stopped (SIGSTOP)
#   refused     its port refuses connections; unanswered: ignores a SYN; silent: never replies
#   late        its replies come when the rule has gone
#   lost        it executes requests, and its replies are lost
#   cut         it executes requests, and closes the connection instead of replying
fault() {
    local port
    faulty=$(node "n$2")
    case $1 in
        killed) redis_stop "n$2" ;;
        hung) redis_freeze "n$2" ;;
        late) proxy_rules "p$2" delay=60 ;;
        lost) proxy_rules "p$2" drop ;;
        cut) proxy_rules "p$2" cut ;;
        *)
            port=$(cat "$(server_dir "x$2")/$1.port")
            faulty=127.0.0.1:$port
            ;;
    esac
    case $1 in
        late | lost | cut) faulty=$(proxy_node "p$2") ;;
    esac
}

# use_faulty KIND N COUNT: DLOCK_NODES is N nodes; the first COUNT have the fault.
use_faulty() {
    local i
    DLOCK_NODES=
    for ((i = 1; i <= $2; i++)); do
        if [ "$i" -le "$3" ]; then fault "$1" "$i"; else faulty=$(node "n$i"); fi
        DLOCK_NODES+="${DLOCK_NODES:+ }$faulty"
    done
    export DLOCK_NODES
}

# rolled_back KEY NODE: an attempt was granted by that server and rolled back.  The metadata, which is
# kept, shows the grant.
rolled_back() {
    wait_until "held '{$1}:dlock' '$2' && free '$1' '$2'" ||
        fail "$2: metadata '$(rcli "$2" hget "{$1}:dlock" token)', key '$(rcli "$2" get "$1")'"
}

# rolled_back_everywhere KIND KEY N COUNT: the same on all nodes, after a failed attempt with use_faulty.
rolled_back_everywhere() {
    local i
    for ((i = 1; i <= $3; i++)); do
        if [ "$i" -gt "$4" ]; then
            rolled_back "$2" "n$i"
            continue
        fi
        case $1 in
            hung)
                redis_thaw "n$i"
                rolled_back "$2" "n$i"
                ;;
            late)
                proxy_rules "p$i"
                rolled_back "$2" "n$i"
                ;;
            lost | cut) rolled_back "$2" "n$i" ;;
            killed) ;;
            *) is_free "$2" "n$i" ;;
        esac
    done
}

# ---------------------------------------------------------------- exclusion

# A resource that detects two holders: COMMAND for `dlock run ... sh -c "$resource"`.  Each visit is
# a line in "ran", each overlap one in "overlaps".
resource='
mkdir inside 2>/dev/null || echo "two inside" >>overlaps
last=$(cat last 2>/dev/null || echo 0)
[ "${DLOCK_FENCE:-$last}" -gt "$last" ] || echo "fence $DLOCK_FENCE after $last" >>overlaps
echo "$DLOCK_FENCE" >last
sleep 0.01
echo "$DLOCK_FENCE" >>ran
rmdir inside'

visits() { if [ -f ran ]; then wc -l <ran; else echo 0; fi; }

# ---------------------------------------------------------------- what start_servers and test_begin have

redis_servers=''
node_count=5
used=5
