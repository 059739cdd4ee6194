# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# What all tests share: temporary Redis servers (servers.bash), processes and conditions to wait for (process.bash), dlock in
# the foreground and in the background, and functions that check the result of a run.
#
# A test file loads it; the hooks are at the end of this file.  A test file that defines one itself calls what is called there.
# Behind "load" it says by variables what else than server "a" it starts: see start_servers.
#
# A test has its own key in $key, and DLOCK_NODES is server "a"; where there is none, the first $used of n1 to nN.  A file
# with short leases sets $node_timeout: the default, a tenth of the lease, is too little on a busy machine.
#
# From the environment, all optional: DLOCK (the program under test), REDIS_SERVER,
# REDIS_CLI, PYTHON, and DLOCK_TESTS_MUST_RUN=1, which turns skips into failures.

bats_require_minimum_version 1.5.0

lib_dir=${BASH_SOURCE[0]%/*}
[[ $lib_dir == /* ]] || lib_dir=$PWD/$lib_dir
export DLOCK=${DLOCK:-$lib_dir/../../dlock}
[[ $DLOCK == /* && $DLOCK != */../* ]] || DLOCK=$(realpath -m "$DLOCK")
# Tests type its name into shells, and LD_PRELOAD takes no spaces: a build in such a place gets a name without them.
if [[ $DLOCK == *[[:space:]]* && -n ${BATS_RUN_TMPDIR-} ]]; then
    [ -L "$BATS_RUN_TMPDIR/build" ] || ln -s "${DLOCK%/*}" "$BATS_RUN_TMPDIR/build" 2>/dev/null || :
    DLOCK=$BATS_RUN_TMPDIR/build/${DLOCK##*/}
fi
: "${REDIS_SERVER:=redis-server}"
: "${REDIS_CLI:=redis-cli}"
: "${PYTHON:=python3}"
: "${top_srcdir:=$lib_dir/../..}"

# A time of day as dlock prints it: with its date if that is not today's.
# shellcheck disable=SC2034 # for the tests
instant='([0-9]{4}-[0-9]{2}-[0-9]{2} )?[0-2][0-9]:[0-5][0-9]:[0-5][0-9]'

# Two valid tokens that dlock never returns.
OTHER_TOKEN=AAAAAAAAAAAAAAAAAAAAAA
THIRD_TOKEN=BBBBBBBBBBBBBBBBBBBBBB

# shellcheck source=tests/lib/process.bash disable=SC1091
. "$lib_dir/process.bash"
# shellcheck source=tests/lib/servers.bash disable=SC1091
. "$lib_dir/servers.bash"
# shellcheck source=tests/lib/watch.bash disable=SC1091
. "$lib_dir/watch.bash"

# --------------------------------------------------------------------- tests

# follow_failures: bats records its position before each command, to show where a test failed, which takes more time
# than the tests.  This records it only after a command has failed.  `bats --trace` still shows each command.
follow_failures() {
    if [ "${BATS_TRACE_LEVEL:-0}" = 0 ] && declare -F bats_error_trap bats_capture_stack_trace >/dev/null; then
        trap - DEBUG
        BATS_DEBUG_LAST_STACK_TRACE=()
        trap 'bats_error_trap; note_failure' ERR
    fi
}
note_failure() { bats_capture_stack_trace; }

# test_begin: a clean environment, a key, and the nodes, which all run.
test_begin() {
    local name node root
    follow_failures
    watch_parents
    for name in "${!DLOCK_@}"; do
        [ "$name" = DLOCK_TESTS_MUST_RUN ] || unset "$name"
    done
    unset REDISCLI_AUTH
    export DLOCK_CONFIG=/dev/null # and not what this machine has in /etc/dlock/config
    export HOME=$BATS_TEST_TMPDIR
    # This marks all processes that a test starts.
    export TEST_MARK=$BATS_TEST_TMPDIR
    find_node a
    DLOCK_NODES=$node
    # The servers have just started: with the guard, several nodes would grant nothing yet.
    DLOCK_RESTART_GUARD=0
    export DLOCK_NODES DLOCK_RESTART_GUARD
    key=job-$BATS_TEST_NUMBER
    bg=
    bg_count=0
    cd "$BATS_TEST_TMPDIR" || return
    [ -z "${node_timeout-}" ] || export DLOCK_NODE_TIMEOUT=$node_timeout
    if [ -f "$root/nodes" ]; then
        nodes_restore
        [ -d "$root/a" ] || use "$used"
    fi
}

# leftovers: processes that this test started, directly or indirectly, and that still run.
leftovers() {
    local pid started
    find_started
    for pid in "${started[@]}"; do
        if alive "$pid"; then echo "$pid"; fi
    done
}

# find_started: $started are the same, and perhaps some that have just ended.
find_started() {
    mapfile -t started < <(mark=$TEST_MARK && unset TEST_MARK && exec grep -lzsx "TEST_MARK=$mark" /proc/[0-9]*/environ)
    started=("${started[@]//[!0-9]/}")
}

# keepers: the process IDs of the keepers of this test.
keepers() {
    local pid
    for pid in $(leftovers); do
        case $(tr '\0' ' ' <"/proc/$pid/cmdline") in
            *' acquire '*'--keep '*) echo "$pid" ;;
        esac
    done 2>/dev/null
}

test_end() {
    local file started
    for file in "$BATS_TEST_TMPDIR"/bg.*; do
        if [ -s "$file" ]; then printf -- '--- %s\n%s\n' "${file##*/}" "$(<"$file")"; fi
    done 2>/dev/null
    # Also servers that setup() started again: the next test must not take a dying one for one that runs.
    find_started
    end_process "${started[@]}"
}

# dlock ARG...: the program, with a time limit.
bounded=(timeout --foreground -k 2 30)
dlock() { "${bounded[@]}" "$DLOCK" "$@"; }

# attempt COMMAND...: run it and set $status, $output, $stderr and their lines, like `run` of
# bats, which would warn about each status 127.
attempt() {
    attempted=$*
    status=0
    # The output of a function would contain messages of bash about killed children.
    if [ "$1" = dlock ]; then set -- "${bounded[@]}" "$DLOCK" "${@:2}"; fi
    "$@" >"$BATS_TEST_TMPDIR/attempt.out" 2>"$BATS_TEST_TMPDIR/attempt.err" || status=$?
    attempt_read "$BATS_TEST_TMPDIR/attempt.out" "$BATS_TEST_TMPDIR/attempt.err"
}

attempt_read() {
    # bash would warn about NUL bytes.
    { output=$(<"$1") stderr=$(<"$2"); } 2>/dev/null
    mapfile -t lines <"$1"
    mapfile -t stderr_lines <"$2"
}

# try ARG...: the same for dlock ARG...
try() { attempt dlock "$@"; }

# fail WORD...: the test fails, and shows the last run.
fail() {
    {
        echo "$@"
        printf 'command: %s\n' "${attempted-}"
        printf 'status:  %s\n' "${status-}"
        printf 'stdout:  %s\n' "${output-}"
        printf 'stderr:  %s\n' "${stderr-}"
    } >&2
    return 1
}

# exits N: the status of the last run, with any output.
exits() { [ "$status" -eq "$1" ] || fail "expected status $1"; }

# delays_processes: this machine has, since stalls_note.  Where one is delayed by a few milliseconds or by another machine,
# others may have been by more.
delays_processes() {
    local stalled longest_stall
    find_stalls 0 && { [ "$longest_stall" -ge 3 ] || [ "$(stolen)" -gt "$(<"$BATS_TEST_TMPDIR/stolen")" ]; }
}

# exits_76_or_killed: 76, or 137 if this machine did not run dlock in time (24 ms at a lease of 3 s); then the kernel has
# sent SIGKILL to the command as well, which ends once it gets a processor: see has_ended.  stalls_note was called before.
exits_76_or_killed() {
    if [ "$status" = 137 ] && delays_processes; then
        killed_by_timer=yes
        wait_until "! alive ${command_pid:-0}" # the kernel ends it when dlock has ended
    else
        killed_by_timer=no
        exits 76
    fi
}

# without_waiting: set $said to standard error without the lines of --wait, and those about a renewal that fails and is
# tried again.
without_waiting() {
    local line
    said=
    while IFS= read -r line; do
        [[ $line == 'dlock: '*': waiting'[\;,\ ]* || $line == 'dlock: '*': got it after '* ||
            $line == 'dlock: '*': a renewal failed: '* ||
            $line == 'dlock: '*': the lease is renewed again, '* ]] || said+=${said:+$'\n'}$line
    done <<<"${stderr-}"
}

# succeeds: status 0 and nothing on standard error but the lines of --wait.
succeeds() {
    local said
    exits 0
    without_waiting
    [ -z "$said" ] || fail "expected nothing on standard error"
}

# prints TEXT: exactly that on standard output.
prints() { [ "$output" = "$1" ] || fail "expected output: $1"; }

# complains REGEX: one line on standard error, apart from those of --wait, that begins with "dlock: ", contains no
# control character and matches.
complains() {
    local said
    without_waiting
    case $said in
        *$'\n'*) fail "expected one line on standard error" || return ;;
        'dlock: '?*) ;;
        *) fail "expected a line on standard error that begins with 'dlock: '" || return ;;
    esac
    if has_control "$said"; then
        fail "control characters on standard error" || return
    fi
    [[ $said =~ ${1-} ]] || fail "expected standard error to match: $1"
}

# json_is CONDITION: a condition of jq holds for the output; $key and $token are those of the test.  jq accepts no input.
json_is() {
    { [ -n "$output" ] && jq -e --arg key "$key" --arg token "${token-}" "$1" <<<"$output" >/dev/null; } || fail "not so: $1"
}

# grants_for MS ARG...: dlock acquire --json ARG... grants a lease of that length.
grants_for() { tells 0 ".ttl_ms == $1" acquire --json "${@:2}"; }

# status_is CONDITION, history_is CONDITION: the same for status --json and history --json of $key.
status_is() {
    try status --json "$key"
    json_is "$1"
}
history_is() {
    try history --json "$key"
    json_is "$1"
}

# has_control TEXT: it contains a control character, in any locale.
has_control() {
    local LC_ALL=C
    [[ $1 == *[[:cntrl:]]* ]]
}

# is_plain: the last run printed only printable ASCII, tabs and ends of lines, in any locale: nothing that a terminal obeys.
is_plain() {
    local LC_ALL=C
    [[ $output$stderr != *[!$'\t\n'\ -~]* ]] || fail 'control characters'
}

# fails N [REGEX]: status N, nothing on standard output, and one line with the reason.
fails() {
    exits "$1"
    [ -z "$output" ] || fail "expected nothing on standard output"
    complains "${2-}"
}

# is_busy: more processes want to run, or did lately, than there are processors: one may have to wait for its turn.
is_busy() {
    local load now
    read -r load _ _ now _ </proc/loadavg
    [ "${load%.*}" -ge "$(nproc)" ] || [ "${now%/*}" -gt "$(nproc)" ]
}

# One line for a dlock and what it must give: works ARG...; silently ARG...: it prints nothing at all; outputs TEXT ARG...:
# just that; gives N ARG...: status N; quietly N ARG...: with nothing on standard error; refuses N REGEX ARG...: it fails;
# warns N REGEX ARG...: it complains; tells N CONDITION ARG...: as json_is, and it works if N is 0.  In the background:
# finishes N [PID [SECONDS]]: status N; finishes_well: as works; loses: as exits_76_or_killed, and its command has ended;
# stops N ...: when it has the file "stop", for which its command waits; terminate [PID]: TERM ends it; terminate_command: TERM
# ends its command.  For any command passes COMMAND..., yields N COMMAND...: as attempt; waits_for N PID: a process of this shell.
works() {
    try "$@"
    succeeds
}
gives() {
    try "${@:2}"
    exits "$1"
}
silently() {
    works "$@"
    prints ''
}
quietly() {
    gives "$@"
    [ -z "$stderr" ] || fail "expected nothing on standard error"
}
refuses() {
    try "${@:3}"
    fails "$1" "$2"
}
finishes() {
    finish "${@:2}"
    exits "$1"
}
finishes_well() {
    finish "$@"
    succeeds
}
loses() {
    finish
    exits_76_or_killed
    has_ended "${command_pid:-0}"
}
terminate() {
    kill -TERM "${1:-$bg}"
    finishes 143 "$@"
}
terminate_command() {
    kill "$command_pid"
    finishes 143
}
warns() {
    gives "$1" "${@:3}"
    complains "$2"
}
outputs() {
    works "${@:2}"
    prints "$1"
}
tells() {
    try "${@:3}"
    if [ "$1" = 0 ]; then succeeds; else exits "$1"; fi
    json_is "$2"
}
yields() {
    attempt "${@:2}"
    exits "$1"
}
passes() {
    attempt "$@"
    succeeds
}
waits_for() {
    status=0
    wait "$2" || status=$?
    exits "$1"
}
stops() {
    : >stop
    finishes "$@"
}

# waited_in_vain N [REGEX]: fails N REGEX, of a wait that has ended.  Its last attempt may have only 100 ms, so on a machine
# that stalls or is busy it may be 69 instead.  stalls_note was called before.
waited_in_vain() {
    if [[ $status != 69 || $stderr != *'no answer in time'* ]] || ! { delays_processes || is_busy; }; then fails "$@"; fi
}

# held KEY [SERVER], free KEY [SERVER]: the state in Redis.
held() { [ "$(only='exec' rcli "${2:-a}" exists "$1")" = 1 ]; }
free() { [ "$(only='exec' rcli "${2:-a}" exists "$1")" = 0 ]; }

# is_renewed KEY [SERVER]: a renewal arrives within 10 s: the remaining lease grows.
is_renewed() {
    local left
    left=$(rcli "${2:-a}" pttl "$1")
    wait_until "has_grown '$1' '${2:-a}'"
}

# has_grown KEY SERVER: the remaining lease is longer than $left, which is set to it.
has_grown() {
    local before=$left
    left=$(only='exec' rcli "$2" pttl "$1")
    [ "$left" -gt "$before" ]
}

# lasts FROM TO [KEY [SERVER]]: the lease, of $key at a, has so many milliseconds to go.
lasts() {
    local ms
    ms=$(rcli "${4:-a}" pttl "${3:-$key}")
    { [ "$ms" -gt "$1" ] && [ "$ms" -le "$2" ]; } || fail "$ms ms left"
}

# outlives_its_lease [SERVER]: the lease of $key, of 3 s, is renewed for longer than that.
outlives_its_lease() {
    local _
    for _ in 1 2 3 4; do is_renewed "$key" "$@"; done
}

# is_held, is_free: fail with a message otherwise.
is_held() { held "$@" || fail "expected $1 to be held"; }
is_free() { free "$@" || fail "expected $1 to be free, but it holds $(rcli "${2:-a}" get "$1")"; }

# took_at_most MS FROM: at most MS have passed since FROM, a time of now_ms, without the stalls of this machine; sets
# $took_ms.  stalls_note was called before FROM.
took_at_most() {
    local stalled longest_stall
    has_noted_stalls || return
    took_ms=$((${EPOCHREALTIME/[.,]/} / 1000 - $2))
    [ "$took_ms" -gt "$1" ] || return 0
    find_stalls "$2"
    [ $((took_ms - stalled)) -le "$1" ] ||
        fail "took $took_ms ms, expected at most $1; this machine stalled for $stalled ms of them"
}

# within MS COMMAND...: run it, and fail if it took longer.
within() {
    local limit=$1 start
    shift
    stalls_note
    start=$((${EPOCHREALTIME/[.,]/} / 1000))
    "$@"
    took_at_most "$limit" "$start"
}

# in_time ARG...: dlock ARG..., which has little time, succeeds, unless this machine stalls.
in_time() {
    local from stalled longest_stall
    stalls_note
    from=$(now_ms)
    try "$@"
    [ "$status" -ne 0 ] || return 0
    find_stalls "$from"
    [ "$stalled" -gt 0 ] || fail "expected success; this machine did not stall"
}

# at_least MS: the last `within` took at least that long.
at_least() { [ "$took_ms" -ge "$1" ] || fail "took $took_ms ms, expected at least $1"; }

# take KEY [options of acquire...]: acquire it; the token is in $token.  A longer node timeout than a tenth of a short
# lease, so that a busy machine does not fail.
take() {
    local k=$1
    shift
    token=$(DLOCK_NODE_TIMEOUT=${DLOCK_NODE_TIMEOUT:-2s} dlock acquire "$@" -- "$k")
}

# take_on_all COUNT: acquire $key on all of COUNT nodes.  On a busy machine a node that is not needed for the grant may be
# too slow for it.
take_on_all() {
    wait_until "take '$key'; status_is '[.nodes[] | select(.state == \"held\")] | length == $1' ||
        { dlock release '$key' \"\$token\"; false; }"
}

# take_for MS KEY [options of acquire...]: the same, and the lease ends in so many milliseconds.  One that is as short from
# the start may end on a busy machine before it is granted.
take_for() {
    take "${@:2}"
    rcli a pexpire "$2" "$1" >/dev/null
}

# ------------------------------------------------------ dlock in the background

# start ARG...: dlock ARG... in the background; its pid is $bg.  It has its own
# process group and, unlike a background job of a shell, does not ignore SIGINT.
start() {
    bg_count=$((bg_count + 1))
    set -m
    "$DLOCK" "$@" </dev/null >"bg.$bg_count.out" 2>"bg.$bg_count.err" 3>&- 4>&- &
    bg=$!
    set +m
    wait_for_exec "$bg"
    eval "bg_files_$bg=$bg_count"
}

# start_each RUN_KEY [ARG...]: acquire ARG..., renew, release and status of $key and run ARG... of RUN_KEY, all at the same time;
# their pids are in $each.
start_each() {
    each=()
    start acquire "${@:2}" "$key"
    each+=("$bg")
    start renew "$key" "$OTHER_TOKEN"
    each+=("$bg")
    start release "$key" "$OTHER_TOKEN"
    each+=("$bg")
    start run "${@:2}" "$1" -- touch begun
    each+=("$bg")
    start status "$key"
    each+=("$bg")
}

# finish [PID [SECONDS]]: wait for it; $status, $output and $stderr as after `try`.
finish() {
    local pid=${1:-$bg} n
    wait_until "! alive $pid" "${2:-20}"
    status=0
    wait "$pid" || status=$?
    n=bg_files_$pid
    attempted="background $pid"
    attempt_read "bg.${!n}.out" "bg.${!n}.err"
}

# as_somebody: start dlock as a user who is not root, whatever folder it is in; $bg is its pid.
as_somebody() {
    if [ "$(id -u)" -ne 0 ]; then
        start "$@"
        return
    fi
    exec 9<"$DLOCK"
    DLOCK_CONFIG='' XDG_CONFIG_HOME=/nonexistent HOME=/nonexistent setpriv --reuid 65534 --regid 65534 \
        --clear-groups /proc/self/fd/9 "$@" </dev/null >somebody.out 2>&1 3>&- 4>&- &
    bg=$!
    exec 9<&-
}

# start_holding KEY ARG...: dlock run ARG... in the background, and COMMAND has begun.
# COMMAND is a shell line: the last argument.  What is in $traps is executed before it counts as begun.
# The node timeout is that of take.
start_holding() {
    local k=$1 line=${*: -1}
    rm -f begun
    DLOCK_NODE_TIMEOUT=${DLOCK_NODE_TIMEOUT-2s} start run "${@:2:$#-2}" -- "$k" -- \
        sh -c "${traps:+$traps; }echo \$\$ >begun.new; mv begun.new begun; $line"
    wait_until "[ -f begun ] || ! alive $bg"
    if [ ! -f begun ]; then
        cat "bg.$bg_count.err" >&2
        return 1
    fi
    command_pid=$(<begun)
}

# runs_once WAIT PERIOD: of three hosts that start together one runs the command; the others wait until it has ended, and
# skip it.  They learn that it has ended, and do not find out when they look the next time, after 2 s or later.
runs_once() {
    local runs=() pid began
    for _ in 1 2 3; do
        start run --wait "$1" --once-per "$2" -E 0 "$key" -- \
            sh -c 'echo ran >>ran; until [ -e finish ]; do sleep 0.2; done'
        runs+=("$bg")
    done
    wait_until "[[ \$(dlock status --json '$key') == *'\"waiting\":2,'* ]]"
    stalls_note
    began=$(now_ms)
    touch finish
    for pid in "${runs[@]}"; do
        finishes 0 "$pid"
    done
    took_at_most 1500 "$began"
    [ "$(cat ran)" = ran ] || fail 'expected one run'
    [[ $(cat bg.*.err) == *'kept until '*' (--once-per); sh on '*'dlock break allows another run'* ]] || fail 'expected why'
    wait_until "[[ \$(dlock status --json '$key') == *'\"state\":\"kept\",'*'\"waiting\":0,'* ]]"
}

# --------------------------------------------------------------------- hooks

# start_servers: those in $redis_servers, and in $tcp_servers those with a TCP port, too; with quorum.bash $node_count nodes,
# proxies before those whose numbers are in $proxied, and what faults_start needs for the first $faulted of them.
redis_servers=a
start_servers() {
    local name
    for name in $redis_servers; do redis_start "$name"; done
    for name in ${tcp_servers-}; do redis_start_tcp "$name"; done
    [ -z "${node_count-}" ] || nodes_start "$node_count"
    for name in ${proxied-}; do proxy_start "p$name" "n$name"; done
    [ -z "${faulted-}" ] || faults_start "$faulted"
}

setup_file() { start_servers; }
teardown_file() { redis_stop_all; }
setup() { test_begin; }
teardown() { test_end; }
