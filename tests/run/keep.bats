#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# acquire --keep: a lock that is held until a process ends.

load ../lib/keep

# keeps SHELL LINE...: in a script of that shell the lock is held until the script ends.
keeps() {
    local shell=$1
    script_goes "$2" 'touch going' "$3"
    token=$(<token)
    [ "$(rcli a get "$key")" = "$token" ]
    outlives_its_lease
    [ "$(rcli a get "$key")" = "$token" ]
    [[ $(dlock status "$key") == *":$bg "*"(keeper of PID $bg)"* ]] || fail "$(dlock status "$key")"
    comes_to_its_end
    succeeds
    wait_until "free '$key'"
    no_keeper
}

@test "the lock is held beyond its lease until the script ends: bash" {
    keeps bash 'token=$("$DLOCK" acquire --keep $$ --ttl 3s "$key") || exit; echo "$token" >token' "$lives_on"
}

@test "the lock is held beyond its lease until the script ends: dash" {
    command -v dash >/dev/null || must_run "no dash"
    keeps dash 'token=$("$DLOCK" acquire --keep $$ --ttl 3s "$key") || exit; echo "$token" >token' "$lives_on"
}

@test "the lock is held beyond its lease until the script ends: fish" {
    command -v fish >/dev/null || must_run "no fish"
    keeps fish 'set token ($DLOCK acquire --keep $fish_pid --ttl 3s $key); or exit; echo $token >token' \
        'while not test -e end; sleep 0.05; end'
}

@test "with --export the shell has the lock, and release needs no token" {
    script 'eval "$("$DLOCK" acquire --export --keep $$ "$key")"' 'echo "$DLOCK_KEY $DLOCK_TOKEN"' \
        '"$DLOCK" release "$key" && echo released'
    ends 0
    [[ ${lines[0]} == "$key "?* ]]
    [ "${lines[1]}" = released ]
    no_keeper
}

@test "a process that is killed: the lock is free at once" {
    script_goes '"$DLOCK" acquire --keep $$ "$key" >token' ': >going' 'sleep 60'
    kill -KILL "$bg"
    within 5000 wait_until "free '$key'"
    no_keeper
}

@test "--keep works without an environment, a terminal and a session of a shell" {
    setsid env -i TEST_MARK="$TEST_MARK" "$(command -v bash)" -c \
        'exec 2>&-; "$1" acquire -N "$2" --keep $$ --restart-guard 0 --ttl 3s --node-timeout 2s "$3" >token; : >going; while [ ! -e end ]; do sleep 0.2; done' \
        - "$DLOCK" "$(node a)" "$key" </dev/null >/dev/null 2>&1 3>&- 4>&- &
    wait_until '[ -e going ]'
    outlives_its_lease
    [ "$(rcli a get "$key")" = "$(<token)" ]
    : >end
    wait_until "free '$key'"
    no_keeper
}

@test "the keeper has a session of its own and nothing of its caller" {
    : >file
    mkdir dir
    script_goes 'exec 5<file 6>&1 7>&2' 'cd dir' 'token=$("$DLOCK" acquire --keep $$ "$key")' 'cd ..' ': >going' "$lives_on"
    process_stat "$keeper"
    [ "${stat[3]}" = "$keeper" ]
    [ "$(readlink "/proc/$keeper/cwd")" = / ]
    ls -l "/proc/$keeper/fd" >fds
    if grep -E "$BATS_TEST_TMPDIR|/dev/(pts|tty)" fds; then fail "of the caller"; fi
    [ "$(grep -c '/dev/null$' fds)" -eq 3 ]
    comes_to_its_end
    no_keeper
}

@test "a lock that is lost: the process gets SIGTERM, and one line on its standard error" {
    script_goes "trap 'echo told >told; $until_said; exit 3' TERM" 'token=$("$DLOCK" acquire --keep $$ --ttl 9s "$key")' 'exec 2>later' \
        ': >going' "$lives_on"
    works break --force "$key"
    [[ $output == *'; its process gets a signal within 4s' ]]
    ends 3
    [ -f told ]
    attempt_read out later
    complains "$key: the lock is lost: .*; sent SIGTERM to process $bg"
    [ ! -s err ]
    no_keeper
}

@test "the process gets SIGTERM before the lease ends if Redis is gone, and no SIGKILL" {
    redis_start gone
    script_goes "trap 'date +%s%3N >told; [ -e end ] || sleep 2; $until_said; exit 4' TERM" \
        'token=$("$DLOCK" acquire -N "'"$(node gone)"'" --keep $$ --ttl 9s "$key")' ': >going' "$lives_on"
    stalls_note
    redis_stop gone
    from=$(now_ms)
    ends 4
    find_stalls "$from"
    [ $(($(<told) - from)) -lt $((9000 + stalled)) ] || fail "told after $(($(<told) - from)) ms, stalled for $stalled ms"
    complains "$key: the lease could not be renewed: .*; sent SIGTERM to process $bg"
    no_keeper
}

@test "--kill-after, --signal and --on-lost warn" {
    script_goes 'trap "" TERM' 'token=$("$DLOCK" acquire --keep $$ --ttl 9s --kill-after 200ms "$key")' ': >going' "$lives_on"
    loses_lock 137
    script_goes 'trap "exit 5" USR1' 'token=$("$DLOCK" acquire --keep $$ --signal USR1 --ttl 9s "$key")' ': >going' "$lives_on"
    loses_lock 5
    script_goes 'token=$("$DLOCK" acquire --keep $$ --on-lost warn --ttl 9s "$key")' ': >going' "$lives_on"
    rcli a del "$key"
    no_keeper
    comes_to_its_end
    complains "$key: the lock is lost: .*; the process continues without the lock"
    script_goes 'token=$("$DLOCK" acquire --keep $$ --on-lost warn "$key")' ': >going' "$lives_on"
    kill -KILL "$keeper"
    wait_until "! alive $keeper"
    comes_to_its_end
}

@test "--exec-on-lost of the keeper, in the directory of its caller, and also if that is gone" {
    mkdir gone
    for dir in "$PWD" gone; do
        rm -f hook
        script_goes 'trap "exit 3" TERM' "hook=$PWD/hook; cd $dir" \
            'token=$("$DLOCK" acquire --keep $$ --ttl 9s --exec-on-lost "{ pwd; env; } >$hook" "$key")' 'cd "${hook%/*}"' ': >going' "$lives_on"
        [ "$dir" != gone ] || rmdir gone
        loses_lock 3
        [ "$dir" = gone ] || [ "$(head -n 1 hook)" = "$PWD" ]
        grep -qx "DLOCK_KEY=$key" hook
        grep -q '^DLOCK_LOST_REASON=the lock is lost' hook
    done
}

@test "the keeper is killed: the process gets SIGTERM, and the lock ends with its lease" {
    script_goes 'trap "exit 3" TERM' 'token=$("$DLOCK" acquire --keep $$ --ttl 6s "$key")' ': >going' "$lives_on"
    kill -KILL "$keeper"
    ends 3
    wait_until "free '$key'"
}

@test "signals that would end it do not, while the process lives; a stop is ended in time" {
    script_goes 'trap "exit 3" TERM' 'token=$("$DLOCK" acquire --keep $$ --ttl 3s "$key")' ': >going' "$lives_on"
    kill -TERM "$keeper"
    kill -HUP "$keeper"
    kill -INT "$keeper"
    outlives_its_lease
    kill -STOP "$keeper"
    ends 3
    no_keeper
}

@test "a lock that is held: 75 without a keeper, also with --json and --export; a wait that a signal ends: 143 or 129" {
    take "$key"
    refuses 75 "$key.*held" acquire --keep $$ "$key"
    [ -z "$(keepers)" ]
    for ended in TERM:143 HUP:129; do
        start acquire --keep $$ --wait forever "$key"
        wait_until "[ \"\$(rcli a zcard '{$key}:dlock:waiting')\" = 1 ]"
        kill "-${ended%:*}" "$bg"
        finishes "${ended#*:}"
        no_keeper
        [ "$(rcli a zcard "{$key}:dlock:waiting")" = 0 ]
    done
    tells 75 '.outcome == "held" and .holder.owner.command == "acquire"' acquire --json --keep $$ "$key"
    gives 75 acquire --export=sh --keep $$ "$key"
    [ "${lines[-1]}" = '(exit 75)' ]
    [ -z "$(keepers)" ]
}

@test "a caller that ignores SIGCHLD and SIGTERM: 75 for a lock that is held, and no keeper of one that is killed" {
    take "$key"
    attempt bash -c 'trap "" CHLD TERM; exec "$DLOCK" acquire --keep $$ "$1"' - "$key"
    fails 75 "$key.*held"
    (trap '' TERM && exec "$DLOCK" acquire --keep $$ --wait forever "$key" >out 2>err 3>&- 4>&-) &
    caller=$!
    wait_until "[ \"\$(rcli a zcard '{$key}:dlock:waiting')\" = 1 ]"
    kill -KILL "$caller"
    no_keeper
    dlock release "$key" "$token"
    is_free "$key"
}

@test "output that cannot be written: 71, and the lock is free" {
    attempt sh -c 'exec "$0" acquire --keep "$1" "$2" >/dev/full' "$DLOCK" $$ "$key"
    fails 71 'standard output'
    is_free "$key"
    [ -z "$(keepers)" ]
}

@test "--keep refuses a process that does not exist, has ended or belongs to another user" {
    (exit 0) &
    gone=$!
    wait "$gone"
    refuses 64 "no process $gone" acquire --keep "$gone" "$key"
    for pid in 0 -1 1x 99999999999 ''; do
        refuses 64 'process ID' acquire "--keep=$pid" "$key"
    done
    is_free "$key"
    as_somebody acquire --keep 1 "$key"
    waits_for 64 "$bg"
    grep -q 'belongs to another user' somebody.out bg.*.err
}

@test "a zombie is refused, and a process that ends during the wait gets no lock" {
    take "$key"
    # Its parent is sleep, which waits for no child.
    sh -c '(until [ -e over ]; do sleep 0.1; done) & echo $! >zombie; exec sleep 60' 3>&- 4>&- &
    parent=$!
    wait_until "[ \"\$(</proc/$parent/comm)\" = sleep ]"
    : >over
    wait_until '[ "$(process_state "$(<zombie)")" = Z ]'
    refuses 64 "process $(<zombie) has ended" acquire --keep "$(<zombie)" --wait forever "$key"
    sleep 60 3>&- 4>&- &
    pid=$!
    start acquire --keep "$pid" --wait forever "$key"
    wait_until "[ \"\$(rcli a zcard '{$key}:dlock:waiting')\" = 1 ]"
    end_process "$pid"
    dlock release "$key" "$token"
    finish
    fails 64 "process $pid has ended"
    wait_until "free '$key'"
}

@test "the first process of a container: released by its trap, or else free when the lease ends" {
    unshare --pid --fork --mount-proc true 2>err || must_run "no process namespaces here: $(cat err)"
    export key
    unshare --pid --fork --mount-proc sh -c 'trap "\"\$DLOCK\" release \"\$key\" \$token" EXIT
        token=$("$DLOCK" acquire --keep $$ --ttl 60s "$key") && "$DLOCK" status "$key" && echo "$$"' >out 3>&- 4>&-
    [ "$(tail -n 1 out)" = 1 ]
    is_free "$key"
    unshare --pid --fork --mount-proc sh -c '"$DLOCK" acquire --keep $$ --ttl 3s "$key" >token; :' 3>&- 4>&-
    [ -s token ]
    wait_until "free '$key'"
}

@test "options of a keeper need --keep" {
    refuses 64 '--signal is an option of acquire only with --keep' acquire --signal INT "$key"
    refuses 64 '--keep' acquire --exec-on-lost true "$key"
}

@test "status --json names the process" {
    script_goes 'token=$("$DLOCK" acquire --keep $$ "$key")' ': >going' "$lives_on"
    output=$(dlock status --json "$key")
    json_is ".owner.pid == $bg and .owner.command == \"keep\""
    refuses 75 "$key.*:$bg.* --keep" acquire "$key"
    comes_to_its_end
    no_keeper
    history_is '.outcome == "released"'
}
