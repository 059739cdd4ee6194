#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# dlock is stopped, hangs or is held while a command runs, or the command is: the command ends with the lease.

load ../lib/lost

# How soon the command ends is measured by bench/lost and tests/fault; here another process may come in between.

@test "a stopped dlock continues before its lease ends, and ends the command and its group" {
    traps='trap "" TERM' start_holding "$key" --ttl 3s 'sleep 30 & echo $! >child; while :; do sleep 0.1; done'
    wait_until '[ -s child ]'
    is_renewed "$key"
    kill -STOP "$bg" # after a renewal, and repeatedly
    sleep 0.3
    kill -CONT "$bg"
    kill -STOP "$bg"
    loses
    [ "$killed_by_timer" = yes ] || complains "$key.*renewed"
    has_ended "$(cat child)"
}

@test "a stopped dlock does not change the lock of the next holder" {
    start_holding "$key" --ttl 3s 'sleep 30'
    # A stop alone does not suffice, because dlock continues before its lease ends; so the lock is deleted meanwhile.
    kill -STOP "$bg"
    rcli a del "$key"
    take "$key" --ttl 20s
    loses
    [ "$(rcli a get "$key")" = "$token" ]
}

@test "a stopped dlock that ignores or blocks SIGCONT continues, too" {
    for how in 'signal.signal(signal.SIGCONT, signal.SIG_IGN)' \
        'signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCONT])'; do
        rm -f begun
        "$PYTHON" -c "import os, signal, sys; $how; os.execvp(sys.argv[1], sys.argv[1:])" \
            "$DLOCK" run --ttl 3s "$key" -- sh -c 'echo $$ >begun.new; mv begun.new begun; exec sleep 30' \
            </dev/null 2>err 3>&- 4>&- &
        bg=$!
        wait_until '[ -f begun ]'
        kill -STOP "$bg"
        wait_until "! alive $bg"
        status=0
        wait "$bg" || status=$?
        exits_76_or_killed
        has_ended "$(cat begun)"
    done
}

@test "command and dlock are stopped: both continue, and the command gets the first signal" {
    traps='trap "echo TERM >got; exit 0" TERM' start_holding "$key" --ttl 12s --kill-after 4s 'while :; do sleep 0.1; done'
    kill -STOP $(leftovers)
    finishes 76
    has_ended "$command_pid"
    [ "$(cat got)" = TERM ]
    is_free "$key"
}

@test "with --foreground a stopped dlock ends its command, too" {
    start_holding "$key" -v --ttl 3s --foreground 'exec sleep 30'
    kill -STOP "$bg"
    loses
    # What continues dlock is not passed on.
    [[ ${stderr%%sent SIGTERM*} != *'sent SIGCONT'* ]]
}

@test "as the first process of a container a dlock that is stopped from outside continues, too" {
    unshare --pid --fork --mount-proc true 2>err || must_run "no process namespaces here: $(cat err)"
    unshare --pid --fork --mount-proc "$DLOCK" run --ttl 3s "$key" -- \
        sh -c 'trap "" TERM; : >begun; while :; do : >last; sleep 0.02; done' </dev/null 2>err 3>&- 4>&- &
    bg=$!
    wait_until '[ -e begun ]'
    kill -STOP "$(pgrep -P "$bg")"
    wait_until "! alive $bg"
    waits_for 76 "$bg"
    grep -q renewed err
    wait_until '[ -z "$(leftovers)" ]'
}

# "$PYTHON" -c "$trace" COMMAND...: run it, stop its leader by ptrace(2) once the file begun is there, fail its status.
trace='
import ctypes, os, subprocess, sys, time
libc = ctypes.CDLL(None, use_errno=True)
def ptrace(request, pid):
    if libc.ptrace(ctypes.c_long(request), ctypes.c_long(pid), None, None) != 0:
        print(os.strerror(ctypes.get_errno()))
        sys.exit(99)
dlock = subprocess.Popen(sys.argv[1:])
while not os.path.exists("begun"):
    time.sleep(0.01)
def hold(task):
    ptrace(0x4206, task)  # PTRACE_SEIZE
    ptrace(0x4207, task)  # PTRACE_INTERRUPT
hold(dlock.pid)
os.waitpid(dlock.pid, 0)  # it stands: now it starts no further thread
for task in os.listdir("/proc/%d/task" % dlock.pid):
    if int(task) != dlock.pid:
        hold(int(task))
while True:
    _, status = os.waitpid(dlock.pid, 0)
    if not os.WIFSTOPPED(status):
        break
print(os.waitstatus_to_exitcode(status))'

@test "a dlock that a debugger holds is killed when its lease ends, and the command with it" {
    attempt timeout -k 2 30 "$PYTHON" -c "$trace" "$DLOCK" run --ttl 3s "$key" -- \
        sh -c 'echo $$ >begun.new; mv begun.new begun; while :; do : >last; sleep 0.01; done'
    [ "$status" -ne 99 ] || must_run "ptrace is not allowed here: $output"
    exits 0
    [ "$output" = -9 ] || fail "expected SIGKILL"
    wait_until "! alive $(cat begun)"
}

@test "no timer is left on this host: the command is not started" {
    attempt bash -c 'ulimit -i 0; exec "$@"' - "$DLOCK" run "$key" -- touch begun
    fails 71 'timer'
    [ ! -e begun ]
    is_free "$key"
}

@test "a dlock that is stopped for a moment keeps its lock" {
    start_holding "$key" --ttl 6s 'while [ ! -e stop ]; do sleep 0.2; done; exit 5'
    kill -STOP "$bg"
    sleep 0.3
    kill -CONT "$bg"
    stops 5
    is_free "$key"
}

@test "--on-lost warn does not continue a stopped dlock or end its command" {
    start_holding "$key" --ttl 3s --on-lost warn 'while [ ! -e stop ]; do sleep 0.2; done'
    kill -STOP "$bg"
    wait_until "free '$key'"
    sleep 0.2
    alive "$command_pid"
    kill -CONT "$bg"
    wait_until "[ -s bg.$bg_count.err ]"
    stops 76
}

@test "a command that is stopped is killed when its lease ends" {
    redis_start frozen
    DLOCK_NODES=$(node frozen) start_holding "$key" --ttl 3s 'exec sleep 30'
    kill -STOP "$command_pid"
    redis_freeze frozen
    loses
}
