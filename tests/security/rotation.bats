#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# Passwords that change while a lock is held, of a file or of a command, and those of sentinels.

# shellcheck disable=SC2258
load ../lib/services
load ../lib/tls

setup_file() {
    local name
    certificates
    tls_start t good
    for name in n1 n2 n3; do redis_start_tcp "$name"; done
    sentinel_start s n1 jobs 1
}
setup() {
    test_begin
    trust
    set_password old-word n1 n2 n3 t
    DLOCK_NODES=redis://job@$(node n1)
}

# set_password WORD SERVER...: of the user job; its connections are closed.
set_password() {
    local name
    for name in "${@:2}"; do rcli "$name" acl setuser job reset on ">$1" '~*' '&*' +@all >/dev/null; done
    (umask 077 && echo "$1" >password.new)
    mv password.new password
    for name in "${@:2}"; do rcli "$name" client kill user job >/dev/null; done
}

# logs_in_again SERVER: dlock does.  What it sends behind a login that is refused is of the default user, who has no password.
logs_in_again() { wait_until "rcli '$1' client list | grep -q ' user=job '"; }

# survives "SERVER..." ARG...: a run with these options goes on after the password of the servers has changed.
survives() {
    local name
    rm -f finish
    start_holding "$key" --ttl 3s -v "${@:2}" 'until [ -e finish ]; do sleep 0.2; done'
    set_password new-word $1
    for name in $1; do
        logs_in_again "$name"
        is_renewed "$key" "$name"
    done
    touch finish
    finishes 0
    ! grep -E 'old-word|new-word' "bg.$bg_count".* || fail 'a password is shown'
    set_password old-word $1
}

# ------------------------------------------------------------------- rotations

@test "a rotation while a command runs: the lock survives, with a file and with a command" {
    survives n1 --password-file password
    survives n1 --password-command 'cat password'
}

@test "a rotation on three nodes" {
    DLOCK_NODES="redis://job@$(node n1) redis://job@$(node n2) redis://job@$(node n3)"
    survives 'n1 n2 n3' --password-file password
    survives 'n1 n2 n3' --password-command 'cat password'
}

@test "a rotation with TLS" {
    DLOCK_NODES=rediss://job@127.0.0.1:$(port_of t)
    DLOCK_PASSWORD_FILE=password survives t
    DLOCK_PASSWORD_COMMAND='cat password' survives t
}

@test "a rotation behind a sentinel" {
    DLOCK_NODES=redis+sentinel://job@$(place s)/jobs
    survives n1 --password-file password
    survives n1 --password-command 'cat password'
}

@test "a rotation while a keeper, which has another current directory, holds the lock" {
    sleep 60 3>&- 4>&- &
    kept=$!
    works acquire --keep "$kept" --ttl 3s --node-timeout 2s --password-file password "$key"
    token=$output
    set_password new-word n1
    logs_in_again n1
    is_renewed "$key" n1
    works release --password-file password "$key" "$token"
    kill "$kept"
}

@test "a waiter goes on after a rotation" {
    take "$key" --password-file password
    start run --wait 60s --password-file password "$key" -- true
    wait_until "rcli n1 zcard '{$key}:dlock:waiting' | grep -qx 1"
    set_password new-word n1
    works release --password-file password "$key" "$token"
    finishes 0
}

@test "a pipe is read once, and its password is used again" {
    rm -f finish
    start_holding "$key" --ttl 3s --password-file <(echo old-word) 'until [ -e finish ]; do sleep 0.2; done'
    rcli n1 client kill user job >/dev/null
    is_renewed "$key" n1
    touch finish
    finishes 0
    [ ! -s "bg.$bg_count.err" ] || fail "$(cat "bg.$bg_count.err")"
}

# ----------------------------------------------------------------- the command

@test "a password command that hangs keeps no other node from a renewal, and ends with dlock" {
    DLOCK_NODES="redis://job@$(node n1) redis://job@$(node n2) redis://job@$(node n3)"
    rm -f finish
    start_holding "$key" --ttl 3s --password-command \
        'cat password; [ ! -e runs ] || { echo $$ >hung; exec sleep 77; }; touch runs' \
        'until [ -e finish ]; do sleep 0.2; done'
    set_password new-word n1
    wait_until '[ -s hung ]'
    for _ in 1 2; do is_renewed "$key" n2; done
    touch finish
    finishes 0
    wait_until '! alive "$(<hung)"'
}

@test "a password command that fails: 78 with its last words, and a warning while a lock is held" {
    refuses 78 'the password command: it failed with exit status 3: last words$' \
        status --password-command 'echo old-word; printf "first\nthen\nlast words\n\n" >&2; exit 3' "$key"
    [[ $stderr != *first* && $stderr != *old-word* ]] || fail 'expected the last line only'
    refuses 78 'its first line is empty' status --password-command : "$key"
    refuses 78 'it was ended by signal 9' status --password-command 'kill -9 $$' "$key"
    start run --ttl 3s --password-command '[ -e runs ] && echo gone >&2 && exit 1; touch runs; cat password' "$key" -- sleep 60
    wait_until "held '$key' n1"
    set_password new-word n1
    finishes 76
    [ "$(grep -c 'it failed with exit status 1: gone; the one before is used' "bg.$bg_count.err")" = 1 ]
}

@test "a password command has a limit of time" {
    refuses 78 'the password command: it did not end within 10 s: still asking' \
        status --password-command 'echo still asking >&2; echo $$ >hung; exec sleep 88' "$key"
    wait_until '! alive "$(<hung)"'
    start status --password-command 'sh -c "echo \$\$ >killed; exec sleep 88"; cat password' "$key"
    wait_until '[ -s killed ]'
    end_process "$bg"
    within 5000 wait_until '! alive "$(<killed)"'
}

@test "a password command runs once for a password that is refused, and what it leaves behind is not waited for" {
    refuses 77 'wrong user or password' status --password-command 'echo run >>runs; echo wrong' "$key"
    [ "$(wc -l <runs)" = 1 ]
    within 5000 gives 1 status --password-command 'sleep 60 & echo $! >left; cat password' "$key"
    kill "$(<left)"
}

@test "a password command that runs while a lock is held has no descriptor, blocked signal, session and priority of dlock" {
    survives n1 --password-command 'ls -l /proc/self/fd /proc/$PPID/fd >fds; grep SigBlk /proc/self/status >blocked
        sed "s/.*) //" /proc/$$/stat | cut -d " " -f 4,39 >session; cat password'
    read -r session policy <session
    process_stat $$
    [ "$session" != "${stat[3]}" ]
    [ "$policy" = 0 ] # not that of dlock, which has a higher one if permitted
    [ "$(cut -f 2 blocked)" = 0000000000000000 ]
    ! grep -E 'socket|anon_inode|/dev/(tty|pts)' fds || fail 'expected pipes only'
}

# ------------------------------------------------------------------- sentinels

@test "sentinels with another password, which changes, too" {
    sentinel_start own n1 jobs 1 'requirepass watch-word'
    DLOCK_NODES=redis+sentinel://job@$(place own)/jobs
    (umask 077 && echo watch-word >watch)
    refuses 77 'password' status --password-file password "$key"
    gives 1 status --password-file password --sentinel-password-file watch "$key"
    DLOCK_SENTINEL_USER=default DLOCK_SENTINEL_PASSWORD_FILE=watch gives 1 status --password-file password "$key"
    refuses 77 'wrong' status --password-file password --sentinel-user nobody --sentinel-password-file watch "$key"
    gives 1 doctor --password-file password --sentinel-password-file watch
    rm -f finish
    start_holding "$key" --ttl 3s --password-file password --sentinel-password-file watch \
        'until [ -e finish ]; do sleep 0.2; done'
    REDISCLI_AUTH=watch-word rcli own acl setuser other on '>third-word' +@all >/dev/null
    (umask 077 && echo third-word >other)
    wait_until "dlock --complete 7 status --password-file password --sentinel-user other --sentinel-password-file other '' | grep -x '$key'"
    REDISCLI_AUTH=watch-word rcli own acl setuser default resetpass '>other-word' >/dev/null
    (umask 077 && echo other-word >watch)
    set_password new-word n1
    is_renewed "$key" n1
    touch finish
    finishes 0
}

# ----------------------------------------------------------------- wrong usage

@test "a user without a password, and options that exclude each other: 64" {
    for url in "redis://job@$(node n1)" "redis://job:@$(node n1)" "unix://job@$(server_dir n1)/s" \
        "redis+sentinel://job@$(place s)/jobs"; do
        refuses 64 'the user of .* has no password' run -N "$url" "$key" -- touch ran
    done
    [ ! -e ran ]
    refuses 64 'cannot be used together' status --password-file password --password-command 'cat password' "$key"
    DLOCK_PASSWORD_COMMAND=false gives 1 status --password-file password "$key"
    DLOCK_PASSWORD_FILE=missing gives 1 status --password-command 'cat password' "$key"
    refuses 64 '--sentinel-user needs --sentinel-password-file' status --password-file password --sentinel-user x "$key"
}
