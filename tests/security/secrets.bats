#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# Passwords and tokens: who can see them.  What messages show of URLs is in commands/urls.bats.

load ../lib/redis

setup_file() {
    redis_start a
    redis_start_tcp locked 127.0.0.1 --requirepass sesame-word
    servers_start liar says tcp/says
}

locked_node() { echo "redis://:sesame-word@$(node locked)"; }

# says_nothing_hidden: the last run did not show the password.
says_nothing_hidden() { [[ $output$stderr != *sesame* ]] || fail "the password is shown"; }

# ------------------------------------------------------------------- processes

@test "a password on the command line is overwritten" {
    shown=
    for option in "--node=$(locked_node)" "-N$(locked_node)" "-N $(locked_node)" "--node $(locked_node)"; do
        start_holding "$key" $option 'exec sleep 30'
        # Leftovers does not find dlock itself, unless we are root: it hides its environment.
        for pid in "$bg" $(leftovers); do
            file=/proc/$pid/cmdline
            shown+=$(tr '\0' ' ' <"$file") || true # it may have ended
        done
        terminate_command
    done
    [[ $shown == *"redis://***"*"@127.0.0.1"* ]] || fail "expected the node without its password in: $shown"
    [[ $shown != *sesame* ]] || fail "the password is in the list of processes: $shown"
}

@test "a token on the command line is overwritten" {
    take "$key"
    redis_start frozen
    redis_freeze frozen
    for command in "release $key $token" "renew $key $token" "acquire --token $token $key" "run --token=$token $key true"; do
        DLOCK_NODES=$(node frozen) DLOCK_NODE_TIMEOUT=20s start $command
        wait_for_exec "$bg"
        wait_until "tr '\\0' ' ' <'/proc/$bg/cmdline' | grep -q '\\*\\*\\*'"
        shown=$(tr '\0' ' ' <"/proc/$bg/cmdline")
        [[ $shown != *"$token"* && $shown == *"$key"* ]] || fail "$shown"
        end_process "$bg"
    done
    redis_stop frozen
    dlock renew "$key" "$token"
    dlock release "$key" - <<<"$token"
}

@test "with a password the memory of dlock is protected, that of COMMAND is not changed" {
    as_somebody run -N "$(locked_node)" "$key" -- "$PYTHON" -c "
import ctypes, time
print('dumpable', ctypes.CDLL(None).prctl(3), flush=True)
time.sleep(60)"
    wait_until "grep -qs dumpable somebody.out bg.*.out || ! alive $bg"
    grep -qxh 'dumpable 1' somebody.out bg.*.out 2>/dev/null || fail "$(cat somebody.out bg.*.out 2>&1)"
    [ "$(stat -c %u "/proc/$bg/environ")" -eq 0 ] || fail "its memory can be read"
    end_process "$bg"
}

@test "with a password the memory of a keeper is protected, and that of the process beside it" {
    export REDISCLI_AUTH=sesame-word
    as_somebody run --node "$(locked_node)" "$key" -- sleep 60
    holder=$bg
    wait_until "{ read -r kept _ || :; } <'/proc/$holder/task/$holder/children'; grep -qs sleep /proc/\$kept/comm"
    as_somebody acquire --keep "$kept" --wait forever --node "$(locked_node)" "$key"
    wait_until "[ \"\$(rcli locked zcard '{$key}:dlock:waiting')\" = 1 ] || ! alive $bg"
    for pid in "$bg" $(cat "/proc/$bg/task/$bg/children"); do
        [ "$(stat -c %u "/proc/$pid/environ")" -eq 0 ] || fail "the memory of $pid can be read"
    done
    end_process "$bg" "$holder"
}

@test "without a password the memory is not protected" {
    redis_start_tcp open
    as_somebody run -N "$(node open)" "$key" -- sh -c 'echo begun; exec sleep 60'
    wait_until "grep -qs begun somebody.out bg.*.out || ! alive $bg"
    [ "$(stat -c %u "/proc/$bg/environ")" -ne 0 ] || fail "its memory is hidden"
    end_process "$bg"
}

@test "the environment of COMMAND is that of the caller and five variables" {
    echo sesame-word >pass
    chmod 600 pass
    unset DLOCK_NODES
    env | grep -v '^_=' | sort >before
    gives 0 run -N "redis://$(node locked)" --password-file pass --ttl 20s --label l --prefix p "$key" -- env
    says_nothing_hidden
    grep -v '^_=' <<<"$output" | sort >after
    [ -z "$(comm -23 before after)" ] || fail "lost: $(comm -23 before after)"
    attempt comm -13 before after
    [ "$(cut -d= -f1 <<<"$output" | tr '\n' ' ')" = 'DLOCK_FENCE DLOCK_HOLDS DLOCK_KEY DLOCK_TOKEN DLOCK_TTL_MS ' ] ||
        fail "which?"
}

@test "a dlock inside COMMAND finds nodes, password and token in the environment" {
    DLOCK_NODES=redis://$(node locked) DLOCK_PASSWORD=sesame-word works run "$key" -- "$DLOCK" renew "$key"
}

# -------------------------------------------------------------------- messages

@test "a password that a server repeats is not shown" {
    redis_start_tcp no-auth 127.0.0.1 --rename-command AUTH ''
    for option in '' -v; do
        gives 77 acquire $option -N "redis://me:sesame-word@$(node no-auth)" "$key"
        says_nothing_hidden
        [[ $stderr == *'does not support AUTH'* ]] || fail "expected why"
        # Redis repeats its beginning only.
        gives 77 acquire $option -N "redis://:sesame-word$(printf '%0200d' 0)@$(node no-auth)" "$key"
        says_nothing_hidden
    done
}

@test "a password that is a word of an error message is not revealed by omitting it" {
    redis_start_tcp words 127.0.0.1 --requirepass other
    for word in PASS password invalid; do
        gives 77 acquire -v -N "redis://:$word@$(node words)" "$key"
        [[ $stderr != *'*'* ]] || fail "expected no gap where the password was"
    done
}

@test "a password is not shown if the rest of the URL is missing" {
    for url in redis://:sesame-word redis://me:sesame-word unix://me:sesame-word me:sesame-word; do
        refuses 64 'invalid node' status -N "$url" "$key"
        says_nothing_hidden
        DLOCK_NODES=$url refuses 64 'invalid node' status "$key"
        says_nothing_hidden
        echo "node $url" >config
        (
            unset DLOCK_NODES
            refuses 78 'invalid node' status --config config "$key"
            says_nothing_hidden
        )
    done
}

@test "a server that repeats requests does not reveal a token" {
    printf -v padding '%185s' ''
    for word in ' @ ' x@x "$padding@"; do
        said=
        for i in {3..8}; do said+=${word/@/"{$i}"}; done
        says EVAL "-ERR what is $said?\r\n"
        for command in "acquire -v $key" "release -v $key $OTHER_TOKEN" "renew -v $key $OTHER_TOKEN" \
            "run -v $key true" "run -v --token $OTHER_TOKEN $key true"; do
            DLOCK_NODES=$(liar) try $command
            [ "$status" -eq 69 ] || exits 1
            [[ $stderr == *'what is'* ]] || fail 'expected what the server said'
            ! grep -P 'what is.*[\w-]{12,}' <<<"$stderr" || fail 'a part of a token is shown'
        done
    done
    says EVAL '-ERR another-word-of-22-let\r\n'
    refuses 69 'another-word-of-22-let' acquire -N "$(liar)" "$key"
}

@test "a server that repeats a password does not reveal it" {
    printf -v long '%190s' ''
    for padding in '' x "$long"; do
        for node in '' redis+sentinel: redis+cluster:; do
            says AUTH "-ERR what is $padding{1}$padding{2}?\r\n"
            says EVAL "-ERR what is ${padding}sesame-word?\r\n"
            says SENTINEL "-NOAUTH what is ${padding}sesame-word?\r\n"
            says CLUSTER "-ERR what is ${padding}sesame-word?\r\n"
            for _ in 1 2; do
                try run -v -N "${node:-redis:}//me:sesame-word@$(liar_tcp)$([ "$node" != redis+sentinel: ] || echo /s)" "$key" -- true
                [ "$status" -eq 69 ] || exits 77
                [[ $stderr == *'what is'* && $stderr != *sesam* ]] || fail 'the password is shown'
                rm -f "$(server_dir liar)"/says.AUTH
            done
        done
    done
    says SENTINEL "*2\r\n$(bulk sesame-word)$(bulk 80)"
    gives 69 run -v -N "redis+sentinel://me:sesame-word@$(liar_tcp)/s" "$key" -- true
    [[ $stderr != *sesam* ]] || fail 'the password is shown'
    # A holder that it has made up.
    says EVAL "$(holder 5000 xsesame-wordx)"
    refuses 75 'held by x\*x \(x\*x\)' acquire -N "redis://me:sesame-word@$(liar_tcp)" "$key"
    [[ $stderr != *sesam* ]] || fail 'the password is shown'
}

@test "only acquire shows tokens" {
    take "$key"
    for command in "acquire -v $key" "status -v $key" "status $key" "status --json $key" "renew -v $key $token" \
        "release -v $key $token" "release -v $key $token"; do
        try $command
        [[ $output$stderr != *"$token"* ]] || fail "the token is shown"
    done
}

# ----------------------------------------------------------------------- files

@test "a world-readable configuration file with a password causes a warning" {
    echo "node $(locked_node)" >config
    unset DLOCK_NODES
    chmod 644 config
    warns 1 'config contains a password and is world-readable' status --config config "$key"
    says_nothing_hidden
    DLOCK_CONFIG=config quietly 1 status -q "$key"
    chmod 640 config
    quietly 1 status --config config "$key"
    chmod 644 config
    echo "node redis://me@$(node a)" >config
    try status --config config "$key"
    [[ $stderr != *world-readable* ]] || fail "expected no warning"
    # Which modes and groups are a reason to warn is in tests/unit/option.c.
    echo "node $(node a)" >config
    chmod 646 config
    warns 1 'config can be written by others; use chmod go-w' status --config config "$key"
}

@test "a world-readable password file causes a warning" {
    DLOCK_NODES=$(node locked)
    echo sesame-word >pass
    chmod 644 pass
    warns 1 'the password file pass.* is world-readable' status --password-file pass "$key"
    try doctor --password-file pass
    [ "$(grep -c world-readable <<<"$stderr")" = 1 ] || fail 'expected it once'
    quietly 1 status -q --password-file pass "$key"
    chmod 600 pass
    quietly 1 status --password-file pass "$key"
    quietly 1 status --password-file <(echo sesame-word) "$key"
}
