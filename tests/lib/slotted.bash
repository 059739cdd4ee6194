# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034,SC2154
#
# Shared by the tests of slots, on whatever service, beside waiters.bash: holders of slots, and a resource for several.  The
# library of the service has slot_name N, the name of the slot N of $key.

# shellcheck source=tests/lib/crowd.bash disable=SC1091
. "${BASH_SOURCE[0]%/*}/crowd.bash"

# take_slot N [ARG...]: acquire one of N slots of $key; its number, name and token are in $slot, $name and $token.
take_slot() {
    local json
    json=$(DLOCK_NODE_TIMEOUT=${DLOCK_NODE_TIMEOUT:-2s} dlock acquire --json --slots "$1" "${@:2}" -- "$key") || return
    { read -r slot && read -r name && read -r token; } < <(jq -r '.slot, .key, .token' <<<"$json")
}

# take_slots N [ARG...]: all of them; their tokens are in $tokens, by their numbers.
take_slots() {
    local i
    tokens=()
    for ((i = 0; i < $1; i++)); do
        take_slot "$@" || return
        tokens[slot]=$token
    done
    [ "${!tokens[*]}" = "$(seq -s ' ' "$1")" ] || fail "expected each slot once, not ${!tokens[*]}"
}

# end_slot SLOT [ARG...]: release the one that take_slots took.
end_slot() { dlock release "${@:2}" "$(slot_name "$1")" "${tokens[$1]}"; }

# The command of those that meet in N slots, `sh -c "$in_slot" sh N`: a folder for each slot, whose holders must not meet;
# the number of a slot is at most N.
in_slot='
[ "$DLOCK_SLOT" -ge 1 ] && [ "$DLOCK_SLOT" -le "$1" ] || echo "slot $DLOCK_SLOT of $1" >>overlaps
mkdir -p "slot-$DLOCK_SLOT"
cd "slot-$DLOCK_SLOT"
'"$enter"'
sleep 0.02
[ ! -e overlaps ] || cat overlaps >>../overlaps
echo "$DLOCK_SLOT $DLOCK_FENCE" >>../ran
'"$leave"

# queue_for N COUNT [ARG...]: COUNT more waiters for one of N slots, each when the one before is in the queue.  They write
# their numbers to "served", and stay as long as there is the file "stay".  Their pids are in $waiter.
queue_for() {
    local queued_command='echo "$1 $DLOCK_SLOT" >>served; while [ -e stay ]; do sleep 0.2; done'
    queue_waiters "$2" --slots "$1" "${@:3}"
}

# served_are ARG...: these are served, in this order.
served_are() {
    wait_until "[ -e served ] && [ \"\$(wc -l <served)\" -ge $# ]" 20 || fail "served: $(cat served)"
    [ "$(cut -d ' ' -f 1 served | paste -sd ' ')" = "$*" ] || fail "expected the order $*, not $(paste -sd , served)"
}
