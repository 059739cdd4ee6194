#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# What SECURITY.md claims and no other file tests: a hostile server, KEY, environment, local user.

# shellcheck disable=SC1003
load ../lib/redis

setup_file() {
    redis_start a
    redis_start b
    servers_start liar says tcp/says endless bulk array nested
}
setup() {
    test_begin
    rm -f "$(server_dir liar)"/says.[A-Z]*
}

# exits_as STATUS...: the exit status is one of these.
exits_as() { [[ " $* " == *" $status "* ]] || fail "expected one of the statuses $*"; }

# ------------------------------------------------------------- a hostile server

@test "a password that any error for AUTH repeats is not shown" {
    says AUTH '-ERR no user me with sesame-word here\r\n'
    gives 69 acquire -v -N "redis://me:sesame-word@$(liar_tcp)" "$key"
    [[ $stderr == *'user me with * here'* && $stderr != *sesame* ]] || fail 'expected the error without the password'
}

@test "a reply about slots that becomes malformed says nothing of any slot" {
    held='*12\r\n:0\r\n'"$(bulk "$OTHER_TOKEN")"':9999\r\n:0\r\n$0\r\n\r\n$0\r\n\r\n:-1\r\n:0\r\n:0\r\n'"$(bulk string)"':0\r\n:0\r\n'
    says EVAL "*2\r\n$held+junk\r\n"
    rcli a mset "{$key}:slot-1" "$OTHER_TOKEN" "{$key}:slot-2" "$OTHER_TOKEN"
    rcli b set "{$key}:slot-2" "$OTHER_TOKEN"
    DLOCK_NODES="$(node a) $(node b) $(liar)" refuses 75 'contended' run --slots 2 "$key" -- true
}

@test "numbers out of range do no harm" {
    for n in 9223372036854775807 -9223372036854775808 9007199254740993; do
        says EVAL "$(holder "$n" x)"
        stalls_note
        try acquire -N "$(liar)" --wait 50ms "$key"
        waited_in_vain 75
        for what in 'status --json' status 'status --prometheus' 'break --force'; do
            try $what -N "$(liar)" "$key"
            exits_as 0 1 69 75
            is_plain
        done
        says EVAL "*2\r\n:-1\r\n:$n\r\n"
        refuses 69 '' acquire -N "$(liar)" --restart-guard 1h "$key"
        says EVAL "*5\r\n:1\r\n:$n\r\n:$n\r\n:$n\r\n$(bulk '')"
        try renew -N "$(liar)" "$key" "$OTHER_TOKEN"
        exits_as 0 69
        says EVAL "*5\r\n:$n\r\n$(bulk ''):$n\r\n*1\r\n$(bulk \
            "$OTHER_TOKEN - open - -9007199254740991 -9007199254740991 0 5 0 7 0 0 ")*0\r\n"
        try history --json -N "$(liar)" "$key"
        exits 0 # a sanitizer would exit with 1
        [ "$(jq -s '[.. | .held_ms? // empty] | max // 0 | . < 1e15' <<<"$output")" = true ] || fail "impossible times"
        says TIME "*2\r\n$(bulk "$n")$(bulk "$n")"
        says INFO "$(bulk "redis_version:$n\r\nuptime_in_seconds:$n\r\nmaxmemory:$n\r\nused_memory:$n\r\nmaxclients:$n")"
        try doctor -N "$(liar)"
        exits_as 0 1 69
        is_plain
    done
}

@test "a fence that no other could exceed is refused, and its lock rolled back" {
    for n in 9223372036854775807 9007199254740992 -5 0; do
        says EVAL "*2\r\n:1\r\n:$n\r\n"
        refuses 69 'not a time of day' run -N "$(liar)" "$key" -- touch begun
    done
    [ ! -e begun ]
    # One such node of three does not spoil the others.
    says EVAL "*2\r\n:1\r\n:9007199254740992\r\n"
    gives 0 run -N "$(liar)" -N "$(node a)" -N "$(node b)" "$key" -- sh -c 'echo $DLOCK_FENCE'
    [ "$output" -lt 4503599627370496 ] && [ "$(rcli a hget "{$key}:dlock" fence)" = "$output" ] || fail "its fence"
}

@test "a fence of another century from one lying node does not spoil the lock" {
    sane=$((($(date +%s) + 7200) * 1000000))
    metadata="{$key}:dlock"
    for n in 9007199254740990 $((($(date +%s) + 100000) * 1000000)); do
        says EVAL "*2\r\n:1\r\n:$n\r\n"
        gives 0 run -N "$(liar)" -N "$(node a)" -N "$(node b)" "$key" -- sh -c 'echo $DLOCK_FENCE'
        [ "$output" -lt "$sane" ] || fail "expected the fence of the others"
        # Where it is needed for the majority there is no lock, and the message says why.
        refuses 69 'more than a day ahead' run -N "$(liar)" -N "$(node a)" -N "$PWD/nobody" "$key" -- touch begun
        [ ! -e begun ]
    done
    works run -N "$(node a)" -N "$(node b)" "$key" -- sh -c 'echo $DLOCK_FENCE'
    [ "$output" -lt "$sane" ] && [ "$(rcli a pttl "$metadata")" -lt 7200000 ] || fail "it has left something"
}

@test "an answer with an item too few is none" {
    for items in '*11\r\n:0' '*2\r\n:0' '*1\r\n:1' ':1' '*4\r\n:1'; do
        says EVAL "$items\r\n$(printf '%.0s$1\\r\\nx\\r\\n' {1..10})"
        refuses 69 'unexpected reply' acquire -N "$(liar)" "$key"
        [[ $items == *:1 ]] || refuses 69 'unexpected reply' status -N "$(liar)" "$key"
    done
}

@test "an invalid reply to SCAN" {
    for answer in '+x\r\n' '*2\r\n$1\r\n0\r\n$1\r\nx\r\n' '*2\r\n$0\r\n\r\n*0\r\n' \
        "*2\r\n$(bulk 123456789012345678901234567890)*0\r\n"; do
        says SCAN "$answer"
        refuses 69 'unexpected reply' status -N "$(liar)"
    done
}

@test "a Cluster that describes itself incorrectly" {
    port=$(cat "$(server_dir liar)/says.port")
    for junk in '*0' '+x' '*1\r\n:5' '*1\r\n*3\r\n:1\r\n:5\r\n*0' \
        '*1\r\n*3\r\n:'{'-1\r\n:5','9\r\n:16384','9\r\n:5'}'\r\n*2\r\n$1\r\nh\r\n:1' \
        '*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$1\r\nh\r\n:70000'; do
        says CLUSTER "$junk\r\n"
        refuses 69 'no servers that own slots' acquire -N "redis+cluster://$(liar_tcp)" "$key"
    done
    says CLUSTER "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n\$1\r\n?\r\n:$port\r\n"
    says ROLE "*1\r\n$(bulk master)"
    for junk in '' '1' '1 h' 'x h:1' '99999 h:1' '1 h:123456789' "1 $(printf 'h%.0s' {1..500}):1" "1 ?:$port" "1 :$port"; do
        says EVAL "-MOVED $junk\r\n"
        refuses 69 '' acquire -N "redis+cluster://$(liar_tcp)" "$key"
    done
}

@test "one lying node of three can neither grant nor take away a lock" {
    start_holding "$key" --ttl 6s --node-timeout 2s -v -N "$(node a)" -N "$(node b)" -N "$(liar)" \
        'while [ ! -e stop ]; do sleep 0.2; done; echo ran'
    # The node tells another client that it has the lock.
    says EVAL "*2\r\n:1\r\n:1700000000000000\r\n"
    refuses 75 '' acquire -N "$(node a)" -N "$(node b)" -N "$(liar)" "$key"
    # The node replies to each renewal that the lock is not held.
    says EVAL "*5\r\n:0\r\n:0\r\n:0\r\n:0\r\n$(bulk '')"
    wait_until "[ \$(grep -c 'another token holds the lock' bg.$bg_count.err) -ge 4 ] || ! alive $command_pid" 20
    alive "$command_pid" || fail 'the command was ended'
    stops 0
    prints ran
}

@test "a lying node that claims to be another one takes no vote from others" {
    export DLOCK_NODE_TIMEOUT=2s
    for n in 1 2 3 4 0 -1 9223372036854775807; do
        says EVAL "*2\r\n:-2\r\n:$n\r\n"
        gives 0 run -N "$(node a)" -N "$(node b)" -N "$(liar)" "$key" -- true
        refuses 69 'the same server as another' acquire -N "$(liar)" "$key"
        try acquire -N "$(node a)" -N "$(liar)" "$key"
        exits_as 64 69
        [ "$(rcli a exists "$key")" = 0 ] || fail 'expected nothing to be left'
    done
}

@test "no text of a server sends control characters to the terminal" {
    bad='\x1b]0;x\a\x1b[2J\r\x9b1m\n\x7f'
    for what in EVAL INFO TIME SCAN; do says "$what" "-$(printf %s "${bad//'\r'/}" | sed 's/\\n//')\r\n"; done
    for what in "acquire -v $key" "status $key" 'status --json' "break --force $key" doctor \
        "renew $key $OTHER_TOKEN" "release $key $OTHER_TOKEN"; do
        try $what -N "$(liar)"
        exits_as 1 69
        is_plain
    done
    says EVAL "$(holder 5000 "$bad")"
    says SCAN "*2\r\n$(bulk 0)*1\r\n$(bulk "$bad")"
    says INFO "$(bulk "redis_version:$bad\r\nrun_id:$bad\r\nrole:$bad\r\nmaxmemory_policy:$bad")"
    says TIME "*2\r\n$(bulk 1700000000)$(bulk 5)"
    for what in "acquire -v $key" "status -v $key" "status --json $key" "status --prometheus $key" "break --force $key" \
        "status $key*" doctor 'doctor --json'; do
        try $what -N "$(liar)"
        is_plain
    done
    for host in '\x1b]0;title\a\x1b[31mred\nline' '' 'a b' "$(printf '%0300d' 0)"; do
        says SENTINEL "*2\r\n$(bulk "$host")$(bulk 80)"
        gives 69 acquire -v -N "redis+sentinel://$(liar_tcp)/service" "$key"
        [[ $stderr == *'this is not a sentinel'* ]] || fail 'expected what it is not'
        is_plain
    done
    says CLUSTER "*1\r\n*3\r\n:0\r\n:16383\r\n*3\r\n$(bulk "$bad"):80\r\n$(bulk x)"
    gives 69 acquire -v -N "redis+cluster://$(liar_tcp)" "$key"
    is_plain
}

@test "metadata that another client wrote sends no control characters to the terminal, also while waiting" {
    take "$key"
    rcli a hset "{$key}:dlock" label $'\e]0;label\a' owner $'\e[2Jowner\r' >/dev/null
    attempt "$PYTHON" "$lib_dir/terminal.py" 'expect=owner' 'send=\x03' -- "$DLOCK" acquire --wait 20s "$key"
    [[ $output == *'\e]0;label\x07'* && $output == *'\e[2Jowner\r'* ]] || fail 'expected both, escaped'
    ! grep -qP '\e\]|\e\[2J' <<<"$output" || fail 'they reached the terminal'
}

@test "a server cannot make dlock allocate much memory" {
    for mode in endless bulk array nested; do
        attempt "$PYTHON" -c '
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:]).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(code)' "$DLOCK" acquire --node-timeout 1s -N "$(server_dir liar)/$mode.sock" "$key"
        exits 69
        # A sanitizer's own memory is in it, too.
        [ "$output" -lt $((300 * 1024)) ] || fail "it took $output KiB"
    done
}

# ---------------------------------------------------------------- a hostile KEY

@test "a KEY with the name of another lock's metadata lets nobody into that lock" {
    job=$key
    take "$job"
    for k in "{$job}:dlock" "{$job}:dlock:holds" "{$job}:dlock:wake" "{$job}:dlock:waiting"; do
        try acquire "$k"
        try break --force "$k"
        refuses 75 '' acquire "$job"
    done
    works release "$job" "$token"
    # The other way round it prevents the lock, and the message says so.
    rcli a flushall >/dev/null
    take "{$job}:dlock"
    refuses 69 '' acquire "$job"
    is_free "$job"
}

@test "a KEY cannot forge the list of locks that COMMAND holds" {
    take victim
    gives 75 run "x=$token=5 victim" -- sh -c 'echo "$DLOCK_HOLDS"; exec "$0" run victim -- echo in' "$DLOCK"
    [ "$(wc -w <<<"$output")" -eq 1 ] || fail 'expected one entry'
    [ ${#lines[@]} -eq 1 ] || fail 'expected that it was not run'
}

# -------------------------------------------------------- a hostile environment

@test "variables of any bytes and sizes: no crash and no lock left" {
    names=$(grep -oh '"DLOCK_[A-Z_]*"' "$top_srcdir"/src/cli/*.c | tr -d '"' | sort -u)
    for value in $'\x01\e[2J\xff\xfe%n%s%s\n' "$(head -c 100000 /dev/zero | tr '\0' 7)"; do
        for name in $names REDISCLI_AUTH; do
            attempt env "$name=$value" "$DLOCK" run "$key" -- touch "begun-$name"
            exits_as 0 64 69 75 77 78
            is_plain
            [ "$status" -ne 0 ] || [ -e "begun-$name" ] || fail "$name: the command did not run"
            [ "$status" -eq 0 ] || [ ! -e "begun-$name" ] || fail "$name: the command ran"
            rm -f "begun-$name"
        done
        is_free "$key"
        attempt env -u DLOCK_CONFIG XDG_CONFIG_HOME="$value" HOME="$value" LOGNAME="$value" USER="$value" TERM="$value" COLUMNS="$value" \
            LC_ALL="$value" TZ="$value" NO_COLOR="$value" "$DLOCK" run "$key" -- touch begun
        succeeds
        rm begun
    done
}

@test "no configuration is read from the current folder" {
    mkdir -p dlock .config/dlock
    echo junk >dlock/config
    echo junk >.config/dlock/config
    for base in . '' dlock/..; do
        attempt env -u DLOCK_CONFIG HOME="$base" XDG_CONFIG_HOME="$base" "$DLOCK" run "$key" -- true
        [[ $stderr != *junk* ]] || fail 'expected it not to be read'
    done
}

@test "no arguments, no environment, and very many of both do no harm" {
    attempt "$PYTHON" -c '
import ctypes, sys
none = (ctypes.c_char_p * 1)(None)
ctypes.CDLL(None).execve(sys.argv[1].encode(), none, none)' "$DLOCK"
    exits 64
    works run -N "$DLOCK_NODES" "$key" -- env -i "$DLOCK" run -N "$DLOCK_NODES" "inner-$key" -- true
    attempt "$PYTHON" -c '
import os, sys
environment = dict({"V%d" % i: "x" * 1000 for i in range(400)}, DLOCK_NODES=os.environ["DLOCK_NODES"])
os.execve(sys.argv[1], [sys.argv[1], "run", sys.argv[2], "--", "true"] + ["x" * 10] * 50000, environment)' "$DLOCK" "$key"
    succeeds
    gives 64 status $(yes -- --node=127.0.0.1:1 | head -n 3000)
}

@test "an environment without room for the variables of COMMAND: 126, and no lock is left" {
    attempt "$PYTHON" -c '
import os, subprocess, sys
def run(size):
    environment = dict(os.environ, **{"V%d" % at: "x" * min(100000, size - at) for at in range(0, size, 100000)})
    try:
        return subprocess.run(sys.argv[1:], env=environment).returncode
    except OSError:
        return None
fits, most = 0, 8 << 20
while most - fits > 1:
    size = (fits + most) // 2
    fits, most = (fits, size) if run(size) is None else (size, most)
sys.exit(run(fits))' "$DLOCK" run "$key" -- true
    exits 126
    [[ ${stderr_lines[-1]} == *'Argument list too long' ]] || fail 'expected why'
    is_free "$key"
}

# Without memory and descriptors a sanitizer cannot look for leaks.
without_leak_check() { ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0 "$@"; }

@test "no descriptors left: the status is correct, and no lock is left" {
    began=0
    for n in {3..20}; do
        rm -f begun
        without_leak_check attempt bash -c 'exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-; ulimit -n "$1"; exec "${@:2}"' - "$n" \
            "$DLOCK" run --report report "$key" -- sh -c 'touch begun; exit 6' # a redirection of sh needs descriptor 10
        exits_as 6 64 69 71 78 127
        [ "$status" -ne 6 ] || began=$((began + 1))
        [ "$status" -eq 6 ] || [ ! -e begun ] || fail "with $n the command ran"
        is_free "$key"
    done
    [ "$began" -gt 0 ] || fail 'it never ran'
    [ "$began" -lt 18 ] || fail 'they were never used up'
}

@test "no processes or threads left: the status is correct, COMMAND never runs without its lock, and no lock is left" {
    [ "$(id -u)" -eq 0 ] || must_run 'only root can become a user without processes'
    redis_start_tcp open
    said=(x 'start the command' 'cannot start a thread to renew the lease')
    for n in 1 2; do
        user=$((70000 + 4 * BASHPID + n))
        exec 9<"$DLOCK"
        without_leak_check attempt env DLOCK_CONFIG= XDG_CONFIG_HOME=/nonexistent HOME=/nonexistent \
            prlimit --nproc=$n setpriv --reuid "$user" --regid "$user" --clear-groups \
            /proc/self/fd/9 run --ttl 9s --kill-after 3s --node-timeout 2s -N "$(node open)" "$key" -- sleep 30
        [ "$status" -eq $((n < 2 ? 71 : 76)) ] || fail "with $n processes"
        [[ $stderr == *"${said[n]}"* ]] || fail "expected: ${said[n]}"
        is_free "$key" open
    done
}

@test "a deleted folder and a file mask of 777 do no harm" {
    mkdir gone
    attempt bash -c 'cd gone; rmdir ../gone; umask 777; exec "$@"' - "$DLOCK" run --report "$PWD/report" "$key" -- umask
    exits_as 0 127
    is_free "$key"
    [ "$(stat -c %a report)" = 0 ] || fail 'expected the mask to count for the report'
}

# -------------------------------------------------------------- another local user

@test "in a world-writable folder --report replaces a link" {
    mkdir -m 1777 shared
    echo precious >file
    ln -s ../file shared/report
    works run --report shared/report "$key" -- true
    [ "$(cat file)" = precious ] || fail 'the link was followed'
    jq -e '.outcome == "ran"' shared/report
    (cd shared && ln -sf ../file again && dlock run --report again "$key" -- true)
    [ "$(cat file)" = precious ] || fail 'the link was followed'
    mkdir shared/folder
    try run --report shared/folder "$key" -- true
    complains shared/folder
    [ "$(find shared -name 'folder*')" = shared/folder ] || fail 'something was left'
    # A pipe is written to.
    mkfifo shared/mine
    "$DLOCK" run --report shared/mine "$key" -- true 3>&- &
    jq -e '.outcome == "ran"' shared/mine
    wait $!
}

@test "no token is in the list of processes, and only the report is written" {
    mkdir tmp
    TMPDIR=$PWD/tmp start_holding "$key" --report report 'while [ ! -e stop ]; do sleep 0.2; done'
    token=$(rcli a get "$key")
    found=0
    for pid in $(leftovers); do
        ! tr '\0' ' ' <"/proc/$pid/cmdline" | grep -qF -e "$token" || fail 'the token is in the list of processes'
        found=$((found + 1))
    done
    [ "$found" -ge 2 ] || fail 'expected dlock and command'
    stops 0
    [ -z "$(ls -A tmp)" ]
    [ "$(find . -newer begun -type f ! -name 'bg.*' | sort | tr '\n' ' ')" = './report ./stop ' ] || fail "$(find .)"
}

@test "the tables of the linker are read-only before main, and libc checks the sizes of buffers" {
    command -v readelf >/dev/null || must_run 'readelf is not installed'
    readelf -dW "$DLOCK" | grep -Eq 'BIND_NOW|FLAGS.*NOW' || fail 'expected -z now'
    readelf -lW "$DLOCK" | grep -q GNU_RELRO || fail 'expected -z relro'
    # Not musl's, not a sanitizer's, and not without optimization.
    grep -q '[-]O[1-3s]' <<<"${FAULT_FLAGS-}" && ! grep -q sanitize <<<"$FAULT_FLAGS" && ldd --version 2>&1 | grep -q GLIBC || return 0
    readelf -sW "$DLOCK" | grep -q '__snprintf_chk' || fail 'expected _FORTIFY_SOURCE'
}
