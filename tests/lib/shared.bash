# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034,SC2154
#
# Shared by the tests of shared locks, beside queue.bash: readers that stay, and those who wait.

# shellcheck source=tests/lib/queue.bash disable=SC1091
. "${BASH_SOURCE[0]%/*}/queue.bash"

# Who waits writes its number N to "served", and stays until there is the file "end-N", as long as there is the file "stay".
queued_command='echo "$1" >>served; while [ -e stay ] && [ ! -e "end-$1" ]; do sleep 0.1; done'

# share [ARG...]: acquire $key as a reader; the token is in $token.
share() { take "$key" --shared "$@"; }

# readers_wait COUNT, writers_wait COUNT: so many more wait for $key, each when the one before is in the queue.
readers_wait() { queue_waiters "$1" --shared; }
writers_wait() { queue_waiters "$1"; }

# served_are NUMBER...: exactly these were served so far, in any order.
served_are() {
    wait_until "[ -e served ] && [ \"\$(wc -l <served)\" -ge $# ]" 20 || fail "served: $(cat served)"
    [ "$(sort -n served | paste -sd ' ')" = "$*" ] || fail "expected $*, not $(paste -sd ' ' served)"
}

# has_holders N: so many hold $key.
has_holders() { wait_until "[[ \$(dlock status --json '$key') == *'\"holders\":$1,'* ]]" || fail "$(dlock status "$key")"; }

# Commands of readers and writers that meet.  Who is beside a writer is a line in "overlaps", each visit one in "ran".
read_it='touch "r-$$"; sleep 0.02; ls | grep "^w-" >>overlaps; rm "r-$$"; echo "r $DLOCK_FENCE" >>ran'
write_it='touch "w-$$"; sleep 0.02; ls | grep "^[rw]-" | grep -vx "w-$$" >>overlaps; rm "w-$$"; echo "w $DLOCK_FENCE" >>ran'
