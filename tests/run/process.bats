#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# What the command of dlock run is given and not given as a process: descriptors, signal
# dispositions, a process group; what signals reach it; when dlock considers it ended.

# shellcheck disable=SC2016,SC2030,SC2031,SC2094,SC2153,SC2154
bats_require_minimum_version 1.5.0
load ../lib/redis

setup_file() { redis_start a; }

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

# ---------------------------------------------------------------- descriptors

# "$PYTHON" -c "$list_fds" FILE: write down each open descriptor and where it leads.
list_fds='
import os, sys
found = []
for number in range(256):
    try:
        found.append("%d %s" % (number, os.readlink("/proc/self/fd/%d" % number)))
    except OSError:
        pass
open(sys.argv[1], "w").write("\n".join(found) + "\n")'

@test "the command has the descriptors of the caller and no other" {
    : >file
    "$PYTHON" -c "$list_fds" expected 3>&- 4>&- 7<file 19<file </dev/null >out 2>err
    "$DLOCK" run "$key" -- "$PYTHON" -c "$list_fds" got 3>&- 4>&- 7<file 19<file </dev/null >out 2>err
    diff expected got
    grep -q "^7 $PWD/file" got
    grep -q "^19 $PWD/file" got
}

@test "the command inherits no socket of dlock, also during renewals" {
    "$PYTHON" -c "$list_fds" expected 3>&- 4>&- </dev/null >out 2>err
    "$DLOCK" run --ttl 3s --node-timeout 2s "$key" -- "$PYTHON" -c "import time; time.sleep(1.2)$list_fds" got \
        3>&- 4>&- </dev/null >out 2>err
    diff expected got
}

@test "an open descriptor can be used by the command" {
    "$DLOCK" run "$key" -- sh -c 'echo through >&5' 5>out
    [ "$(cat out)" = through ]
}

# closed N: descriptor N is closed or leads to /dev/null, and there is no socket.
closed() {
    ! grep -E 'socket|anon_inode' got || fail "leaked"
    ! grep -E "^$1 " got | grep -v "^$1 /dev/null\$" || fail "$1 is something else"
}

@test "closed standard input: no descriptor is mixed up" {
    "$DLOCK" run "$key" -- "$PYTHON" -c "$list_fds" got <&- >out 2>err
    closed 0
    grep -q "^1 $PWD/out" got
    is_free "$key"
}

@test "closed standard output: no descriptor is mixed up" {
    "$DLOCK" run "$key" -- "$PYTHON" -c "$list_fds" got </dev/null >&- 2>err
    closed 1
    grep -q "^2 $PWD/err" got
    is_free "$key"
}

@test "closed standard error: no descriptor is mixed up" {
    "$DLOCK" run "$key" -- "$PYTHON" -c "$list_fds" got </dev/null >out 2>&-
    closed 2
    grep -q "^1 $PWD/out" got
    is_free "$key"
}

@test "with all three closed the command runs and the lock is released" {
    attempt "$DLOCK" run "$key" -- sh -c 'touch begun; exit 3' <&- >&- 2>&-
    exits 3
    [ -e begun ]
    is_free "$key"
}

@test "with standard error closed an error is still an exit status, and no message goes to Redis" {
    local status=0
    "$DLOCK" run "$key" -- no-such-command-anywhere 2>&- || status=$?
    [ "$status" -eq 127 ]
    is_free "$key"
    status=0
    "$DLOCK" run -v "$key" -- sh -c 'exit 4' <&- >&- 2>&- || status=$?
    [ "$status" -eq 4 ]
}

# -------------------------------------------------------------------- signals

# signals_of COMMAND...: how that has them, but for 32 and 33, which are libc's.
signals_of() {
    local name value
    "$@" grep -E '^(Sig(Blk|Ign|Cgt)|ShdPnd)' /proc/self/status | while read -r name value; do
        printf '%s %x\n' "$name" $((0x$value & ~0x180000000))
    done
}

@test "signal mask and dispositions are the caller's" {
    local blocked ignored
    for blocked in '' USR2,ALRM TERM,INT,CHLD,PIPE; do
        for ignored in '' HUP,PIPE,USR1,TSTP QUIT,CHLD,CONT,WINCH,TTOU,TTIN; do
            signals_of "$PYTHON" -c "$with_signals" "$blocked" "$ignored" >expected
            signals_of "$PYTHON" -c "$with_signals" "$blocked" "$ignored" "$DLOCK" run "$key" -- >got
            [ "$(wc -l <got)" -eq 4 ]
            diff expected got || fail "blocked: $blocked, ignored: $ignored"
        done
    done
}

@test "SIGPIPE is not ignored in the command" {
    attempt "$PYTHON" -c "$with_signals" '' '' "$DLOCK" run -c "$key" 'yes | head -n 1; kill -PIPE $$'
    exits 141
}

@test "standard error beyond the maximum file size ends neither dlock nor the command" {
    # ThreadSanitizer writes a file of its own before main.
    if grep -aq __tsan_init "$DLOCK"; then return; fi
    attempt "$PYTHON" -c "$with_signals" '' '' bash -c 'ulimit -f 0; exec "$@" 2>log' - \
        "$DLOCK" run -v --report report "$key" -- sh -c 'exit 6'
    exits 6
    is_free "$key"
    [ ! -s log ]
}

@test "an ignored SIGCHLD does not hide the exit status of the command" {
    attempt "$PYTHON" -c "$with_signals" '' CHLD "$DLOCK" run "$key" -- sh -c 'exit 6'
    exits 6
    is_free "$key"
}

@test "a blocked SIGTERM or SIGCHLD does not stop dlock from working" {
    attempt "$PYTHON" -c "$with_signals" TERM,CHLD,ALRM,USR1 '' "$DLOCK" run "$key" -- sh -c 'exit 6'
    exits 6
    is_free "$key"
}

# A command that writes down the signals it gets, until it gets QUIT last.
note_signals='for s in HUP INT TERM USR1 USR2 WINCH; do trap "echo $s >>got" $s; done
trap "echo QUIT >>got; exit 11" QUIT
: >ready; while :; do sleep 0.02; done'

@test "HUP, INT, TERM, USR1, USR2, WINCH and QUIT reach the command" {
    local name
    start_holding "$key" "$note_signals"
    wait_until '[ -e ready ]'
    for name in HUP INT TERM USR1 USR2 WINCH QUIT; do
        kill -s "$name" "$bg"
        wait_until "grep -qx $name got"
    done
    finish
    exits 11
    [ "$(tr '\n' ' ' <got)" = "HUP INT TERM USR1 USR2 WINCH QUIT " ] || fail "$(cat got)"
    is_free "$key"
}

@test "with --foreground signals reach the command, too" {
    local name
    start_holding "$key" --foreground "$note_signals"
    wait_until '[ -e ready ]'
    for name in HUP INT TERM USR1 USR2 WINCH QUIT; do
        kill -s "$name" "$bg"
        wait_until "grep -qx $name got"
    done
    finish
    exits 11
    is_free "$key"
}

# all_signals: those that end a process by default and can be caught, by number.  A sanitizer keeps some for itself.
all_signals() {
    local number name
    for ((number = 1; number <= 64; number++)); do
        case $number in 9 | 17 | 18 | 19 | 20 | 21 | 22 | 23 | 28 | 32 | 33) continue ;; esac
        name=$(kill -l "$number")
        case ${name#SIG} in ILL | TRAP | ABRT | BUS | FPE | SEGV) ! grep -aqE '__[at]san_init' "$DLOCK" || continue ;; esac
        echo "$number"
    done
}

# A command that writes down the number of each signal that it gets, until it gets TERM.
note_numbers='
import os, signal
def note(number, frame):
    os.write(fd, b"%d\n" % number)
    if number == signal.SIGTERM:
        os._exit(11)
fd = os.open("got", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
for number in signal.valid_signals() - {9, 19, 32, 33}:
    if number not in (17, 18, 20, 21, 22, 23, 28):
        signal.signal(number, note)
open("ready", "w")
while True:
    signal.pause()'

@test "each signal that would end dlock reaches the command, and the lock is released" {
    local number foreground expected
    expected=$(all_signals)
    for foreground in '' --foreground; do
        rm -f got ready
        # shellcheck disable=SC2086
        "$PYTHON" -c "$with_signals" '' '' "$DLOCK" run $foreground "$key" -- "$PYTHON" -c "$note_numbers" 3>&- 4>&- &
        bg=$!
        wait_until '[ -e ready ]'
        for number in $expected; do [ "$number" = 15 ] || kill -s "$number" "$bg"; done
        wait_until "[ \"\$(wc -l <got)\" = $(($(wc -w <<<"$expected") - 1)) ]" || fail "got $(paste -sd ' ' got)"
        kill -s TERM "$bg"
        status=0
        wait "$bg" || status=$?
        exits 11
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
    local foreground
    for foreground in '' --foreground; do
        # shellcheck disable=SC2086
        with_alarm 3 "$DLOCK" run $foreground "$key" -- sh -c 'trap "exit 12" ALRM; while :; do sleep 0.02; done'
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
    "$PYTHON" -c "$deaf" "$DLOCK" run -v --ttl 3s --node-timeout 2s "$key" -- sh -c '
        exec 2>/dev/null; trap "echo PIPE >>got" PIPE; trap "echo USR1 >>heard" USR1; : >ready
        while [ ! -e stop ]; do sleep 0.02; done; exit 6' 3>&- 4>&- &
    bg=$!
    wait_until '[ -e ready ]'
    kill -s USR1 "$bg"
    wait_until '[ -e heard ]'
    is_renewed "$key"
    kill -s USR1 "$bg"
    wait_until '[ "$(wc -l <heard)" = 2 ]'
    touch stop
    status=0
    wait "$bg" || status=$?
    exits 6
    [ ! -e got ] || fail "the command got $(cat got)"
}

@test "a command that ends by a forwarded signal n: 128+n" {
    local name
    for name in HUP INT TERM USR1 USR2 ALRM PIPE; do
        start_holding "$key" 'exec sleep 30'
        wait_until "[ \"\$(cat /proc/$command_pid/comm)\" = sleep ]"
        kill -s "$name" "$bg"
        finish
        exits $((128 + $(kill -l "$name")))
        is_free "$key"
    done
}

@test "TSTP stops the command and CONT continues it" {
    start_holding "$key" 'exec sleep 30'
    wait_until "[ \"\$(cat /proc/$command_pid/comm)\" = sleep ]"
    kill -s TSTP "$bg"
    wait_until "[ \"\$(process_state $command_pid)\" = T ]"
    kill -s CONT "$bg"
    wait_until "[ \"\$(process_state $command_pid)\" = S ]"
    kill -s TERM "$bg"
    finish
    exits 143
}

@test "a signal also reaches the processes that the command started" {
    start_holding "$key" 'sleep 30 & echo $! >child; wait'
    wait_until '[ -s child ]'
    kill -s TERM "$bg"
    finish
    exits 143
    has_ended "$(cat child)"
    is_free "$key"
}

@test "an inherited ignored signal stays ignored in the command" {
    "$PYTHON" -c "$with_signals" '' HUP "$DLOCK" run "$key" -- sh -c ': >begun; while [ ! -e stop ]; do sleep 0.02; done; exit 8' 3>&- 4>&- &
    bg=$!
    wait_until '[ -e begun ]'
    kill -s HUP "$bg"
    short_sleep 0.3
    touch stop
    local status=0
    wait "$bg" || status=$?
    [ "$status" -eq 8 ]
}

@test "many signals in a short time lose neither the command nor its status" {
    local i
    start_holding "$key" --ttl 3s --node-timeout 2s 'trap : USR1; i=0; while [ ! -e stop ]; do sleep 0.02; done; exit 12'
    for i in {1..300}; do kill -s USR1 "$bg"; done
    is_renewed "$key"
    for i in {1..300}; do kill -s USR1 "$bg"; done
    touch stop
    finish
    exits 12
    is_free "$key"
}

@test "a signal while dlock acquires the lock ends it, and nothing is left behind" {
    redis_start slow
    redis_freeze slow
    DLOCK_NODES=$(node slow) start run --node-timeout 20s --ttl 60s "$key" -- touch begun
    wait_until "grep -q SigCgt /proc/$bg/status && [ \"\$(process_state $bg)\" = S ]"
    sleep 0.1
    kill -s TERM "$bg"
    # What was sent stays in the frozen server's buffer, behind it the undo.
    sleep 0.1
    redis_thaw slow
    finish
    exits 143
    [ ! -e begun ]
    wait_until "free '$key' slow"
}

# ------------------------------------------------------------ process group

@test "the command leads a process group of its own" {
    try run "$key" -- sh -c 'echo $$; ps -o pgid= -p $$'
    succeeds
    [ "${lines[0]}" -eq "${lines[1]}" ]
}

@test "with --foreground the command stays in dlock's process group" {
    start_holding "$key" --foreground 'sleep 30'
    [ "$(ps -o pgid= -p "$command_pid" | tr -d ' ')" = "$(ps -o pgid= -p "$bg" | tr -d ' ')" ]
}

@test "the lock is held until the whole group of the command has ended" {
    start_holding "$key" 'sh -c "echo \$\$ >child.new; mv child.new child; while [ ! -e stop ]; do sleep 0.1; done" & exit 7'
    wait_until "[ -s child ] && ! alive $command_pid"
    sleep 0.3
    alive "$(cat child)"
    alive "$bg"
    is_held "$key"
    touch stop
    finish
    exits 7
    is_free "$key"
}

@test "the lock is renewed until the whole group of the command has ended" {
    start_holding "$key" --ttl 3s --node-timeout 2s 'sh -c "while [ ! -e stop ]; do sleep 0.1; done; : >ended" & exit 7'
    wait_until "! alive $command_pid"
    for _ in 1 2; do is_renewed "$key"; done
    touch stop
    finish
    exits 7
    [ -e ended ]
    is_free "$key"
}

@test "a zombie that a daemon leaves in the group does not keep the lock" {
    # The daemon leaves the group when it has started a process in it, which ends and is never reaped.
    start_holding "$key" "$PYTHON -c '
import os, time
if os.fork() == 0:
    ended = os.fork()
    if ended == 0:
        os._exit(0)
    os.setsid()
    while open(\"/proc/%d/stat\" % ended).read().split(\") \")[1][0] != \"Z\":
        time.sleep(0.01)
    open(\"daemon.new\", \"w\").write(\"%d\\n\" % os.getpid())
    os.rename(\"daemon.new\", \"daemon\")
    os.close(0), os.close(1), os.close(2)
    time.sleep(60)
    os._exit(0)
while not os.path.exists(\"daemon\"):
    time.sleep(0.01)
'; exit 7"
    finish "$bg" 10
    exits 7
    is_free "$key"
    alive "$(cat daemon)"
}

@test "a daemon that left the group and its session does not keep the lock" {
    start_holding "$key" 'setsid sh -c "echo \$\$ >daemon.new; mv daemon.new daemon; exec sleep 30" <&- >&- 2>&- &
        while [ ! -s daemon ]; do sleep 0.02; done; exit 0'
    finish "$bg" 10
    exits 0
    is_free "$key"
    alive "$(cat daemon)"
}

# ------------------------------------------------------- dlock itself is killed

@test "the command dies with a dlock that was killed" {
    start_holding "$key" 'exec sleep 30'
    kill -KILL "$bg"
    wait_until "! alive $command_pid"
    [ "$(rcli a pttl "$key")" -gt 0 ]
}

@test "a command that ignores all signals dies with a dlock that was killed" {
    start_holding "$key" 'trap "" TERM HUP INT QUIT; while :; do sleep 0.02; done'
    kill -KILL "$bg"
    wait_until "! alive $command_pid"
}

@test "with --foreground the command dies with a dlock that was killed" {
    start_holding "$key" --foreground 'exec sleep 30'
    kill -KILL "$bg"
    wait_until "! alive $command_pid"
}

@test "a dlock that is killed while its command starts leaves no command behind" {
    local i
    for i in {1..15}; do
        start run --ttl 10s "$key-$i" -- sleep 31.4159
        sleep "0.0$((RANDOM % 30 + 10))"
        kill -KILL "$bg" 2>/dev/null || true
    done
    wait_until '[ -z "$(leftovers)" ]'
}

@test "SIGKILL of dlock also ends the processes that the command started" {
    "$DLOCK" run --node "$(node a)" "$key" -- \
        sh -c 'sleep 60 & echo $! >grandchild.new; mv grandchild.new grandchild; wait' &
    local dlock=$!
    wait_until '[ -s grandchild ]'
    kill -KILL "$dlock"
    wait_until '! alive "$(cat grandchild)"'
}

# ------------------------------------------------------- awkward commands

@test "a command that ignores SIGTERM, and whose children do, ends before its lease" {
    try run --max-run 3s -k 300ms "$key" -- sh -c 'trap "" TERM
        for i in 1 2 3; do sh -c "echo \$\$ >>pids; while :; do sleep 0.02; done" & done; wait'
    exits 137
    is_free "$key"
    [ "$(wc -l <pids)" -eq 3 ]
    wait_until '[ -z "$(leftovers)" ]' || fail "left: $(leftovers)"
}

@test "a command that writes a gigabyte" {
    [ "$("$DLOCK" run --ttl 10s "$key" -- head -c 1000000000 /dev/zero | wc -c)" = 1000000000 ]
    is_free "$key"
}

@test "a command whose reader has ended dies of SIGPIPE, as without dlock" {
    "$DLOCK" run --report report "$key" -- yes | head -n 1
    jq -e '.child.signal == 13' report
    is_free "$key"
}

@test "a command that closes its streams keeps the lock until it ends" {
    start_holding "$key" --ttl 3s --node-timeout 2s 'exec <&- >&- 2>&-; while [ ! -e stop ]; do sleep 0.1; done; exit 6'
    for _ in 1 2; do is_renewed "$key"; done
    touch stop
    finish
    exits 6
    is_free "$key"
}

@test "a command that dumps core by signal n: 128+n" {
    try run --report report "$key" -- sh -c 'ulimit -c unlimited; kill -ABRT $$'
    exits 134
    jq -e '.child == {signal: 6}' report
    is_free "$key"
}

@test "a command that stops itself keeps its lock, and CONT continues it" {
    start_holding "$key" --ttl 3s --node-timeout 2s 'kill -STOP $$; exit 9'
    wait_until "[ \"\$(process_state $command_pid)\" = T ]"
    for _ in 1 2; do is_renewed "$key"; done
    kill -s CONT "$bg"
    finish
    exits 9
    is_free "$key"
}

@test "a dlock that executes another dlock, and a nested dlock" {
    local how
    for how in "exec $DLOCK" "$DLOCK"; do
        start_holding "$key" "$how run $key-2 -- sh -c 'echo \$\$ >inner.new; mv inner.new inner; exec sleep 30'"
        wait_until '[ -s inner ]'
        is_held "$key"
        is_held "$key-2"
        kill -s TERM "$bg"
        finish
        exits 143
        has_ended "$(cat inner)"
        is_free "$key"
        is_free "$key-2"
        rm inner
    done
}

@test "SIGKILL of the outer dlock also ends the command of the inner one" {
    start_holding "$key" "$DLOCK run $key-2 -- sh -c 'sleep 30 & echo \$! >inner.new; mv inner.new inner; wait'"
    wait_until '[ -s inner ]'
    kill -KILL "$bg"
    wait_until '[ -z "$(leftovers)" ]'
}

# ------------------------------------------------------------- other places

@test "a waiter dies of the signal itself, not with an exit status" {
    local name
    take "$key"
    for name in INT TERM HUP QUIT USR1 USR2 ALRM PIPE XFSZ PWR RTMIN; do
        "$PYTHON" -c '
import signal, subprocess, sys, time
dlock = subprocess.Popen(sys.argv[2:])
caught = "SigBlk:"
while True:  # until it watches for signals
    blocked = [line for line in open("/proc/%d/status" % dlock.pid) if line.startswith("SigBlk")][0]
    if int(blocked.split()[1], 16) & 1 << signal.SIGUSR2 - 1:
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
    local waiter pid
    take "$key"
    waiter=("$PYTHON" -c "$deaf" "$DLOCK" run -v --wait 30s "$key" -- touch begun)
    "${waiter[@]}" 3>&- 4>&- &
    pid=$!
    wait_until '[[ $(rcli a info clients) == *blocked_clients:1* ]]'
    kill -s TERM "$pid"
    status=0
    wait "$pid" || status=$?
    exits 143
    [ ! -e begun ]
    "${waiter[@]}" 3>&- 4>&- &
    pid=$!
    wait_until '[[ $(rcli a info clients) == *blocked_clients:1* ]]'
    "$DLOCK" release "$key" "$token"
    status=0
    wait "$pid" || status=$?
    exits 0
    [ -e begun ]
}

@test "without a terminal, as cron starts it" {
    attempt setsid -w env -i PATH="$PATH" "$DLOCK" run --node "$(node a)" "$key" -- \
        sh -c 'ps -o tty= -p $$; exit 3' <&-
    exits 3
    [[ $output == *'?'* ]]
    is_free "$key"
}

@test "as a background job of a shell without job control" {
    # Such a job has SIGINT and SIGQUIT ignored, and /dev/null as standard input.
    sh -c "'$DLOCK' run $key -- sh -c ': >begun; while [ ! -e stop ]; do sleep 0.1; done; cat; exit 5' & echo \$! >job
        wait \$!; echo \$? >status" &
    wait_until '[ -e begun ]'
    kill -s INT "$(cat job)"
    kill -s QUIT "$(cat job)"
    is_held "$key"
    touch stop
    wait_until '[ -s status ]'
    [ "$(cat status)" = 5 ]
    is_free "$key"
}

@test "a service is stopped: SIGTERM to each process at once" {
    # systemd does this with all of a unit's control group.
    start_holding "$key" 'trap "echo TERM >>got; exit 7" TERM; sleep 30 & while :; do sleep 0.02; done'
    # shellcheck disable=SC2046
    kill -s TERM $(leftovers)
    finish
    exits 7
    is_free "$key"
    [ -z "$(leftovers)" ] || fail "left: $(leftovers)"
    [ -s got ]
}

@test "a dlock that is killed as soon as its command starts: no process of the command is left" {
    attempt "$DLOCK" run "$key" -- sh -c 'sleep 30 & sleep 30 & kill -KILL $PPID; sleep 30'
    exits 137
    wait_until '[ -z "$(leftovers)" ]'
}

@test "a service is killed: SIGKILL to each process at once" {
    start_holding "$key" 'sleep 30 & wait'
    # shellcheck disable=SC2046
    kill -s KILL $(leftovers)
    wait_until '[ -z "$(leftovers)" ]'
    [ "$(rcli a pttl "$key")" -gt 0 ]
}

# in_container COMMAND...: it is the first process of a process namespace.
in_container() {
    attempt timeout -k 2 30 unshare --pid --fork --kill-child --mount-proc "$@"
}

@test "as the first process of a container: reaps orphans, exits with the status of the command" {
    unshare --pid --fork --mount-proc true 2>err || must_run "no process namespaces here: $(cat err)"
    # The stranger leaves the group, loses its parent and ends: nobody but dlock can reap it.
    in_container "$DLOCK" run --ttl 20s "$key" -- sh -c '
        test "$PPID" -eq 1 || exit 99
        (setsid sh -c "echo \$\$ >stranger.new; mv stranger.new stranger" &)
        while [ ! -s stranger ] || [ -e "/proc/$(cat stranger)" ]; do sleep 0.02; done
        exit 4'
    exits 4
    is_free "$key"
    in_container "$DLOCK" run "$key" -- sh -c 'kill -KILL $$'
    exits 137
    in_container "$DLOCK" run "$key" -- no-such-command-anywhere
    exits 127
}

@test "as the first process of a container: signals reach the command, and end a waiter" {
    unshare --pid --fork --mount-proc true 2>err || must_run "no process namespaces here: $(cat err)"
    local pid
    unshare --pid --fork --mount-proc "$DLOCK" run "$key" -- \
        sh -c 'trap "exit 12" TERM; : >begun; while :; do sleep 0.02; done' 3>&- 4>&- &
    pid=$!
    wait_until '[ -e begun ]'
    kill -s TERM "$(pgrep -P "$pid")"
    status=0
    wait "$pid" || status=$?
    exits 12
    is_free "$key"
    take "$key"
    # The kernel kills no first process by a signal that it has not asked for.
    unshare --pid --fork --mount-proc "$DLOCK" run -v --wait 30s "$key" -- true 2>err 3>&- 4>&- &
    pid=$!
    wait_until "grep -q held err"
    kill -s TERM "$(pgrep -P "$pid")"
    status=0
    wait "$pid" || status=$?
    exits 143
}

@test "inside sudo, and around it" {
    type -P sudo >/dev/null || must_run "sudo is not installed"
    sudo -n true 2>err || must_run "no sudo without a password: $(cat err)"
    attempt sudo -n "$DLOCK" run --node "$(node a)" "$key" -- sh -c 'exit 3'
    exits 3
    is_free "$key"
    attempt "$DLOCK" run "$key" -- sudo -n sh -c 'exit 4'
    exits 4
    is_free "$key"
    # sudo passes a signal on to dlock, dlock to the command.
    sudo -n "$DLOCK" run --node "$(node a)" "$key" -- \
        sh -c 'trap "exit 12" TERM; : >begun; while :; do sleep 0.02; done' 3>&- 4>&- &
    local pid=$!
    wait_until '[ -e begun ]'
    kill -s TERM "$pid"
    status=0
    wait "$pid" || status=$?
    exits 12
    is_free "$key"
}
