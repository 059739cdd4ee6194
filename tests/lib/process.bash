# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# Waiting for a condition, what there is to know of processes, and what must run; a part of redis.bash.
#
# The tests start many thousand processes, which is most of what they cost.  So what is called often does without: no
# command substitution, no program for what bash can do.

# short_sleep SECONDS: sleep(1) without a process.  Nobody ever writes to the pipe.
short_sleep() {
    local pipe=$BATS_FILE_TMPDIR/nap
    [ -p "$pipe" ] || mkfifo "$pipe" || true
    read -rt "$1" 2>/dev/null <>"$pipe" || [ $? -gt 128 ] || sleep "$1"
}

# wait_until CONDITION [SECONDS]: poll a shell condition, 10 seconds at most.
wait_until() {
    local end=$((SECONDS + ${2:-10} + 1))
    until eval "$1"; do
        if [ "$SECONDS" -ge "$end" ]; then
            echo "waited in vain for: $1" >&2
            return 1
        fi
        short_sleep 0.05
    done
}

# stalls_note: note from now on to the end of the test how long this machine keeps its processes waiting.  What is to
# happen in time happens later where nothing runs.
stalls_note() {
    [ ! -e "$BATS_TEST_TMPDIR/stalls" ] || return 0
    : >"$BATS_TEST_TMPDIR/stalls"
    (
        exec >>"$BATS_TEST_TMPDIR/stalls" 2>/dev/null 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-
        last=${EPOCHREALTIME/[.,]/}
        while kill -0 $$; do
            short_sleep 0.01
            now=${EPOCHREALTIME/[.,]/}
            if ((now - last > 20000)); then echo $((now / 1000)) $(((now - last) / 1000 - 10)); fi
            last=$now
        done
    ) </dev/null &
    disown $!
}

# find_stalls FROM: $stalled and $longest_stall are how long it was since FROM, of now_ms, in all and at most, in ms.
find_stalls() {
    local end length
    short_sleep 0.03 # the note of one that is just over
    stalled=0 longest_stall=0
    while read -r end length; do
        [ "$end" -ge "$1" ] || continue
        stalled=$((stalled + length))
        [ "$length" -le "$longest_stall" ] || longest_stall=$length
    done <"$BATS_TEST_TMPDIR/stalls"
}

# now_ms: milliseconds of the clock on the wall, for differences only.
now_ms() {
    local us=${EPOCHREALTIME/[.,]/}
    echo $((us / 1000))
}

# alive PID: is it a process that still runs (a zombie does not)?
alive() {
    local stat
    if process_stat "$1" && [ "${stat[0]}" != Z ]; then return; fi
    # Before a command ends in the foreground bash tells of a child that was killed: not into what is tested next.
    (:)
    return 1
}

# process_stat PID: $stat is what /proc/PID/stat has behind the name, the state first.
process_stat() {
    local line
    { read -rd '' line <"/proc/$1/stat" || [ -n "$line" ]; } 2>/dev/null || return
    read -ra stat <<<"${line##*) }"
}

# has_ended PID: the same as a statement of a test.
has_ended() {
    ! alive "$1" || fail "process $1 lives: $(tr '\0' ' ' <"/proc/$1/cmdline")"
}

# process_state PID: the letter that ps(1) shows, or nothing.
process_state() {
    local stat
    if process_stat "$1"; then echo "${stat[0]}"; fi
}

# end_process PID...: kill for good, stopped ones too, and wait until they are gone.
end_process() {
    local pid
    for pid; do
        kill -KILL "$pid" 2>/dev/null || continue
        wait_until "! alive $pid"
    done
}

# start_time PID: when it was started.  With its number this names a process, whatever comes after it.
start_time() {
    local stat
    if process_stat "$1"; then echo "${stat[19]}"; fi
}

# end_server DIR: the process that spawn started there, if it still is the one.
end_server() {
    local pid
    pid=$(<"$1/pid")
    [ "$(start_time "$pid")" != "$(<"$1/born")" ] || end_process "$pid"
}

# need_localhost: skip the test where this name has no address, as in a container without /etc/hosts.
need_localhost() { getent ahostsv4 localhost >/dev/null || must_run "localhost has no address"; }

# must_run REASON: skip the test, or fail where everything must run.  For setup() and tests: bats 1.8 takes a skip in
# setup_file for a failure.
must_run() {
    if [ "${DLOCK_TESTS_MUST_RUN:-}" = 1 ]; then
        echo "would be skipped: $1" >&2
        return 1
    fi
    skip "$1"
}
