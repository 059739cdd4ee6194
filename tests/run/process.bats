#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# What the command of dlock run is given and not given as a process: descriptors, a process group; when dlock considers
# it ended; and that it ends with a dlock that is killed.  Signals are in signals.bats.

# shellcheck disable=SC2153
load ../lib/redis

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
    "$DLOCK" run --ttl 6s --node-timeout 2s "$key" -- "$PYTHON" -c "import time; time.sleep(2.2)$list_fds" got \
        3>&- 4>&- </dev/null >out 2>err
    diff expected got
}

# closed N: descriptor N is closed or leads to /dev/null, and there is no socket.
closed() {
    ! grep -E 'socket|anon_inode' got || fail "leaked"
    ! grep -E "^$1 " got | grep -v "^$1 /dev/null\$" || fail "$1 is something else"
}

@test "a standard descriptor that is closed is mixed up with no other" {
    "$DLOCK" run "$key" -- "$PYTHON" -c "$list_fds" got <&- >out 2>err
    closed 0
    grep -q "^1 $PWD/out" got
    "$DLOCK" run "$key" -- "$PYTHON" -c "$list_fds" got </dev/null >&- 2>err
    closed 1
    grep -q "^2 $PWD/err" got
    "$DLOCK" run "$key" -- "$PYTHON" -c "$list_fds" got </dev/null >out 2>&-
    closed 2
    grep -q "^1 $PWD/out" got
    is_free "$key"
}

@test "with all of them closed the command runs; with standard error closed no message goes to Redis" {
    mute() { "$DLOCK" "$@" <&- >&- 2>&-; }
    yields 3 mute run "$key" -- sh -c 'touch begun; exit 3'
    [ -e begun ]
    is_free "$key"
    yields 127 sh -c 'exec "$@" 2>&-' - "$DLOCK" run "$key" -- no-such-command-anywhere
    is_free "$key"
    yields 4 mute run -v "$key" -- sh -c 'exit 4'
}

# ------------------------------------------------------------ process group

@test "the command leads a process group of its own, with --foreground it stays in dlock's" {
    works run "$key" -- sh -c 'echo $$; ps -o pgid= -p $$'
    [ "${lines[0]}" -eq "${lines[1]}" ]
    start_holding "$key" --foreground 'sleep 30'
    [ "$(ps -o pgid= -p "$command_pid" | tr -d ' ')" = "$(ps -o pgid= -p "$bg" | tr -d ' ')" ]
}

@test "the lock is held and renewed until the whole group of the command has ended" {
    start_holding "$key" --ttl 6s --node-timeout 2s 'sh -c "while [ ! -e stop ]; do sleep 0.2; done; : >ended" & exit 7'
    wait_until "! alive $command_pid"
    for _ in 1 2; do is_renewed "$key"; done
    alive "$bg"
    stops 7
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
    finishes 7 "$bg" 10
    is_free "$key"
    alive "$(cat daemon)"
}

@test "a process that COMMAND leaves behind outside of its group is named, unless that is about to end, an agent or dlock" {
    gives 0 run "$key" -- setsid sleep 30
    pid=$(leftovers | while read -r pid; do ! grep -qx sleep "/proc/$pid/comm" || echo "$pid"; done)
    complains "^dlock: $key: process $pid \\(sleep\\) of COMMAND runs on without the lock\$"
    end_process "$pid"
    works run -q "$key" -- setsid sleep 30
    for agent in ssh-agent gpg-agent; do
        printf '#!/bin/sh\nsleep 30\n' >$agent
        chmod +x $agent
        works run "$key" -- setsid ./$agent
    done
    works run "$key" -- setsid -w true
    works run "$key" -- bash -c '"$DLOCK" acquire --keep $$ "$1" >/dev/null' - "$key-2"
    passes bash -c 'sleep 30 & exec "$DLOCK" run "$1" -- true' - "$key"
}

@test "a daemon that left the group and its session does not keep the lock" {
    start_holding "$key" 'setsid sh -c "echo \$\$ >daemon.new; mv daemon.new daemon; exec sleep 30" <&- >&- 2>&- &
        while [ ! -s daemon ]; do sleep 0.1; done; exit 0'
    finishes 0 "$bg" 10
    is_free "$key"
    alive "$(cat daemon)"
}

# ------------------------------------------------------- dlock itself is killed

@test "the command dies with a dlock that was killed" {
    for how in '' --foreground; do
        traps='trap "" TERM HUP INT QUIT' start_holding "$key$how" $how 'while :; do sleep 0.1; done'
        kill -KILL "$bg"
        wait_until "! alive $command_pid"
        [ "$(rcli a pttl "$key$how")" -gt 0 ]
    done
}

@test "a dlock that is killed while its command starts leaves no command behind" {
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
    dlock=$!
    wait_until '[ -s grandchild ]'
    kill -KILL "$dlock"
    wait_until '! alive "$(cat grandchild)"'
}

# ------------------------------------------------------- awkward commands

@test "a command that stops itself keeps its lock, and CONT continues it" {
    start_holding "$key" --ttl 6s --node-timeout 2s 'kill -STOP $$; exit 9'
    wait_until "[ \"\$(process_state $command_pid)\" = T ]"
    for _ in 1 2; do is_renewed "$key"; done
    kill -s CONT "$bg"
    finishes 9
    is_free "$key"
}

@test "a dlock that executes another dlock, and a nested dlock" {
    for how in "exec $DLOCK" "$DLOCK"; do
        start_holding "$key" "$how run $key-2 -- sh -c 'echo \$\$ >inner.new; mv inner.new inner; exec sleep 30'"
        wait_until '[ -s inner ]'
        is_held "$key"
        is_held "$key-2"
        terminate
        has_ended "$(cat inner)"
        is_free "$key"
        is_free "$key-2"
        rm inner
    done
}
