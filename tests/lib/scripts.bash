# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034,SC2154
#
# Shared by the tests of the scripts of src/lua: calls of them with EVAL, on the server a.

# shellcheck source=tests/lib/redis.bash disable=SC1091
. "${BASH_SOURCE[0]%/*}/redis.bash"

# The key of the metadata is in $meta; and three tokens.
setup() {
    test_begin
    meta="{$key}:dlock"
    one=$OTHER_TOKEN
    two=$THIRD_TOKEN
    three=CCCCCCCCCCCCCCCCCCCCCC
}

# script NAME KEY... , ARG...: run it on our key; the answer's values are in $lines.
script() {
    local lua=$top_srcdir/src/lua name text keys=()
    text=$(<"$lua/$1.lua")
    for name in acquire release; do
        [[ $text != *"-- include $name.lua"* ]] || text=${text/"-- include $name.lua"/"$(<"$lua/$name.lua")"}
    done
    shift
    for name; do
        [ "$name" != , ] || break
        keys+=("$name")
    done
    yields 0 rcli a eval "$text" "${#keys[@]}" "${keys[@]}" "${@:${#keys[@]}+2}"
    case $output in ERR* | *WRONGTYPE*) fail "an error" ;; esac
}

# returns VALUE CALL...: a call of one of these; the answer begins with the value.  answers VALUE CALL...: it is the value.
returns() {
    "${@:2}"
    [ "${lines[0]}" = "$1" ] || fail "expected first: $1"
}
answers() {
    "${@:2}"
    prints "$1"
}

acquire() { script acquire "$key" "$meta" "$meta:holds" "$meta:wake" "$meta:waiting" "$meta:history" , "$1" 20000 "${2:-0}" me@here:1 label; }

# queue TOKEN HANDOFF WAITER WAIT_MS [TICKET MOST]: the same for one that waits.
queue() {
    script acquire "$key" "$meta" "$meta:holds" "$meta:wake" "$meta:waiting" "$meta:history" , "$1" 20000 0 me@here:1 label 0 0 \
        "$2" "$3" "$4" "${5:-0}" 0 0 "${6:-0}"
}

# give_back TOKEN [KEEP_MS AGAIN NOTE WINDOW_MS]
give_back() { script release "$key" "$meta" "$meta:holds" "$meta:wake" "$meta:waiting" "$meta:history" , "$@"; }

# renew TOKEN [TTL_MS FENCE]
renew() { script renew "$key" "$meta" "$meta:holds" "$meta:history" , "$1" "${2-20000}" "${@:3}"; }

inspect() { script inspect "$key" "$meta" "$meta:holds" "$meta:waiting" , "$@"; }
fence() { script fence "$key" "$meta" "$meta:history" , "$@"; }
ask() { script ask "$key" "$meta" , "$@"; }

# hand_over: a lock of $one that $one gives back, and a waiter w1 is offered.
hand_over() {
    acquire "$one"
    queue "$two" '' w1 60000
    give_back "$one" 0 0 0 60000
    prints 1
}

# For a reader, as acquire, queue and give_back are; enter TOKEN.x; what invite tells a waiter.
share() { script share "$key" "$meta" "$meta:holds" "$meta:wake" "$meta:waiting" , "$1" 20000 0 me@here:1 label; }
share_queue() {
    script share "$key" "$meta" "$meta:holds" "$meta:wake" "$meta:waiting" , "$1" 20000 0 me@here:1 label 0 0 \
        "$2" "$3" "$4" "${5:-0}"
}
unshare() { script unshare "$key" "$meta" "$meta:holds" "$meta:wake" "$meta:waiting" , "$1" 0 0 0 60000; }
enter() { renew "$1"; }
invite() { script invite "$key" "$meta" "$meta:waiting" ,; }
words_of() { rcli a lrange "$meta:leave:$1" 0 -1; }

pass() { script pass "$key" "$meta" "$meta:wake" , "$1"; }
leave() { script leave "$key" "$meta:waiting" "$meta:leave:$1" , "$1" "$2"; }
