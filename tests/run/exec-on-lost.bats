#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# --exec-on-lost: a command that is run when the lock is lost.

load ../lib/lost

# lost_with OPTION... LINE: the lock of that command is lost.
lost_with() {
    start_holding "$key" --ttl 9s "$@"
    rcli a del "$key"
    finishes 76
}

@test "the hook gets the lock and the reason in its environment" {
    start_holding "$key" --ttl 9s --exec-on-lost 'env | grep ^DLOCK_ >hook.new; mv hook.new hook' 'sleep 30'
    token=$(rcli a get "$key")
    rcli a del "$key"
    finishes 76
    complains "$key: the lock is lost"
    grep -qx "DLOCK_KEY=$key" hook
    grep -qx "DLOCK_TOKEN=$token" hook
    grep -Eqx 'DLOCK_FENCE=[0-9]+' hook
    grep -qx 'DLOCK_TTL_MS=9000' hook
    grep -qx 'DLOCK_LOST_REASON=the lock is lost: .*' hook
}

@test "the hook runs when the lease cannot be renewed, before the command is killed" {
    redis_start gone
    traps='trap "" TERM' start_holding "$key" --node "$(node gone)" --ttl 9s -k 3s \
        --exec-on-lost "kill -0 \$(cat begun) && echo \"\$DLOCK_LOST_REASON\"" 'while :; do sleep 0.1; done'
    redis_stop gone
    loses
    [[ $output == 'the lease could not be renewed: '* ]]
}

@test "the hook runs with --on-lost warn, too, and one that stops itself has not ended" {
    start_holding "$key" --ttl 9s --on-lost warn --exec-on-lost 'echo $$ >pid; kill -STOP $$; : >hook' \
        'until [ -f hook ]; do sleep 0.1; done'
    rcli a del "$key"
    wait_until '[ -s pid ] && [ "$(process_state "$(<pid)")" = T ]'
    kill -CONT "$(<pid)"
    finishes 76
    [ -f hook ]
    [[ $stderr != *--exec-on-lost* ]] || fail "expected no word about it"
}

@test "the hook runs when only the release finds that the lock is lost, and not if it is not, or after --max-run" {
    gives 76 run --ttl 30s --exec-on-lost 'echo "hook: $DLOCK_LOST_REASON"' "$key" -- "$REDIS_CLI" -s "$(node a)" del "$key"
    [[ ${lines[1]} == 'hook: '?* ]]
    works run --exec-on-lost ': >hook' "$key" -- true
    gives 124 run --max-run 100ms --exec-on-lost ': >hook' "$key" -- sleep 30
    [ ! -e hook ]
}

@test "a hook that takes its time does not delay the end of the command" {
    start_holding "$key" --ttl 9s --exec-on-lost 'echo $$ >hook; exec sleep 60' 'sleep 60'
    rcli a del "$key"
    wait_until "[ -s hook ]"
    within 3000 wait_until "! alive $command_pid"
    alive "$bg"
    kill -TERM "$bg"
    within 5000 finishes 76
    [[ ${stderr_lines[-1]} == *"$key: the command of --exec-on-lost still runs; dlock ends without it" ]]
    alive "$(<hook)"
    kill "$(<hook)"
}

@test "the hook is not in the group that dlock kills, and ^C does not reach it" {
    lost_with --kill-after 0 --exec-on-lost 'cut -d" " -f6 /proc/$$/stat >sid; echo $$ >pid; sleep 1; : >hook' 'sleep 60'
    [ "$(<sid)" = "$(<pid)" ]
    [ -f hook ]
}

@test "a hook that fails is reported, and the exit status is 76" {
    lost_with --exec-on-lost 'exit 3' 'sleep 30'
    [[ ${stderr_lines[-1]} == *"$key: the command of --exec-on-lost failed with exit status 3" ]]
    lost_with --exec-on-lost 'kill -KILL $$' 'sleep 30'
    [[ ${stderr_lines[-1]} == *"$key: the command of --exec-on-lost was ended by SIGKILL" ]]
}

@test "the hook has no standard input, and no real-time priority, which dlock has if permitted" {
    policies='for pid in self $PPID; do sed "s/.*) //" "/proc/$pid/stat" | cut -d " " -f 39; done'
    dlock_policy=$(chrt -f 1 sh -c 'echo 1' || echo 0)
    attempt dlock run --ttl 30s --exec-on-lost "read -r line || echo 'no input'; $policies" \
        "$key" -- sh -c "$policies; $REDIS_CLI -s $(node a) del $key" <<<'a line'
    exits 76
    [ "${lines[*]::1} ${lines[*]:2}" = "0 1 no input 0 $dlock_policy" ] || fail 'expected SCHED_OTHER but for dlock'
}

@test "a hook that hangs: dlock ends after 10 seconds, and the hook continues" {
    start_holding "$key" --ttl 9s --exec-on-lost 'echo $$ >hooked.new; mv hooked.new hooked; exec sleep 60' 'exec sleep 30'
    rcli a del "$key"
    finishes 76 "$bg" 40
    [[ ${stderr_lines[-1]} == *'the command of --exec-on-lost still runs'* ]] || fail "expected a warning"
    alive "$(<hooked)"
}

@test "the hook has the signal mask and dispositions of the caller" {
    start_holding "$key" --ttl 9s --exec-on-lost 'exec grep -E "^Sig(Blk|Ign)" /proc/self/status' \
        'grep -E "^Sig(Blk|Ign)" /proc/self/status >mask; sleep 30'
    wait_until '[ -s mask ]'
    rcli a del "$key"
    finishes 76
    [ "${lines[0]}" = "$(head -n 1 mask)" ]
    # posix_spawn of glibc ignores 32 and 33, which are its own.
    hook=0x${lines[1]##*[[:blank:]]}
    command=0x$(sed -n 's/^SigIgn:[[:blank:]]*//p' mask)
    (((hook & ~0x180000000) == (command & ~0x180000000))) || fail "$hook is not $command"
}

@test "after --max-run a loss is reported, and runs the hook, but no renewal that failed" {
    redis_start gone
    trap '' TERM
    start_holding "$key" --node "$(node gone)" --ttl 3s --on-lost warn --max-run 100ms -k 0 --exec-on-lost ': >hook' \
        'until [ -e hook ]; do sleep 0.1; done'
    trap - TERM
    wait_until 'grep -q "(--max-run); ending it" bg.1.err'
    redis_stop gone
    finishes 76
    [[ $stderr == *'could not be renewed: '*'; the command continues without the lock' ]]
    [[ $stderr != *'a renewal failed'* ]]
}
