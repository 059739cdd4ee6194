# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154
#
# Shared by the tests of a queue, on whatever service: waiters in a known order, and holders that must not meet.  The
# library of the service has queue_length, and queue_length_is COUNT, which waits for that length.

# no_overlap: there were never two holders in the resource.
no_overlap() { [ ! -e overlaps ] || fail "$(cat overlaps)"; }

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
queued_command='
mkdir inside 2>/dev/null || echo "$1 met somebody" >>overlaps
echo "$1" >>served
while [ -e stay ]; do sleep 0.2; done
rmdir inside'

# waiters_succeed: all of them, one after the other.
waiters_succeed() {
    local pid
    for pid in "${waiter[@]}"; do finishes 0 "$pid" 60; done
    no_overlap
}

# all_served ARG...: the same, in this order.
all_served() {
    waiters_succeed
    [ "$(paste -sd ' ' served)" = "$*" ] || fail "expected the order $*, not $(paste -sd ' ' served)"
}

# two_waiters: a `dlock run` and then a `dlock acquire` wait for $key, which is held; their pids are in $waiter.
two_waiters() {
    local before
    before=$(queue_length)
    start run --wait 60s --label 'the first' "$key" -- true
    waiter=("$bg")
    queue_length_is $((before + 1))
    start acquire --wait 60s --label second "$key"
    waiter+=("$bg")
    queue_length_is $((before + 2))
}

# two_are_listed [OTHER]: status --waiters lists these in order, and behind them OTHER ("LABEL COMMAND").
two_are_listed() {
    local listed
    works status --waiters --json "$key"
    listed=$(jq -r '"\(.label) \(.owner.command)"' <<<"$output" | paste -sd ,)
    [ "$listed" = "the first run,second acquire${1:+,$1}" ] || fail "listed: $listed"
    jq -s -e "map(.place) == [range(1; length + 1)] and .[0].owner.pid == ${waiter[0]} and .[0].since_ms > 0 and .[0].since_ms <= .[1].since_ms" <<<"$output" ||
        fail "expected the first"
    works status --waiters "$key"
    [[ ${lines[0]} == PLACE* && ${lines[1]} == *'@'*":${waiter[0]} "*'the first' && ${lines[2]} == *second ]] ||
        fail "other rows"
}

# the_second_leaves COUNT: it is ended, and status --waiters lists COUNT, the first waiter as the first.
the_second_leaves() {
    terminate "${waiter[1]}"
    try status --waiters --json "$key"
    [ "$(jq -r .label <<<"$output" | head -n 1)" = 'the first' ] || fail "expected the first"
    [ "${#lines[@]}" -eq "$1" ] || fail "expected $1"
}
