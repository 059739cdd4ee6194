# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034,SC2119,SC2120,SC2154
#
# What the tests of zk:// share, beside redis.bash: a private ensemble of three servers (ensemble.py) for each test file,
# whose servers and network can fail, and the state of a lock on its servers.
#
# Each test has a chroot of its own in $chroot, DLOCK_NODES reaches it on all three servers through their proxies, and
# leases are of 20 seconds, which outlast what a test does in a stalling machine.  Ticks are of 500 ms and sessions of at
# most 60 ticks, so leases are of 1 to 30 seconds.

# shellcheck source=tests/lib/redis.bash disable=SC1091
. "${BASH_SOURCE[0]%/*}/redis.bash"
# shellcheck source=tests/lib/waiters.bash disable=SC1091
. "${BASH_SOURCE[0]%/*}/waiters.bash"

# Without ZooKeeper the ensemble is zkfake.py; zk_real is called by a test that needs more than that.
zk_lacks() {
    command -v java >/dev/null || echo "java is not installed"
    [ -f "${ZOOKEEPER_JAR-/usr/share/java/zookeeper.jar}" ] || echo "the package zookeeper is not installed"
}
zk_real() {
    local lack
    lack=$(zk_lacks)
    [ -z "$lack" ] || must_run "${lack%%$'\n'*}"
}

# zk_start [OPTION...]: of ensemble.py.  With --sync 40 a busy machine may let the servers wait for each other for 20 seconds
# before there is another leader, which a test of faults could not wait for.
zk_start() {
    local dir
    dir=$(server_dir zk)
    spawn zk "$PYTHON" "$lib_dir/ensemble.py" "$dir" "$@"
    if ! wait_until "is_ready zk || ! alive $!" 90 || ! is_ready zk; then
        cat "$dir/out" "$dir"/*/log >&2
        return 1
    fi
}

# zk_begin: the ensemble is whole, and a clean environment as of test_begin.
zk_begin() {
    zk_join
    zk restore
    chroot=/test-$BATS_TEST_NUMBER-$BATS_TEST_TRY_NUMBER
    test_begin
    stalls_note
    DLOCK_NODES=$(zk_url)
    export DLOCK_NODES DLOCK_TTL=20s DLOCK_NODE_TIMEOUT=2s
}

# zk_join: the pipes and the ports of the ensemble.
zk_join() {
    local root
    find_root
    zk_dir=$root/zk
    read -ra zk_direct <"$zk_dir/direct"
    read -ra zk_proxied <"$zk_dir/proxied"
}

# zk WORD...: a command of ensemble.py; what it answers is in $answer.
zk() { zk_answers "$@" || fail "the ensemble: $*: ${answer:-no answer}"; }

# zk_answers WORD...: the same; if it fails, $answer is the error.
zk_answers() {
    asks "$zk_dir/ask" "$zk_dir/reply" "$@"
    [[ $answer == "ok "* ]] && answer=${answer#ok }
}

# asks PIPE PIPE WORD...: write a line to the first pipe, whose reader may come later; $answer is that in the second one.
asks() {
    local ask reply
    exec {ask}<>"$1" {reply}<>"$2"
    echo "${*:3}" >&"$ask"
    answer=
    IFS= read -rt 90 -u "$reply" answer || true
    exec {ask}>&- {reply}>&-
}

# zk_url [N...]: the URL of these servers, or of all three, by their proxies.
# shellcheck disable=SC2120
zk_url() {
    local n list=
    [ $# -gt 0 ] || set -- 1 2 3
    for n; do list+=${list:+,}127.0.0.1:${zk_proxied[n - 1]}; done
    echo "zk://$list$chroot"
}

# zk_roles: $leader, and the array $follower of the others that serve.
zk_roles() {
    local n=0 role
    zk roles
    leader='' follower=()
    for role in $answer; do
        n=$((n + 1))
        case $role in
            leader) leader=$n ;;
            follower) follower+=("$n") ;;
        esac
    done
}

# zk_ask N COMMAND ARG...: what zkwire.py says at server N, with no proxy between.  What is asked often starts no process.
zk_ask() {
    case $2 in
        children | stat)
            zk_answers "$2" "$1" "${@:3}" || return
            [ -z "$answer" ] || printf '%s\n' "${answer//$'\t'/$'\n'}"
            ;;
        *) "$PYTHON" "$lib_dir/zkwire.py" "${zk_direct[$1 - 1]}" "${@:2}" ;;
    esac
}

# entries KEY: the nodes of the queue of KEY, as ZooKeeper has them, one to a line; of each entry the first one.
entries() {
    local name
    zk_answers children "${zk_look_at:-1}" "$chroot/$1" || return 0
    for name in $answer; do [[ $name != *-lock-* ]] || echo "$name"; done
}

# leases: those of the slots of $key, the holders and who has the mutex, one to a line.
leases() { zk_ask "${zk_look_at:-1}" children "$chroot/$key/leases" || true; }

# entry_count KEY: how many hold it or wait for it.
entry_count() { entries "$1" | wc -l; }

# zk_is_held KEY, zk_is_free KEY: what ZooKeeper itself says.
zk_is_held() { [ -n "$(entries "$1")" ] || fail "expected $1 to be held"; }
zk_is_free() {
    local left
    left=$(zk_ask "${zk_look_at:-1}" children "$chroot/$1") || true
    [ -z "$left" ] || fail "expected $1 to be free, but there are $left"
}

slot_name() { echo "$key/leases/slot-$1"; }

# token_of_command: $token is that of the dlock run whose command is $command_pid.
token_of_command() { token=$(tr '\0' '\n' <"/proc/$command_pid/environ" | sed -n 's/^DLOCK_TOKEN=//p'); }

# Waiters of a lock, the holder among them, or those of slots, if $queue_of is their mutex.
queue_length() { entry_count "${queue_of:-$key}"; }

# queue_length_is COUNT: there are so many.
queue_length_is() { wait_until "[ \"\$(queue_length)\" = $1 ]" 20 || fail "expected $1 entries, not $(queue_length)"; }

# requests [KIND]: how many requests, or of that kind, went through the proxies since requests_reset.
requests() {
    tail -n "+$((requests_before + 1))" "$zk_dir/requests" | grep -c " ${1:-.*} " || true
}
requests_reset() { requests_before=$(wc -l <"$zk_dir/requests"); }

# server_of_last KIND: which server got the last request of that kind.
server_of_last() { grep -E "^[0-9]+ [0-9]+ $1 " "$zk_dir/requests" | tail -n 1 | cut -d' ' -f1; }

# ---------------------------------------------------------------- two holders that must not overlap

# A command that tells the milliseconds of each moment at which it is inside, whatever TERM says to it.
beats='trap "" TERM; while [ ! -e stop ]; do echo "${EPOCHREALTIME/[.,]/}" >>beats; read -rt 0.01 <>moments; done; exit 0'

# hold_beating ARG...: dlock run ARG... with that as its command.
hold_beating() {
    rm -f begun beats stop
    [ -p moments ] || mkfifo moments
    start run "$@" "$key" -- bash -c "echo \$\$ >begun.new; mv begun.new begun; $beats"
    holder=$bg
    wait_until "[ -s beats ] || ! alive $holder"
    [ -s beats ] || fail "it does not hold: $(cat "bg.$bg_count.err")"
    command_pid=$(cat begun)
}

# start_next ARG...: another one that waits for the lock, by the servers in $DLOCK_NODES, and tells when it is inside.
start_next() {
    start run --wait 10m "$@" "$key" -- bash -c 'echo "${EPOCHREALTIME/[.,]/}" >entered.new; mv entered.new entered'
    next=$bg
}

# dead_before_entered: the other comes in, and the last moment of the one is before that.
dead_before_entered() {
    local last entered
    finishes 0 "$next" 180
    last=$(tail -n 1 beats) entered=$(cat entered)
    [ "$last" -lt "$entered" ] || fail "the command lived for $(((last - entered) / 1000)) ms beside the next one"
}

# stays_renewed: the lease of the holder, which is the first in the queue, is renewed twice more, and nobody else comes in.
stays_renewed() {
    wait_until renewals_can_be_seen 60 || fail "server ${zk_look_at:-1} does not answer"
    local renewals=$renewals
    wait_until "! alive $holder || { renewals_can_be_seen && [ \$renewals -ge $((renewals + 2)) ]; }" 90 ||
        fail "it is not renewed"
    alive "$holder" || fail "the lock was lost: $(cat bg.*.err)"
    [ ! -e entered ] || fail "another came in"
}

# renewals_can_be_seen: $renewals is how often the data of the lock node of the holder was written.
renewals_can_be_seen() {
    local first
    first=$(entries "$key" | sort -t- -k 7 | head -n 1)
    renewals=$(zk_ask "${zk_look_at:-1}" stat "$chroot/$key/$first" | cut -d' ' -f3)
    [ -n "$renewals" ]
}

# stays_held SECONDS: for so long the command runs, and nobody else comes in.
stays_held() {
    local end=$((SECONDS + $1))
    while [ "$SECONDS" -le "$end" ]; do
        alive "$holder" || fail "the lock was lost: $(cat bg.*.err)"
        [ ! -e entered ] || fail "another came in"
        short_sleep 0.1
    done
}

# ---------------------------------------------------------------- hooks

setup_file() { zk_start; }
setup() { zk_begin; }
