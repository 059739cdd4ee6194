#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# acquire --keep: a release of the lock, and the keeper.

load ../lib/keep

@test "release ends the keeper at once, and the script goes on" {
    script_goes 'token=$("$DLOCK" acquire --keep $$ "$key")' ': >going' 'until [ -e on ]; do sleep 0.1; done' \
        '"$DLOCK" release "$key" "$token"' ': >released' "$lives_on"
    : >on
    wait_until '[ -e released ]'
    [ -z "$(keepers)" ]
    is_free "$key"
    comes_to_its_end
    succeeds
}

@test "neither one who knows a part of the token nor another user who knows it can end the keeper" {
    [ "$(id -u)" -eq 0 ] || must_run "only root can be another user"
    script_goes '"$DLOCK" acquire --keep $$ "$key" >token' ': >going' "$lives_on"
    # What a release says to it.
    "$PYTHON" - "$(<token)" <<'EOF'
import os, socket, sys
token = sys.argv[1]
digest = 2166136261
for byte in token.encode():
    digest = (digest ^ byte) * 16777619 % 2 ** 32
for said, user in (token[:-1], 0), (token + "A", 0), (token, 65534):
    os.setuid(user)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as keeper:
        keeper.connect(f"\0dlock-keeper/{digest:08x}")
        try:
            keeper.send(said.encode())
            if keeper.recv(1):  # else it hangs up
                sys.exit("it pauses, and the next word would end it")
        except OSError:
            pass
EOF
    [ -n "$(keepers)" ] || fail "it has ended"
    is_held "$key"
    comes_to_its_end
    no_keeper
}

@test "a script that released its lock gets no signal, although others hold it now" {
    script_goes 'token=$("$DLOCK" acquire --keep $$ --ttl 6s "$key")' '"$DLOCK" release "$key" "$token"' ': >going' "$lives_on"
    for i in {1..10}; do dlock run "$key" -- true; done
    short_sleep 2.5
    comes_to_its_end
    succeeds
}

@test "after a release that fails the keeper renews, as before" {
    redis_start other
    [ "$(rcli a acl setuser weak on '>word' '~*' +@connection)" = OK ]
    script_goes 'token=$("$DLOCK" acquire --keep $$ --ttl 9s -k 3s "$key") && echo "$token" >token' ': >going' "$lives_on"
    gives 1 release -N "$(node other)" "$key" "$(<token)"
    gives 69 release -N "$PWD/nowhere" "$key" "$(<token)"
    within 1500 gives 77 release -N "unix://weak:word@$(node a)" "$key" "$(<token)"
    is_renewed "$key"
    [ "$(keepers)" = "$keeper" ]
    # One that has announced it and hangs, or is killed.
    redis_freeze other
    script=$bg
    start release -N "$(node other)" --node-timeout 60s "$key" "$(<token)"
    is_renewed "$key"
    threads=$(echo "/proc/$keeper/task"/*)
    kill -KILL "$bg"
    redis_thaw other
    finish
    is_renewed "$key"
    [ "$(echo "/proc/$keeper/task"/*)" = "$threads" ]
    dlock release "$key" "$(<token)"
    [ -z "$(keepers)" ]
    is_free "$key"
    : >end
    bg=$script
    ends 0
    succeeds
}

@test "somebody who listens in the place of a keeper, and accepts nobody, does not hold up a release" {
    take "$key"
    cat >listen <<'EOF'
import socket, sys, time
digest = 2166136261
for byte in sys.argv[1].encode():
    digest = (digest ^ byte) * 16777619 % 2**32
listener, full = (socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) for i in range(2))
listener.bind(name := "\0dlock-keeper/%08x" % digest)
listener.listen(0)
full.connect(name)
print("ready", flush=True)
time.sleep(600)
EOF
    spawn impostor "$PYTHON" "$PWD/listen" "$token"
    wait_until 'grep -q ready "$(server_dir impostor)/out"'
    within 1500 works release "$key" "$token"
    is_free "$key"
}

@test "a release from another host ends the keeper silently with the next renewal" {
    script_goes '"$DLOCK" acquire --keep $$ --ttl 9s "$key" >token' ': >going' "$lives_on"
    rcli a --eval "$top_srcdir/src/lua/release.lua" "$key" "{$key}:dlock" "{$key}:dlock:holds" "{$key}:dlock:wake" \
        "{$key}:dlock:waiting" , "$(<token)"
    dlock acquire "$key" # now the lock has another holder
    no_keeper
    comes_to_its_end
    succeeds
    is_held "$key"
}
