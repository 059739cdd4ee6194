# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154
#
# What the tests of the queue share, beside quorum.bash: waiters that stand in line one behind the
# other, and what the servers say of them.

# shellcheck source=tests/lib/quorum.bash disable=SC1091
. "${BASH_SOURCE[0]%/*}/quorum.bash"

# blocked [NODE]: how many clients are blocked at that node, n1 if none is named.
blocked() {
    local info
    info=$(rcli "${1:-n1}" info clients)
    [[ $info =~ blocked_clients:([0-9]+) ]] && echo "${BASH_REMATCH[1]}"
}

# queue_length_is COUNT [NODE]: so many stand in line there.
queue_length_is() {
    wait_until "[ \"\$(blocked ${2:-n1})\" = $1 ]" ||
        fail "expected $1 in line at ${2:-n1}, not $(blocked "${2:-n1}")"
}

# queue_waiters COUNT ARG...: so many `dlock run ARG...`, each once the one before it stands in line
# at n1.  They write their numbers, which go on from earlier calls, to "served"; pids are in $waiter.
queue_waiters() {
    local count=$1 before i
    shift
    before=$(blocked n1)
    [ -n "${waiter+set}" ] || waiter=()
    for ((i = 1; i <= count; i++)); do
        start run --wait 60s "$@" -- "$key" sh -c "$queued_command" sh "$((${#waiter[@]} + 1))"
        waiter+=("$bg")
        queue_length_is $((before + i))
    done
}

# What each of them does: nobody else may be inside, and whoever creates "stay" keeps it there.
# shellcheck disable=SC2016
queued_command='
mkdir inside 2>/dev/null || echo "$1 met somebody" >>overlaps
echo "$1" >>served
while [ -e stay ]; do sleep 0.1; done
rmdir inside'

# all_served ARG...: they all end well, and were served in this order.
all_served() {
    local pid
    for pid in "${waiter[@]}"; do
        finish "$pid" 60
        exits 0
    done
    no_overlap
    [ "$(paste -sd ' ' served)" = "$*" ] || fail "expected the order $*, not $(paste -sd ' ' served)"
}

# calls NODE COMMAND...: how often the server got these, from anybody but a script.
calls() {
    local node=$1 stats name n=0
    shift
    stats=$(rcli "$node" info commandstats)
    for name; do
        if [[ $stats =~ cmdstat_$name:calls=([0-9]+), ]]; then n=$((n + BASH_REMATCH[1])); fi
    done
    echo "$n"
}

# are_gone NODE KEY...: these keys of that node end soon, at the latest when the note of a waiter that
# was killed does (15 s).
are_gone() {
    wait_until "[ \"\$(rcli $1 exists ${*:2})\" = 0 ]" 20 || fail "$1: $(rcli "$1" keys '*')"
}

# nothing_stays KEY NODE...: no lock, no list, no blocked client, and a note only for as long as it may
# (of several nodes one may have been too slow to hear that the waiter was served).
nothing_stays() {
    local k=$1 node
    shift
    for node; do
        are_gone "$node" "$k" "{$k}:dlock:wake"
        wait_until "[ -z \"\$(rcli $node keys '*$k*:leave:*')\" ]" || fail "$node: $(rcli "$node" keys "*$k*")"
        case $(rcli "$node" pttl "{$k}:dlock:waiting") in
            -2) ;;
            ? | ?? | ??? | ???? | 1????) ;;
            *) fail "$node: a note without an end" ;;
        esac
        queue_length_is 0 "$node"
    done
}

# nothing_waits KEY NODE...: nor is there any note.
nothing_waits() {
    local k=$1 node
    shift
    for node; do are_gone "$node" "{$k}:dlock:waiting" "{$k}:dlock:wake"; done
}

# nothing_is_left KEY NODE...: all of that.
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
