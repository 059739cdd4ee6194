# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154
#
# Shared by the tests of a queue, on whatever service: waiters in a known order, and holders that must not meet.  The
# library of the service has queue_length, and queue_length_is COUNT, which waits for that length.

# no_overlap: there were never two holders in the resource.
no_overlap() {
    [ ! -e overlaps ] || fail "$(cat overlaps)"
}

# queue_waiters COUNT ARG...: start COUNT `dlock run ARG...`, each when the one before is in the queue.  They write their
# numbers, which continue those of earlier calls, to "served"; pids are in $waiter.
queue_waiters() {
    local count=$1 before i
    shift
    before=$(queue_length)
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
