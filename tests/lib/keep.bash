# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2016,SC2030,SC2031,SC2034,SC2154
#
# Scripts that hold a lock by acquire --keep, beside redis.bash.

# shellcheck source=tests/lib/redis.bash disable=SC1091
. "${BASH_SOURCE[0]%/*}/redis.bash"

node_timeout=2s

# script LINE...: a script in the background whose shell is $shell; its process is $bg.
script() {
    rm -f going end
    printf '%s\n' "$@" >script
    set -m
    key=$key "${shell:-bash}" script </dev/null >out 2>err 3>&- 4>&- &
    bg=$!
    set +m
}

# A command of a trap: dlock sends its signal first, then it says so, if the process still runs.
until_said='until grep -q "; sent SIGTERM" err later 2>/dev/null; do sleep 0.1; done'

# goes: wait until the script has reached its line ": >going".
goes() {
    wait_until "[ -e going ] || ! alive $bg"
    [ -e going ] || fail "the script has ended: $(cat out err)"
    keeper=$(keepers)
}

# script_goes LINE...: both.
script_goes() {
    script "$@"
    goes
}

# ends STATUS: the script ends with it.
ends() {
    wait_until "! alive $bg" 20
    status=0
    wait "$bg" || status=$?
    attempted=script
    attempt_read out err
    exits "$1"
}

# no_keeper: they end.
no_keeper() { wait_until '[ -z "$(keepers)" ]'; }

# loses_lock STATUS: the lock is gone, and the script ends with it.
loses_lock() {
    rcli a del "$key"
    ends "$1"
    no_keeper
}

# comes_to_its_end: the script, which lives on until then.
comes_to_its_end() {
    : >end
    ends 0
}
lives_on='until [ -e end ]; do sleep 0.2; done'
