# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154
#
# Shared by the tests of the queue, beside quorum.bash: waiters in a known order, and their state on
# the servers.

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

# queue_waiters COUNT ARG...: start COUNT `dlock run ARG...`, each when the one before is blocked at
# n1.  They write their numbers, which continue those of earlier calls, to "served"; pids are in $waiter.
queue_waiters() {
    local count=$1 before i
    shift
    before=$(blocked n1)
    [ -n "${waiter+set}" ] || waiter=()
    for ((i = 1; i <= count; i++)); do
        start run --wait 60s "$@" -- "$key" -- sh -c "$queued_command" sh "$((${#waiter[@]} + 1))"
        waiter+=("$bg")
        queue_length_is $((before + i))
    done
}

# Their command: it checks that nobody else is inside, and stays as long as the file "stay" exists.
# shellcheck disable=SC2016
queued_command='
mkdir inside 2>/dev/null || echo "$1 met somebody" >>overlaps
echo "$1" >>served
while [ -e stay ]; do sleep 0.1; done
rmdir inside'

# all_served ARG...: all of them succeeded, in this order.
all_served() {
    local pid
    for pid in "${waiter[@]}"; do
        finish "$pid" 60
        exits 0
    done
    no_overlap
    [ "$(paste -sd ' ' served)" = "$*" ] || fail "expected the order $*, not $(paste -sd ' ' served)"
}

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

# are_gone NODE KEY...: these keys of that node disappear, at the latest with the entry of a killed
# waiter (15 s).
are_gone() {
    wait_until "[ \"\$(rcli $1 exists ${*:2})\" = 0 ]" 20 || fail "$1: $(rcli "$1" keys '*')"
}

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

# shellcheck disable=SC2034
setup() {
    test_begin
    nodes_restore
    use 1
    facts="{$key}:dlock"
}
