# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034,SC2154
#
# What the tests of lost locks share, beside redis.bash.

# shellcheck source=tests/lib/redis.bash disable=SC1091
. "${BASH_SOURCE[0]%/*}/redis.bash"

node_timeout=2s
setup() {
    test_begin
    stalls_note
}

# A command that shows by the time of a file that it is alive, TERM or not.
alive_line='while :; do : >last; sleep 0.01; done'

last_alive_ms() { date -r last +%s%3N; }

# ended_before MS: the command was last alive before that time, if this machine let dlock run at that time.
ended_before() {
    local stalled longest_stall
    find_stalls 0
    [ "$(last_alive_ms)" -le $(($1 + longest_stall)) ] ||
        fail "the command was alive $(($(last_alive_ms) - $1)) ms too long; the longest stall took $longest_stall ms"
}

# sleep_until MS FROM: until so long since FROM, of now_ms.  In small steps, since a sleep that a freezer of processes
# interrupts may begin anew.
sleep_until() { while [ $((${EPOCHREALTIME/[.,]/} / 1000)) -lt $(($1 + $2)) ]; do short_sleep 0.05; done; }
