#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# dlock run where it is started in unusual ways: by cron, as a service, as the first process of a container, inside sudo.

# shellcheck disable=SC2153
load ../lib/redis

@test "without a terminal, as cron starts it" {
    yields 3 setsid -w env -i PATH="$PATH" "$DLOCK" run --node "$(node a)" "$key" -- \
        sh -c 'ps -o tty= -p $$; exit 3' <&-
    [[ $output == *'?'* ]]
    is_free "$key"
}

@test "as a background job of a shell without job control" {
    # Such a job has SIGINT and SIGQUIT ignored, and /dev/null as standard input.
    sh -c "'$DLOCK' run $key -- sh -c ': >begun; while [ ! -e stop ]; do sleep 0.2; done; cat; exit 5' & echo \$! >job
        wait \$!; echo \$? >status" &
    wait_until '[ -e begun ] && [ -s job ]'
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
    traps='trap "echo TERM >>got; exit 7" TERM' start_holding "$key" 'sleep 30 & echo $! >child; while :; do sleep 0.1; done'
    wait_until '[ -s child ] && [ "$(cat "/proc/$(cat child)/comm")" = sleep ]'
    kill -s TERM $(leftovers)
    finishes 7
    is_free "$key"
    [ -z "$(leftovers)" ] || fail "left: $(leftovers)"
    [ -s got ]
}

# in_container COMMAND...: it is the first process of a process namespace.
in_container() { attempt timeout -k 2 30 unshare --pid --fork --kill-child --mount-proc "$@"; }

@test "as the first process of a container: reaps orphans, exits with the status of the command" {
    unshare --pid --fork --mount-proc true 2>err || must_run "no process namespaces here: $(cat err)"
    # The process leaves the group, loses its parent and ends: only dlock can reap it.
    in_container "$DLOCK" run --ttl 20s "$key" -- sh -c '
        test "$PPID" -eq 1 || exit 99
        (setsid sh -c "echo \$\$ >stranger.new; mv stranger.new stranger" &)
        while [ ! -s stranger ] || [ -e "/proc/$(cat stranger)" ]; do sleep 0.1; done
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
    unshare --pid --fork --mount-proc "$DLOCK" run "$key" -- \
        sh -c 'trap "exit 12" TERM; : >begun; while :; do sleep 0.1; done' 3>&- 4>&- &
    pid=$!
    wait_until '[ -e begun ]'
    kill -s TERM "$(pgrep -P "$pid")"
    waits_for 12 "$pid"
    is_free "$key"
    take "$key"
    # The kernel does not deliver a signal to a first process that has no handler for it.
    unshare --pid --fork --mount-proc "$DLOCK" run -v --wait 30s "$key" -- true 2>err 3>&- 4>&- &
    pid=$!
    wait_until "grep -q held err"
    kill -s TERM "$(pgrep -P "$pid")"
    waits_for 143 "$pid"
}

@test "inside sudo, and around it" {
    type -P sudo >/dev/null || must_run "sudo is not installed"
    sudo -n true 2>err || must_run "no sudo without a password: $(cat err)"
    yields 3 sudo -n "$DLOCK" run --node "$(node a)" "$key" -- sh -c 'exit 3'
    is_free "$key"
    yields 4 "$DLOCK" run "$key" -- sudo -n sh -c 'exit 4'
    is_free "$key"
    # sudo passes a signal on to dlock, dlock to the command.
    sudo -n "$DLOCK" run --node "$(node a)" "$key" -- \
        sh -c 'trap "exit 12" TERM; : >begun; while :; do sleep 0.1; done' 3>&- 4>&- &
    pid=$!
    wait_until '[ -e begun ]'
    kill -s TERM "$pid"
    waits_for 12 "$pid"
    is_free "$key"
}
