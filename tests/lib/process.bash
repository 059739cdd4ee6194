# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# Waiting for a condition, the state of processes, and skipped tests; a part of redis.bash.
#
# The tests start many thousand processes, which is most of their cost.  Functions that are called often start none: no
# command substitution, no program for what bash can do.

# short_sleep SECONDS: sleep(1) without a process.  Nothing is ever written to the pipe.
short_sleep() {
    local pipe=$BATS_FILE_TMPDIR/nap
    [ -p "$pipe" ] || mkfifo "$pipe" || true
    read -rt "$1" 2>/dev/null <>"$pipe" || [ $? -gt 128 ] || sleep "$1"
}

# wait_until CONDITION [SECONDS]: poll a shell condition, 10 seconds at most, less often from the fifth look on.  Of each
# look at it 300 ms count, however long a machine that stalls or is busy takes.
wait_until() {
    local until_left=$((${2:-10} * 1000000 + 500000)) until_last=${EPOCHREALTIME/[.,]/} until_now until_pause=0.05
    local until_looks=0
    until eval "$1"; do
        if [ "$until_left" -le 0 ]; then
            echo "timed out waiting for: $1" >&2
            return 1
        fi
        [ $((++until_looks)) -le 4 ] || until_pause=0.16
        short_sleep "$until_pause"
        until_now=${EPOCHREALTIME/[.,]/}
        until_left=$((until_left - (until_now - until_last < 300000 ? until_now - until_last : 300000)))
        until_last=$until_now
    done
}

# wait_for_exec PID: until a background process no longer is the shell that was forked for it.  A signal that is earlier
# has the shell run the EXIT trap of bats, and the test fails without a word.
wait_for_exec() {
    local own now
    read -r own </proc/$$/comm
    while { read -r now <"/proc/$1/comm"; } 2>/dev/null && [ "$now" = "$own" ]; do short_sleep 0.002; done
}

# stalls_note: record until the end of the test how long this machine runs no process.
stalls_note() {
    [ ! -e "$BATS_TEST_TMPDIR/stalls" ] || return 0
    stolen >"$BATS_TEST_TMPDIR/stolen"
    : >"$BATS_TEST_TMPDIR/stalls"
    (
        exec >>"$BATS_TEST_TMPDIR/stalls" 2>/dev/null 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-
        last=${EPOCHREALTIME/[.,]/}
        while kill -0 $$; do
            short_sleep 0.01
            now=${EPOCHREALTIME/[.,]/}
            # A processor that is busy with others delays a process by milliseconds, again and again.
            if ((now - last > 13000)); then echo $((now / 1000)) $(((now - last) / 1000 - 10)); fi
            last=$now
        done
    ) </dev/null &
    disown $!
}

# stolen: how long the processors of this machine have run others' machines instead, in 10 ms.
stolen() {
    local cpu
    { read -ra cpu </proc/stat; } 2>/dev/null || true
    echo "${cpu[8]:-0}"
}

# has_noted_stalls: stalls_note was called in this test.  Whoever subtracts stalls checks that always, not only in the rare
# case that there are any.
has_noted_stalls() { [ -e "$BATS_TEST_TMPDIR/stalls" ] || fail "stalls_note was not called"; }

# find_stalls FROM: $stalled and $longest_stall are the total and the longest stall since FROM, of now_ms, in ms.
find_stalls() {
    local end length
    has_noted_stalls || return
    short_sleep 0.03 # until the latest one is recorded
    stalled=0 longest_stall=0
    while read -r end length; do
        [ "$end" -ge "$1" ] || continue
        stalled=$((stalled + length))
        [ "$length" -le "$longest_stall" ] || longest_stall=$length
    done <"$BATS_TEST_TMPDIR/stalls"
}

# now_ms: the time of day in milliseconds, for differences only.
now_ms() {
    local us=${EPOCHREALTIME/[.,]/}
    echo $((us / 1000))
}

# alive PID: the process runs (a zombie, or one that is just being reaped, does not).
alive() {
    local stat
    # Without a number, return in a trap is that of the command before the trap: teardown after a failure.
    if process_stat "$1" && [[ ${stat[0]} != [ZX] ]]; then return 0; fi
    # bash prints a message about a killed child before the next command: not into the output that is tested next.
    (:)
    return 1
}

# process_stat PID: $stat is the part of /proc/PID/stat after the name, the state first.
process_stat() {
    local line
    { read -rd '' line <"/proc/$1/stat" || [ -n "$line" ]; } 2>/dev/null || return 1
    read -ra stat <<<"${line##*) }"
}

# has_ended PID: it does not run; fails with a message otherwise.  A process of a dlock that was killed, as
# exits_76_or_killed found, has time to end.
has_ended() {
    [ "${killed_by_timer-}" != yes ] || wait_until "! alive $1"
    ! alive "$1" || fail "process $1 still runs: $(tr '\0' ' ' <"/proc/$1/cmdline")"
}

# process_state PID: the letter that ps(1) shows, or nothing.
process_state() {
    local stat
    if process_stat "$1"; then echo "${stat[0]}"; fi
}

# end_process PID...: kill them, also stopped ones, and wait until they have ended.
end_process() {
    local pid
    for pid; do kill -KILL "$pid" 2>/dev/null || true; done
    for pid; do wait_until "! alive $pid"; done
}

# start_time PID: together with the PID it identifies a process, even if the PID is used again.
start_time() {
    local stat
    if process_stat "$1"; then echo "${stat[19]}"; fi
}

# end_server DIR: kill the process that spawn started there, unless another one has its PID.
end_server() {
    local pid stat=()
    pid=$(<"$1/pid")
    process_stat "$pid" || return 0
    [ "${stat[19]}" != "$(<"$1/born")" ] || end_process "$pid"
}

# need_localhost: skip the test if this name has no address, as in a container without /etc/hosts.
need_localhost() { getent ahostsv4 localhost >/dev/null || must_run "localhost has no address"; }

# must_run REASON: skip the test, or fail if everything must run.  For setup() and tests: for bats 1.8 a skip in
# setup_file is a failure.
must_run() {
    if [ "${DLOCK_TESTS_MUST_RUN:-}" = 1 ]; then
        echo "would be skipped: $1" >&2
        return 1
    fi
    skip "$1"
}
