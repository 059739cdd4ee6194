#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# Signals: what the command of dlock run has of them when it starts, which reach it, and which end dlock.

# shellcheck disable=SC2153
load ../lib/redis

tcp_servers=tcp

# "$PYTHON" -c "$with_signals" BLOCKED IGNORED COMMAND...: run it with signals blocked and
# ignored (names joined by commas, or nothing), which a shell alone cannot do.
with_signals='
import os, signal, sys
def numbers(names):
    return [getattr(signal, "SIG" + name) for name in names.split(",") if name]
for number in range(1, 32):
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
for number in numbers(sys.argv[2]):
    signal.signal(number, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_SETMASK, numbers(sys.argv[1]))
os.execvp(sys.argv[3], sys.argv[3:])'

# "$PYTHON" -c "$deaf" COMMAND...: its standard error is a pipe that nobody reads.
deaf='
import os, signal, sys
reader, writer = os.pipe()
os.dup2(writer, 2)
os.close(reader)
for number in signal.SIGPIPE, signal.SIGINT, signal.SIGQUIT:
    signal.signal(number, signal.SIG_DFL)
os.execvp(sys.argv[1], sys.argv[1:])'

# signals_of COMMAND...: its signal mask and dispositions, without 32 and 33, which libc uses.
signals_of() {
    local name value
    "$@" grep -E '^(Sig(Blk|Ign|Cgt)|ShdPnd)' /proc/self/status | while read -r name value; do
        printf '%s %x\n' "$name" $((0x$value & ~0x180000000))
    done
}

@test "signal mask and dispositions are the caller's" {
    for blocked in '' USR2,ALRM TERM,INT,CHLD,PIPE; do
        for ignored in '' HUP,PIPE,USR1,TSTP QUIT,CHLD,CONT,WINCH,TTOU,TTIN; do
            signals_of "$PYTHON" -c "$with_signals" "$blocked" "$ignored" >expected
            signals_of "$PYTHON" -c "$with_signals" "$blocked" "$ignored" "$DLOCK" run "$key" -- >got
            [ "$(wc -l <got)" -eq 4 ]
            diff expected got || fail "blocked: $blocked, ignored: $ignored"
        done
    done
}

@test "standard error beyond the maximum file size ends neither dlock nor the command" {
    # ThreadSanitizer writes a file of its own before main.
    if grep -aq __tsan_init "$DLOCK"; then return; fi
    yields 6 "$PYTHON" -c "$with_signals" '' '' bash -c 'ulimit -f 0; exec "$@" 2>log' - \
        "$DLOCK" run -v --report report "$key" -- sh -c 'exit 6'
    is_free "$key"
    [ ! -s log ]
}

@test "an ignored SIGCHLD does not hide the exit status of the command, nor do blocked signals stop dlock from working" {
    yields 6 "$PYTHON" -c "$with_signals" '' CHLD "$DLOCK" run "$key" -- sh -c 'exit 6'
    is_free "$key"
    yields 6 "$PYTHON" -c "$with_signals" TERM,CHLD,ALRM,USR1 '' "$DLOCK" run "$key" -- sh -c 'exit 6'
    is_free "$key"
}

# all_signals: those that end a process by default and can be caught, but for PIPE and XFSZ, and WINCH, by number.  A
# sanitizer keeps some for itself.
all_signals() {
    local number name
    for ((number = 1; number <= 64; number++)); do
        case $number in 9 | 13 | 17 | 18 | 19 | 20 | 21 | 22 | 23 | 25 | 32 | 33) continue ;; esac
        name=$(kill -l "$number")
        case ${name#SIG} in ILL | TRAP | ABRT | BUS | FPE | SEGV) ! grep -aqE '__[at]san_init' "$DLOCK" || continue ;; esac
        echo "$number"
    done
}

# A command that writes down the number of each signal that it gets, until it gets TERM.
note_numbers='
import os, signal, time
def note(number, frame):
    os.write(fd, b"%d\n" % number)
    if number == signal.SIGTERM:
        os._exit(11)
fd = os.open("got", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
for number in signal.valid_signals() - {9, 19, 32, 33}:
    if number not in (17, 18, 20, 21, 22, 23):
        signal.signal(number, note)
open("ready", "w")
while True:
    time.sleep(0.02)  # pause() would miss a signal that comes just before it'

@test "each signal that would end dlock, and WINCH, reaches the command, and the lock is released" {
    expected=$(all_signals)
    for foreground in '' --foreground; do
        rm -f got ready
        "$PYTHON" -c "$with_signals" '' '' "$DLOCK" run $foreground "$key" -- "$PYTHON" -c "$note_numbers" 3>&- 4>&- &
        bg=$!
        wait_until '[ -e ready ]'
        for number in $expected; do [ "$number" = 15 ] || kill -s "$number" "$bg"; done
        wait_until "[ \"\$(wc -l <got)\" = $(($(wc -w <<<"$expected") - 1)) ]" || fail "got $(paste -sd ' ' got)"
        kill -s TERM "$bg"
        waits_for 11 "$bg"
        diff <(sort -n got) <(echo "$expected")
        is_free "$key"
    done
}

# with_alarm SECONDS COMMAND...: its real-time timer fires then, as perl -e 'alarm 1; exec @ARGV'.
with_alarm() {
    attempt "$PYTHON" -c 'import os, signal, sys
signal.setitimer(signal.ITIMER_REAL, float(sys.argv[1]))
os.execvp(sys.argv[2], sys.argv[2:])' "$@"
}

@test "an alarm that was set before dlock reaches the command, and the lock is released" {
    for foreground in '' --foreground; do
        with_alarm 5 "$DLOCK" run $foreground "$key" -- sh -c 'trap "exit 12" ALRM; while :; do sleep 0.1; done'
        exits 12
        is_free "$key"
    done
    with_alarm 0.3 "$DLOCK" run "$key" -- sleep 30
    exits 142
    is_free "$key"
    take "$key"
    # It dies of the signal itself.
    with_alarm 0.3 "$DLOCK" run -v --wait 30s "$key" -- touch begun
    exits 142
    [ ! -e begun ]
    with_alarm 0.3 "$DLOCK" acquire --wait 30s "$key"
    exits 142
    [ -z "$output" ]
    [ "$(rcli a exists "{$key}:dlock:waiting")" = 0 ]
    [ "$(rcli a get "$key")" = "$token" ]
}

@test "an alarm that was ignored when dlock was started stays ignored" {
    attempt "$PYTHON" -c "$with_signals" '' ALRM,RTMIN,PIPE "$PYTHON" -c 'import os, signal, sys
signal.signal(signal.SIGPIPE, signal.SIG_IGN)
signal.setitimer(signal.ITIMER_REAL, 0.1)
os.execvp(sys.argv[1], sys.argv[1:])' "$DLOCK" run "$key" -- sh -c 'kill -ALRM $PPID; kill -PIPE $PPID; sleep 0.3; exit 4'
    exits 4
}

@test "a failed write of dlock sends no signal to the command" {
    "$PYTHON" -c "$deaf" "$DLOCK" run -v --ttl 6s --node-timeout 2s "$key" -- sh -c '
        exec 2>/dev/null; trap "echo PIPE >>got" PIPE; trap "echo USR1 >>heard" USR1; : >ready
        while [ ! -e stop ]; do sleep 0.2; done; exit 6' 3>&- 4>&- &
    bg=$!
    wait_until '[ -e ready ]'
    kill -s USR1 "$bg"
    wait_until '[ -e heard ]'
    is_renewed "$key"
    kill -s USR1 "$bg"
    wait_until '[ "$(wc -l <heard)" = 2 ]'
    touch stop
    waits_for 6 "$bg"
    [ ! -e got ] || fail "the command got $(cat got)"
}

@test "TSTP stops the command and CONT continues it" {
    start_holding "$key" 'exec sleep 30'
    wait_until "[ \"\$(cat /proc/$command_pid/comm)\" = sleep ]"
    kill -s TSTP "$bg"
    wait_until "[ \"\$(process_state $command_pid)\" = T ]"
    kill -s CONT "$bg"
    wait_until "[ \"\$(process_state $command_pid)\" = S ]"
    terminate
}

@test "a signal also reaches the processes that the command started" {
    start_holding "$key" 'sleep 30 & echo $! >child; wait'
    wait_until '[ -s child ]'
    terminate
    has_ended "$(cat child)"
    is_free "$key"
}

@test "many signals in a short time lose neither the command nor its status" {
    traps='trap : USR1' start_holding "$key" --ttl 6s --node-timeout 2s 'while [ ! -e stop ]; do sleep 0.2; done; exit 12'
    for _ in {1..300}; do kill -s USR1 "$bg"; done
    is_renewed "$key"
    for _ in {1..300}; do kill -s USR1 "$bg"; done
    stops 12
    is_free "$key"
}

@test "a signal while dlock acquires the lock ends it, and nothing is left behind" {
    redis_start slow
    redis_freeze slow
    DLOCK_NODES=$(node slow) start run --node-timeout 20s --ttl 60s "$key" -- touch begun
    wait_until "grep -q SigCgt /proc/$bg/status && [ \"\$(process_state $bg)\" = S ]"
    sleep 0.1
    kill -s TERM "$bg"
    # The request stays in the buffer of the frozen server, and the rollback behind it.
    sleep 0.1
    redis_thaw slow
    finishes 143
    [ ! -e begun ]
    wait_until "free '$key' slow"
}

@test "a waiter dies of the signal itself, not with an exit status" {
    take "$key" --ttl 5m
    for name in INT TERM HUP QUIT USR1 USR2 ALRM PWR RTMIN; do
        "$PYTHON" -c '
import signal, subprocess, sys, time
dlock = subprocess.Popen(sys.argv[2:])
one = 1 << signal.SIGUSR2 - 1
none = 1 << signal.SIGURG - 1  # the C library blocks all for a moment
while True:  # until it watches for signals
    blocked = [line for line in open("/proc/%d/status" % dlock.pid) if line.startswith("SigBlk")][0]
    if int(blocked.split()[1], 16) & (one | none) == one:
        break
    time.sleep(0.01)
number = getattr(signal, "SIG" + sys.argv[1])
dlock.send_signal(number)
sys.exit(dlock.wait() != -number)' "$name" "$DLOCK" run --wait 30s --report "report.$name" "$key" -- touch begun
        jq -e '.outcome == "interrupted" and .child == null' "report.$name"
    done
    [ ! -e begun ]
    [ "$(rcli a get "$key")" = "$token" ]
}

@test "a waiter whose standard error is not read gets the lock, or dies of the signal that it received" {
    take "$key"
    for how in 'kill -TERM $pid' '"$DLOCK" release "$key" "$token"'; do
        [ ! -e begun ]
        "$PYTHON" -c "$deaf" "$DLOCK" run -v --wait 30s "$key" -- touch begun 3>&- 4>&- &
        pid=$!
        wait_until '[[ $(rcli a info clients) == *blocked_clients:1* ]]'
        eval "$how"
        waits_for $([[ $how == kill* ]] && echo 143 || echo 0) "$pid"
    done
    [ -e begun ]
}

@test "a command that runs as another user, as under sudo, continues, and this is said once for each signal and process" {
    [ "$(id -u)" -eq 0 ] || must_run 'only root can make a set-user-ID program'
    dir=$(mktemp -d /tmp/dlock-test.XXXXXX)
    cp "$(type -P setpriv)" "$dir/become"
    chmod 755 "$dir"
    chmod 4755 "$dir/become"
    for how in exec '' 'exec --foreground'; do
        rm -f begun
        as_somebody run ${how#exec} --ttl 6s --kill-after 200ms --node-timeout 2s -N "$(node tcp)" "$key" -- \
            sh -c "${how%% *}"' "$0" --reuid 0 sh -c "$1"; :' "$dir/become" \
            'echo $$ >begun.new; mv begun.new begun; exec tail -f /dev/null'
        wait_until "[ -e begun ] || ! alive $bg"
        pid=$(<begun)
        kill -CONT "$bg" # which is permitted in a session
        kill -TERM "$bg"
        wait_until 'grep -q "SIGTERM" somebody.out'
        kill -TERM "$bg"
        rcli tcp del "$key"
        wait_until "grep -q 'the lock is lost: .*; may not signal process $pid; it CONTINUES without the lock' somebody.out"
        short_sleep 0.5 # SIGKILL is tried, too
        alive "$pid"
        kill "$pid"
        waits_for 76 "$bg" || fail "$(cat somebody.out)"
        [ "$(grep -c '^dlock: ' somebody.out)" -eq 2 ] || fail "$(cat somebody.out)"
        grep -qx "dlock: $key: may not send SIGTERM to process $pid; it CONTINUES" somebody.out
    done
    for limit in 100ms 1s 10s; do # until the command is another user in time
        rm -f begun
        as_somebody run --max-run "$limit" --kill-after 100ms -N "$(node tcp)" "$key" -- \
            "$dir/become" --reuid 0 sh -c 'echo $$ >begun.new; mv begun.new begun; exec tail -f /dev/null'
        wait_until "[ -e begun ] || ! alive $bg"
        [ ! -e begun ] || break
    done
    wait_until 'grep -Eqx "dlock: $key: the command has run for [0-9.]+m?s \(--max-run\); may not signal process [0-9]+; it CONTINUES" somebody.out'
    kill "$(<begun)"
    waits_for 124 "$bg"
    rm -r "$dir"
}
