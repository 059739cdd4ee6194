# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034,SC2154
#
# Shared by the tests of slots on Redis, beside queue.bash.

# shellcheck source=tests/lib/queue.bash disable=SC1091
. "${BASH_SOURCE[0]%/*}/queue.bash"
# shellcheck source=tests/lib/slotted.bash disable=SC1091
. "${BASH_SOURCE[0]%/*}/slotted.bash"

slot_name() { echo "{$key}:slot-$1"; }

# take_slots_on_all NODES N [ARG...]: the same, on each of so many nodes.  On a busy machine a node that is not needed for a
# grant may be too slow for it.
take_slots_on_all() {
    local nodes=$1
    shift
    wait_until "take_slots $*; has_all_slots $nodes $1 || { end_slots $1; false; }"
}
has_all_slots() {
    local i name
    for name in $(node_names "$1"); do
        for ((i = 1; i <= $2; i++)); do held "{$key}:slot-$i" "$name" || return; done
    done
}
end_slots() {
    local i
    for ((i = 1; i <= $1; i++)); do end_slot "$i"; done
}

# no_slot_is_left NODE...: no lock, no list, no entry of a waiter.
no_slot_is_left() {
    local node
    for node; do
        wait_until "! rcli $node --scan --pattern '{$key}:slot*' | grep -qv ':dlock\$\|:history\$\|:holds\$'" 20 ||
            fail "$node: $(rcli "$node" keys '*')"
        queue_length_is 0 "$node"
    done
}
