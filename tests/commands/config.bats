#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# The configuration file, and what takes precedence over it.

load ../lib/redis

redis_servers='' tcp_servers=a

@test "--config sets defaults, one long option per line; those of one command do not affect another" {
    printf '%s\n' '# a comment' '' 'ttl 20s' '   # another' 'label two words' 'json' 'max-run 20s' 'min-hold 0s' >config
    tells 0 '.ttl_ms == 20000' acquire --config config "$key"
    [ "$(rcli a hget "{$key}:dlock" label)" = 'two words' ]
    works run --config config "$key-2" -- true
    grants_for 20000 --config <(printf '# %70000s\nttl 20s\n' '') "$key-3" # more than a pipe holds
}

@test "precedence: option, environment, configuration file" {
    printf 'ttl 20s\nprefix file:\n' >config
    DLOCK_TTL=30s grants_for 30000 --config config "$key-1"
    DLOCK_TTL=30s grants_for 40000 --config config --ttl 40s "$key-2"
    is_held "file:$key-1"
    is_held "file:$key-2"
}

@test "the file is found by DLOCK_CONFIG, then in XDG_CONFIG_HOME, then in .config" {
    unset DLOCK_CONFIG
    export XDG_CONFIG_HOME=$PWD/xdg
    mkdir -p xdg/dlock
    echo 'ttl 20s' >xdg/dlock/config
    grants_for 20000 "$key-1"
    echo 'ttl 30s' >config
    DLOCK_CONFIG=config grants_for 30000 "$key-2"
    echo 'ttl 40s' >other
    DLOCK_CONFIG=config grants_for 40000 --config other "$key-3"
    key+=-home
    unset XDG_CONFIG_HOME
    mkdir -p "$HOME/.config/dlock"
    echo 'ttl 20s' >"$HOME/.config/dlock/config"
    grants_for 20000 "$key"
    XDG_CONFIG_HOME=relative grants_for 20000 "$key-2" # which its specification ignores
    HOME=/dev/null grants_for 30000 "$key-3"
    ln -fs config "$HOME/.config/dlock/config"
    refuses 78 'Too many levels' acquire "$key-4"
}

@test "nodes in the file are replaced by those of the environment and of --node" {
    echo "node $PWD/nobody" >config
    unset DLOCK_NODES
    warns 69 nobody status --config config "$key"
    DLOCK_NODES=$(node a) gives 1 status --config config "$key"
    gives 1 status --config config --node "$(node a)" "$key"
    echo "node $(node a)" >config
    gives 1 status --config config "$key"
}

# with_etc COMMAND...: where etc is /etc/dlock, and $HOME/.config/dlock the folder of the user.
with_etc() {
    local new=(unshare --mount)
    [ "$(id -u)" -eq 0 ] || new+=(--map-root-user)
    "${new[@]}" true 2>err || must_run "no mount namespaces here: $(cat err)"
    unset DLOCK_CONFIG XDG_CONFIG_HOME
    mkdir -p etc "$HOME/.config/dlock"
    attempt "${new[@]}" sh -c 'mount -t tmpfs none /etc && ln -s "$PWD/etc" /etc/dlock && exec "$@"' sh "$@"
}

@test "the files of the user and of the system are merged, the first wins for each setting" {
    mkdir -p etc "$HOME/.config/dlock"
    printf '%s\n' "node $(node a)" 'ttl 20s' 'label system' >etc/config
    printf '%s\n' 'node-timeout 2s' 'ttl 40s' >"$HOME/.config/dlock/config"
    unset DLOCK_NODES
    with_etc "$DLOCK" acquire --json "$key"
    succeeds
    json_is '.ttl_ms == 40000'
    [ "$(rcli a hget "{$key}:dlock" label)" = system ]
    with_etc "$DLOCK" config
    succeeds
    for line in "node +$(node a) +/etc/dlock/config:1" "ttl +40s +$HOME/.config/dlock/config:2" \
        'label +system +/etc/dlock/config:3' "node-timeout +2s +$HOME/.config/dlock/config:1"; do
        grep -qxE "$line" <<<"$output" || fail "expected: $line"
    done
    echo "node $PWD/nobody" >>"$HOME/.config/dlock/config"
    with_etc "$DLOCK" config
    [ "$(grep -c '^node ' <<<"$output")" = 1 ] || fail 'expected the nodes of one file'
    grep -q "^node  *$PWD/nobody " <<<"$output" || fail 'expected that of the user'
    with_etc "$DLOCK" status --config /dev/null --node "$(node a)" "$key"
    exits 0
    with_etc "$DLOCK" config --config /dev/null
    [[ $output != *.config/dlock* && $output != */etc/dlock/config* ]] || fail 'expected --config to replace both'
    echo 'nonsense 1' >etc/config
    with_etc "$DLOCK" status "$key"
    exits 78
    complains '/etc/dlock/config:1: unknown option .nonsense'
}

@test "DLOCK_NODES that names no node is an error, and not a lock on this host" {
    for value in '' ' ' $'\t\n'; do
        DLOCK_NODES=$value refuses 64 'DLOCK_NODES is set, but names no node' acquire "$key"
    done
    DLOCK_NODES='' works acquire --node "$(node a)" "$key"
}

@test "config shows each setting and where it comes from" {
    printf '%s\n' 'label two words' 'json' '' 'wait 5m' 'quiet' >config
    DLOCK_TTL=20s DLOCK_INSECURE=0 works config --config config --no-wait --prefix 'a\b' --history 3
    [ "$(jq -c '[.name, .value, .origin]' <<<"$output" | grep -v '"default"')" = "$(printf '%s\n' '["node","'"$(node a)"'","environment DLOCK_NODES"]' \
        '["ttl","20s","environment DLOCK_TTL"]' '["wait","0","option"]' '["label","two words","config:1"]' '["prefix","a\\b","option"]' \
        '["restart-guard","0","environment DLOCK_RESTART_GUARD"]' '["json","yes","config:2"]' '["quiet","yes","config:5"]' \
        '["config","config","option"]' '["insecure","no","environment DLOCK_INSECURE"]' '["history","3","option"]')" ] ||
        fail 'expected these'
    unset DLOCK_NODES DLOCK_RESTART_GUARD
    works config --ttl 9s
    [ "${lines[0]}" = 'node                 redis://127.0.0.1:6379         default' ] || fail 'expected the default node'
    [ "${lines[1]}" = 'ttl                  9s                             option' ]
    [ "$(grep -c ' default$' <<<"$output")" -ge 30 ]
    for line in 'wait +0' 'label +-' 'password +-' 'cacert +the system.s' 'max-run +-' 'history +20' 'json +no' 'export +no'; do
        grep -qxE "$line +default" <<<"$output" || fail "expected: $line"
    done
    works config --watch
    grep -qxE 'watch +yes +option' <<<"$output" || fail 'expected an option without its value'
    refuses 64 'not an option of config' config --force
    refuses 64 'too many operands' config extra
}

@test "config shows no password" {
    lines=("node redis://u:hidden-1@h:1" 'node redis+sentinel://:hidden-2@a,b/s')
    printf '%s\n' "${lines[@]}" >config
    chmod 600 config
    unset DLOCK_NODES
    REDISCLI_AUTH=hidden-3 works config --config config
    [[ $output != *hidden* ]] || fail 'a password is shown'
    grep -qE '^node +redis://u:\*\*\*@h:1 +config:1$' <<<"$output"
    grep -qE '^node +redis\+sentinel://:\*\*\*@a,b/s +config:2$' <<<"$output"
    grep -qE '^password +\*\*\* +environment REDISCLI_AUTH$' <<<"$output"
    DLOCK_PASSWORD=hidden-4 try config --json --node 'unix://:hidden-5@/s'
    [[ $output != *hidden* ]] || fail 'a password is shown'
}

@test "where sudo has dropped the nodes, a warning says so" {
    unset DLOCK_NODES
    SUDO_USER=me works acquire --node "$(node a)" "$key"
    SUDO_USER=me try status --node-timeout 1ms "$key"
    [[ $stderr == *'no node is configured, perhaps since sudo drops DLOCK_NODES'* ]] || fail 'expected a warning'
    SUDO_USER=me works config
    [ -z "$stderr" ] || fail 'it says itself that the node is the default'
    SUDO_USER=me try doctor --node-timeout 1ms
    [[ $stderr != *sudo* ]] || fail 'it says itself that no node is configured'
    try status -v --node-timeout 1ms "$key"
    [[ $stderr == *'no node is configured: using redis://127.0.0.1:6379'* ]] || fail 'expected a step'
    [[ $stderr != *sudo* ]]
}

@test "errors in the file: 78, and file, line and value are named; random bytes, or with NUL: 78 and one line" {
    printf '# comment\nttl 5x\n' >config
    refuses 78 'config.*2.*5x' acquire --config config "$key"
    printf 'node http://h\n' >config
    unset DLOCK_NODES
    refuses 78 'config.*1' acquire --config config "$key"
    is_free "$key"
    "$PYTHON" -c 'import random, sys; sys.stdout.buffer.write(random.Random(4).randbytes(20000))' >config
    refuses 78 '' acquire --config config "$key"
    printf 'ttl 5s\0ttl 6s\n' >config
    refuses 78 '' acquire --config config "$key"
    yes '# nothing' | head -c 1048577 >config
    refuses 78 'too large' acquire --config config "$key"
    head -c 1048576 config >most
    works acquire --config most -N "$(node a)" "$key"
}
