#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# dlock run on a terminal: the command has it as without dlock, job control works.

load ../lib/redis

node_timeout=2s
setup() {
    test_begin
    export TERM=dumb HISTFILE=/dev/null PS1='prompt> '
    unset PROMPT_COMMAND ENV
}

# at_terminal STEP... -- COMMAND...: see lib/terminal.py.
at_terminal() { attempt "$PYTHON" "$lib_dir/terminal.py" "$@"; }

# at_terminal_gives STATUS STEP... -- COMMAND...: the same, and its status.
at_terminal_gives() {
    at_terminal "${@:2}"
    exits "$1"
}

# in_shell STEP...: at the prompt of an interactive shell, which ends at the end, and all went as it should.
in_shell() { at_terminal_gives 0 expect='prompt> ' "$@" 'send=exit 0\n' -- bash --norc --noprofile --noediting -i; }

@test "the command reads from the terminal, with --foreground, too" {
    for how in '' --foreground; do
        at_terminal_gives 3 expect=ready 'send=hello\n' 'expect=got hello' -- \
            "$DLOCK" run $how "$key" -- sh -c 'echo ready; read x; echo got $x; exit 3'
        is_free "$key"
    done
}

@test "the terminal belongs to the caller again afterwards" {
    at_terminal_gives 0 expect=ready 'send=hello\n' 'expect=got hello' -- \
        sh -c "$DLOCK run $key -- true; echo ready; read x; echo got \$x"
    at_terminal_gives 0 expect=ready 'send=hello\n' 'expect=got hello' -- \
        sh -c "$DLOCK run $key -- no-such-command-anywhere; echo ready; read x; echo got \$x"
}

@test "control C reaches the command once and its exit status counts" {
    at_terminal_gives 1 expect=ready 'send=\x03' expect=interrupted -- \
        "$DLOCK" run "$key" -- sh -c 'n=0; trap "n=\$((n + 1)); echo interrupted" INT; echo ready
            until [ $n -gt 0 ]; do sleep 0.1; done; i=0; while [ $i -lt 25 ]; do sleep 0.02; i=$((i + 1)); done; exit $n'
    is_free "$key"
}

# make_loop: loop.py runs until the file "stop" is there, and leaves "ended".  It is no loop of a shell: one that is stopped
# between vfork and exec is not seen to be stopped.
make_loop() {
    cat >loop.py <<'END'
import os, time
print("ready", flush=True)
while not os.path.exists("stop"):
    time.sleep(0.02)
open("ended", "w").close()
END
}

@test "control Z and bg continue a command in the background" {
    make_loop
    in_shell "send=$DLOCK run $key -- $PYTHON loop.py\n" 'expect=\nready' 'send=\x1a' expect=Stopped expect='prompt> ' \
        'send=bg\n' expect='prompt> ' 'send=: >stop\n' file=ended 'send=wait\n'
    is_free "$key"
}

@test "in the background the terminal stays with the shell" {
    in_shell "send=$DLOCK run $key -- sh -c 'sleep 0.3; : >ended' &\n" expect='prompt> ' \
        'send=echo shell $((1 + 1))\n' 'expect=shell 2' file=ended 'send=wait\n'
    is_free "$key"
}

@test "in a pipeline the terminal is the command's, and the shell's afterwards" {
    in_shell "send=$DLOCK run $key -- sh -c 'echo ready; read x; echo got \$x' | cat\n" 'expect=\nready' 'send=hello\n' \
        'expect=got hello' expect='prompt> ' 'send=echo shell $((1 + 1))\n' 'expect=shell 2'
}

@test "the end of the terminal ends the command, and the lock is released" {
    for how in '' --foreground; do
        at_terminal_gives 129 expect=ready hangup -- "$DLOCK" run $how "$key" -- sh -c 'echo ready; exec sleep 30'
        is_free "$key"
    done
}

@test "waiting for a client that is not dlock shows that" {
    rcli a set "$key" foreign
    at_terminal_gives 130 'expect=held by a client that is not dlock' 'send=\x03' -- "$DLOCK" run --wait 20s "$key" -- echo begun
}

@test "-q shows no line while it waits" {
    take_for 500 "$key" --label 'nightly backup'
    at_terminal_gives 0 -- "$DLOCK" run -q --wait 20s "$key" -- echo begun
    [ "$output" = begun ]
}

@test "control C and control backslash end the command, with --foreground, too, and the lock is released" {
    for how in '' --foreground; do
        at_terminal_gives 130 expect=ready 'send=\x03' -- "$DLOCK" run $how "$key" -- sh -c 'echo ready; exec sleep 30'
        at_terminal_gives 131 expect=ready 'send=\x1c' -- "$DLOCK" run $how "$key" -- sh -c 'ulimit -c 0; echo ready; exec sleep 30'
        is_free "$key"
    done
}

# With > or < in the caller's line the terminal is handed over to nobody, with --foreground there is nobody to get it.
elsewhere=("run @ >out" "run @ </dev/null" "run --foreground @" "run --foreground @ >out")

# calling SCRIPT LINE [AFTER]: a script that calls dlock with LINE, its @ being the key and SCRIPT, and goes on then.
calling() {
    printf '%s\n' "$1" >command.sh
    printf '%s\n' "$DLOCK ${2/@/$key -- bash command.sh}" 'echo went on $?' >script
}

@test "control C ends the script that called dlock, also where the terminal was not handed over" {
    for line in 'run @' "${elsewhere[@]}"; do
        calling ': >begun; exec sleep 30' "$line"
        at_terminal_gives 130 file=begun 'send=\x03' -- bash script
        [[ $output != *'went on'* ]] || fail "$line"
        is_free "$key"
        rm begun
    done
}

@test "control C ends a script that calls a dlock within a dlock, too" {
    # The terminal signals the outer dlock, which passes it on to the inner ones.
    calling ': >begun; exec sleep 30' 'run @'
    mv script inner
    for command in 'bash inner' "$DLOCK run $key-2 -- bash inner"; do
        printf '%s\n' "$DLOCK run $key-1 -- $command >out" 'echo outer went on' >script
        at_terminal_gives 130 file=begun 'send=\x03' -- bash script
        [[ $output != *'went on'* ]]
        [ ! -s out ]
        is_free "$key"
        is_free "$key-1"
        rm begun
    done
}

@test "control C that the command handles ends no script" {
    for line in "${elsewhere[@]}"; do
        calling 'trap "exit 3" INT; : >begun; while :; do sleep 0.1; done' "$line"
        at_terminal_gives 0 file=begun 'send=\x03' 'expect=went on 3' -- bash script
        is_free "$key"
        rm begun
    done
}

@test "with --foreground control C reaches a command that has left the group, too" {
    # timeout(1) leads a group of its own, which the terminal does not know.
    at_terminal_gives 130 file=begun 'send=\x03' -- \
        "$DLOCK" run --foreground "$key" -- timeout 60 sh -c ': >begun; exec sleep 30'
    is_free "$key"
}

@test "with --foreground control C reaches the command once" {
    # dlock sees it when the command has dealt with it already; SIGCONT is the last that it passes on.  Before that it sleeps:
    # what arrives while it starts the command is passed on in any case.
    cat >count.py <<'END'
import os, signal, sys, time
count = 0
def interrupted(number, frame):
    global count
    count += 1
    os.kill(os.getppid(), signal.SIGCONT)
signal.signal(signal.SIGINT, interrupted)
signal.signal(signal.SIGCONT, lambda number, frame: sys.exit(count))
while open("/proc/%d/stat" % os.getppid()).read().rsplit(") ")[1][0] != "S":
    time.sleep(0.01)
os.kill(os.getppid(), signal.SIGSTOP)
print("ready", flush=True)
while True:
    time.sleep(0.02)
END
    at_terminal_gives 1 expect=ready 'send=\x03' -- "$DLOCK" run --foreground "$key" -- "$PYTHON" count.py
}

# A command that repeats each line of its input; and the same as a line for a shell under dlock.
answer="sh -c 'echo ready; read x; echo got \$x; exit 7'"

@test "control Z and fg work through a dlock in a dlock" {
    in_shell "send=$DLOCK run $key -- $DLOCK run $key-2 -- $answer\n" 'expect=\nready' 'send=\x1a' \
        expect=Stopped expect='prompt> ' 'send=fg\n' expect=run 'send=hello\n' 'expect=got hello' \
        expect='prompt> ' 'send=echo status $?\n' 'expect=status 7'
    is_free "$key"
    is_free "$key-2"
}

@test "a command that stops itself where it has the terminal stops dlock with it" {
    in_shell "send=$DLOCK run $key -- sh -c 'kill -STOP \$\$; exit 7'\n" expect=Stopped expect='prompt> ' \
        'send=fg\n' expect='prompt> ' 'send=echo status $?\n' 'expect=status 7'
}

@test "in a pipeline another process may read from the terminal while the command runs" {
    echo 'until [ -e begun ]; do sleep 0.02; done; echo ready; read x </dev/tty; echo got $x; : >stop' >pager
    in_shell "send=$DLOCK run $key -- sh -c ': >begun; until [ -e stop ]; do sleep 0.02; done' | sh pager\n" \
        'expect=\nready' 'send=hello\n' 'expect=got hello' expect='prompt> '
}

@test "control Z and fg work twice, and inside a script" {
    # A command that has answered has continued; the SIGCONT of fg would undo a ^Z before that.
    twice="sh -c 'echo ready; read x; echo got \$x; read x; echo got \$x; exit 7'"
    echo "$DLOCK run $key -- $twice; echo script \$?" >script
    in_shell 'send=sh script\n' 'expect=\nready' \
        'send=\x1a' expect=Stopped expect='prompt> ' 'send=fg\n' 'expect=sh script' 'send=one\n' 'expect=got one' \
        'send=\x1a' expect=Stopped expect='prompt> ' 'send=fg\n' 'expect=sh script' 'send=two\n' 'expect=got two' \
        'expect=script 7'
    is_free "$key"
}

@test "fg continues the command once" {
    # The signal itself, passed on after that, could take back the next ^Z.
    in_shell "send=$DLOCK run -v $key -- $answer\n" 'expect=\nready' 'send=\x1a' \
        expect=Stopped expect='prompt> ' 'send=fg\n' expect=run 'send=hello\n' 'expect=got hello' expect='prompt> '
    [[ $output == *'sent SIGCONT'* && ${output#*'sent SIGCONT'} != *'sent SIG'* ]]
}

@test "control Z stops nothing if no shell could continue it" {
    # The script leads the session, so the system stops nothing of its group by the terminal's signals.
    calling ': >begun; read x; echo got $x; exit 3' 'run @'
    at_terminal_gives 0 file=begun 'send=\x1a' 'send=hello\n' 'expect=got hello' 'expect=went on 3' -- bash script
    is_free "$key"
    rm begun
    at_terminal_gives 3 file=begun 'send=\x1a' 'send=hello\n' 'expect=got hello' -- \
        "$DLOCK" run "$key" -- sh -c ': >begun; read x; echo got $x; exit 3'
    [[ $output != *stopped* ]] || fail "it was not: $output"
}

@test "a background job that wants to read stops, and reads after fg" {
    in_shell "send=$DLOCK run $key -- $answer &\n" expect='prompt> ' \
        'send=until jobs | grep Stopped; do sleep 0.1; done\n' 'expect=Stopped' expect='prompt> ' \
        'send=fg\n' expect=run 'send=hello\n' 'expect=got hello' \
        expect='prompt> ' 'send=echo status $?\n' 'expect=status 7'
    is_free "$key"
}

@test "control Z says that the command is ended when the lease ends, with its key" {
    for how in '' --foreground; do
        in_shell "send=$DLOCK run --ttl 30s $how $key -- $answer\n" 'expect=\nready' 'send=\x1a' \
            'expect=is ended when the lease ends' expect=Stopped expect='prompt> ' 'send=fg\n' expect=run 'send=hello\n' 'expect=got hello' \
            expect='prompt> ' 'send=echo status $?\n' 'expect=status 7'
        line="dlock: $key: stopped; if it is not continued, the command is ended when the lease ends, in [0-9.]+s"
        [[ $output =~ $line ]] || fail "expected the message"
    done
    # With --on-lost warn it is not ended, and -q is silent.
    in_shell "send=$DLOCK run --ttl 30s --on-lost warn $key -- $answer\n" 'expect=\nready' 'send=\x1a' \
        'expect=the lock is lost when the lease ends' expect=Stopped expect='prompt> ' 'send=fg\n' expect=run 'send=hello\n' 'expect=got hello' \
        expect='prompt> '
    in_shell "send=$DLOCK run -q --ttl 30s $key -- $answer\n" 'expect=\nready' 'send=\x1a' \
        expect=Stopped expect='prompt> ' 'send=fg\n' expect=run 'send=hello\n' 'expect=got hello' expect='prompt> '
    [[ $output != *'dlock: '* ]] || fail "expected no message"
}

@test "a command that control Z stopped gets the first signal before its lease ends, without fg, with a message" {
    for how in '' --foreground; do
        rm -f got
        in_shell "send=$DLOCK run $how --ttl 6s -k 2s $key -- sh -c 'trap \"echo TERM >got; exit 3\" TERM; echo \$\$ >command; echo ready; read x; : >went-on'\n" \
            'expect=\nready' 'send=\x1a' expect=Stopped expect='prompt> ' \
            'expect=could not be renewed' 'send=wait %%; echo status $?\n' 'expect=status 76' expect='prompt> '
        [ ! -e went-on ]
        [ "$(cat got)" = TERM ]
        has_ended "$(cat command)"
        is_free "$key"
    done
}

# A background job that wants to read stops, dlock with it.
reader="sh -c 'echo \$\$ >command; read x; : >went-on'"
has_stopped='until jobs | grep Stopped; do sleep 0.1; done'

@test "--max-run ends a background job that ignores SIGTERM by SIGKILL" {
    echo "$DLOCK run --max-run 500ms -k 300ms $key -- sh -c 'trap \"\" TERM; while :; do read x; done'; echo \$? >status.new; mv status.new status" >script
    in_shell 'send=sh script &\n' expect='prompt> ' 'expect=has run for' file=status
    [[ "$(cat status)" =~ ^(124|137)$ ]] || fail "expected the status of --max-run: $(cat status)"
    wait_until '[ -z "$(leftovers)" ]' || fail "left: $(leftovers)"
    is_free "$key"
}

@test "the end of the lease ends a background job that wants to read" {
    in_shell "send=$DLOCK run --ttl 9s -k 2s $key -- $reader &\n" expect='prompt> ' \
        "send=$has_stopped\n" expect=Stopped 'expect=could not be renewed' \
        'send=wait %%; echo status $?\n' 'expect=status 76' expect='prompt> '
    [ ! -e went-on ]
    has_ended "$(cat command)"
}

@test "--on-lost warn leaves a command stopped that control Z stopped" {
    make_loop
    in_shell "send=$DLOCK run --on-lost warn --ttl 6s $key -- $PYTHON loop.py\n" \
        'expect=\nready' 'send=\x1a' expect=Stopped expect='prompt> ' 'expect=continues without the lock' \
        'send=: >stop\n' wait=0.3 'send=test -e ended || echo still\n' 'expect=\nstill' 'send=fg\n' file=ended \
        expect='prompt> ' 'send=echo status $?\n' 'expect=status 76'
}

@test "at a terminal inside sudo, and around it: control Z, fg and control C" {
    type -P sudo >/dev/null || must_run "sudo is not installed"
    sudo -n true 2>err || must_run "no sudo without a password: $(cat err)"
    for line in "sudo -n $DLOCK run -N $DLOCK_NODES $key -- $answer" "$DLOCK run $key -- sudo -n $answer"; do
        in_shell "send=$line\n" 'expect=\nready' 'send=\x1a' expect=Stopped expect='prompt> ' \
            'send=fg\n' expect=run 'send=hello\n' 'expect=got hello' \
            expect='prompt> ' 'send=echo status $?\n' 'expect=status 7'
        in_shell "send=$line\n" 'expect=\nready' 'send=\x03' expect='prompt> ' \
            'send=echo status $?\n' 'expect=status 130'
        is_free "$key"
    done
}

@test "nohup keeps a command and its lock after the end of the terminal" {
    at_terminal file=begun hangup -- sh -c "nohup '$DLOCK' run --ttl 6s $key -- \
        sh -c ': >begun; while [ ! -e stop ]; do sleep 0.2; done; : >ended' >out 2>&1 & wait"
    for _ in 1 2; do is_renewed "$key"; done
    [ ! -e ended ]
    touch stop
    wait_until '[ -e ended ]'
    wait_until "free '$key'"
}

@test "SIGINT from another process or from --max-run ends no script" {
    at_terminal_gives 0 expect='went on 130' -- bash -c "
        (until [ -s dlock ]; do sleep 0.1; done; kill -INT \$(cat dlock)) &
        '$DLOCK' run $key -- sh -c 'echo \$PPID >dlock.new; mv dlock.new dlock; exec sleep 30'; echo went on \$?"
    at_terminal_gives 0 expect='went on 124' -- \
        sh -c "'$DLOCK' run --max-run 200ms --signal INT $key -- sleep 30; echo went on \$?"
}
