# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154
#
# Shared by the tests of the queue, beside quorum.bash: the state of waiters on the servers.

# shellcheck source=tests/lib/quorum.bash disable=SC1091
. "${BASH_SOURCE[0]%/*}/quorum.bash"

# blocked [NODE]: the number of clients that are blocked at that node, by default n1.
blocked() {
    local info
    info=$(rcli "${1:-n1}" info clients)
    [[ $info =~ blocked_clients:([0-9]+) ]] && echo "${BASH_REMATCH[1]}"
}

# queue_length_is COUNT [NODE]: COUNT clients are blocked there.
queue_length_is() {
    wait_until "[ \"\$(blocked ${2:-n1})\" = $1 ]" ||
        fail "expected $1 blocked clients at ${2:-n1}, not $(blocked "${2:-n1}")"
}

queue_length() { blocked n1; }

# calls NODE COMMAND...: how often clients called these commands, without the calls of scripts.
calls() {
    local node=$1 stats name n=0
    shift
    stats=$(rcli "$node" info commandstats)
    for name; do
        if [[ $stats =~ cmdstat_$name:calls=([0-9]+), ]]; then n=$((n + BASH_REMATCH[1])); fi
    done
    echo "$n"
}

# are_up SECONDS NODE...: they have been running for that long.
are_up() {
    local node info
    for node in "${@:2}"; do
        info=$(rcli "$node" info server)
        [[ $info =~ uptime_in_seconds:([0-9]+) ]] && [ "${BASH_REMATCH[1]}" -ge "$1" ] || return 1
    done
}

# storm COUNT VISITS ONE: COUNT contenders on five nodes, two of which are killed and restarted empty.  Each calls `ONE I`, with
# its number, which execs dlock, until it has succeeded three times; there are VISITS before the nodes start again.
storm() {
    local i contenders=()
    use 5
    DLOCK_RESTART_GUARD=5s
    wait_until "are_up 7 $(node_names 5 | paste -sd ' ')" 20
    for ((i = 0; i < $1; i++)); do
        for _ in 1 2 3; do
            until ("$3" "$i"); do echo "$?" >>failed; done
        done </dev/null >/dev/null 2>>errors 3>&- 4>&- &
        contenders+=($!)
    done
    wait_until '[ "$(visits)" -ge 8 ]' 60
    redis_stop n1 n4
    wait_until "[ \"\$(visits)\" -ge $2 ]" 60
    nodes_restore
    wait "${contenders[@]}" || true
    # A holder to which two of just three nodes were killed has lost the lock: 76.
    [ ! -e failed ] || ! grep -vx 76 failed || fail "$(tail -n 3 errors)"
    [ ! -s overlaps ] || fail "$(cat overlaps)"
    [ "$(visits)" -ge $(($1 * 3)) ] || fail "$(visits) visits"
}

# storms ARG...: a dlock of such a contender.
storms() { exec timeout -k 2 90 "$DLOCK" run --ttl 5s --node-timeout 2s --wait 80s "$@"; }

# are_gone NODE KEY...: these keys of that node disappear, at the latest with the entry of a killed
# waiter (15 s).
are_gone() { wait_until "[ \"\$(rcli $1 exists ${*:2})\" = 0 ]" 20 || fail "$1: $(rcli "$1" keys '*')"; }

# nothing_stays KEY NODE...: no lock, no list, no blocked client, and entries only with an expiry (a
# slow node may have missed that a waiter was served).
nothing_stays() {
    local k=$1 node
    shift
    for node; do
        are_gone "$node" "$k" "{$k}:dlock:wake"
        wait_until "[ -z \"\$(rcli $node keys '*$k*:leave:*')\" ]" || fail "$node: $(rcli "$node" keys "*$k*")"
        case $(rcli "$node" pttl "{$k}:dlock:waiting") in
            -2) ;;
            ? | ?? | ??? | ???? | 1????) ;;
            *) fail "$node: an entry without an expiry" ;;
        esac
        queue_length_is 0 "$node"
    done
}

# nothing_waits KEY NODE...: there are no entries and no handoff token.
nothing_waits() {
    local k=$1 node
    shift
    for node; do are_gone "$node" "{$k}:dlock:waiting" "{$k}:dlock:wake"; done
}

# nothing_is_left KEY NODE...: both.
nothing_is_left() {
    nothing_waits "$@"
    nothing_stays "$@"
}

# ---------------------------------------------------------------- hooks

used=1
setup() {
    test_begin
    metadata="{$key}:dlock"
}
