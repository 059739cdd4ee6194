#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# Messages that say what to do: commands and options of other tools, nodes, files, reports, outages.

load ../lib/redis

redis_servers='a b'

@test "an unknown command: the message suggests the one that is meant" {
    for words in 'unlock release' 'list status' 'ls status' 'lock acquire'; do
        refuses 64 "unknown command '${words% *}'; did you mean ${words#* }\\?" "${words% *}" "$key"
    done
    refuses 64 "unknown command 'zzzzzz'; see" zzzzzz
    for name in Run runs '' r '--' $'new\nline'; do
        refuses 64 '' "$name" "$key"
    done
}

@test "options of flock and timeout: the message names that of dlock" {
    for words in '--timeout --wait' '--nonblock --no-wait' '-x exclusive' '-s --signal' '-s shared'; do
        refuses 64 "unknown option '${words% *}'; .*${words#* }" run "${words% *}" "$key" -- true
    done
}

@test "an invalid node: the message says what is wrong, and shows all forms" {
    for words in 'a:1,b:2=several nodes: repeat --node' 'redis://a,b=several nodes: repeat --node' 'redis://h:99999=port' 'redis://h:x=port' 'http://h=scheme is unknown' 'u@h=a login needs a scheme' \
        'redis://h/x=database' 'redis+sentinel://h=name of the service' '=empty' 'redis://=host is missing' 'unix://=path .* must begin with /' \
        'unix://tmp/s=path .* must begin with /' 'unix:///tmp/s?1=what follows the path is not \?db' \
        'unix:///tmp/%zz=malformed escape'; do
        try status -N "${words%%=*}" "$key"
        fails 64 "${words#*=}.*redis://.*rediss://.*unix://.*host:port.*redis\\+sentinel://.*redis\\+cluster://"
    done
}

@test "a file that does not exist: the message names it, with \"No such file\"" {
    for option in --config --password-file; do
        refuses 78 'file missing: No such file or directory' acquire "$option" missing "$key"
        refuses 78 'file \.: Is a directory' acquire "$option" . "$key"
    done
    DLOCK_CONFIG=missing refuses 78 'file missing: No such file or directory' acquire "$key"
    refuses 71 'missing/report: No such file or directory' run --report missing/report "$key" -- touch begun
    [ ! -e begun ]
}

@test "a file for TLS that does not exist: the message names it, with \"No such file\"" {
    dlock --version | grep -q '^TLS: .*SSL' || must_run 'there is no libssl'
    : >empty
    for option in --cacert --cacertdir --cert; do
        try acquire -N rediss://127.0.0.1:1 "$option" missing "$key"
        fails 78 "$option: missing cannot be used: No such file or directory"
    done
    try acquire -N rediss://127.0.0.1:1 --cacertdir empty "$key"
    fails 78 'cacertdir: empty cannot be used: Not a directory'
}

@test "EVAL renamed on the server: the message has advice, and nothing of the script" {
    redis_start gone --rename-command EVAL ''
    redis_start other --rename-command EVAL OTHER
    for name in gone other; do
        DLOCK_NODES=$(node "$name")
        try run "$key" -- touch begun
        fails 69 "$key: .*it has no EVAL, which dlock needs; see rename-command in redis.conf"
        [[ ${#stderr} -le 300 && $stderr != *local* && $stderr != *redis.call* ]] || fail 'expected nothing of the script'
        refuses 69 'it has no EVAL.*rename-command' status "$key"
        gives 69 doctor
        [[ $output == *'it has no EVAL'*'remove rename-command EVAL'* && $output != *local* ]] || fail 'expected advice'
    done
    [ ! -e begun ]
}

@test "a --ttl above a day draws a warning" {
    warns 0 'more than a day: .*; a short lease is enough, run renews it$' run --ttl 25h "$key" -- true
    works run --ttl 24h "$key" -- true
    warns 0 'others wait for so long$' acquire --ttl 25h "$key-2"
    works run -q --ttl 25h "$key" -- true
}

@test "a COMMAND that does not exist: which part is missing" {
    refuses 127 "$key: \\./missing: command not found: No such file or directory$" run "$key" -- ./missing
    refuses 127 "$key: missing-command: command not found$" run "$key" -- missing-command
    refuses 127 'done: command not found; use -c for a line' run "$key" -- 'for i in 1 2; do :; done'
    try run "$key" -- './missing -a | sort'
    fails 127 'sort: command not found: No such file or directory; use -c for a line'
    for command in 'echo a' 'true;false'; do
        refuses 127 'command not found; use -c for a line of the shell' run "$key" -- "$command"
    done
    printf '#!/missing/sh\n' >'a script'
    chmod +x 'a script'
    try run "$key" -- './a script'
    fails 127 "$key: \\./a script: command not found: its interpreter or loader does not exist \\(.*\\)\$"
}

@test "-v shows times, and for run the key" {
    gives 0 run -v "$key" -- true
    [ "${#stderr_lines[@]}" -ge 5 ] || fail 'expected the steps'
    for line in "${stderr_lines[@]}"; do
        [[ $line =~ ^dlock:\ [0-9:]{8}\.[0-9]{3}\ $key:\  ]] || fail "$line"
    done
}

# names_key STATUS ARG...: dlock run prints messages, each of which begins or ends with the key.
names_key() {
    gives "$1" run "${@:2}"
    messages_name_key
}

messages_name_key() {
    local line
    [ "${#stderr_lines[@]}" -ge 1 ] || fail 'expected a message'
    for line in "${stderr_lines[@]}"; do
        [[ $line == "dlock: $key: "* || $line == *"; KEY was $key" ]] || fail "expected the key: $line"
        [[ $line != "dlock: $key: "*"; KEY was $key" ]] || fail "expected the key once: $line"
    done
}

@test "every message of run names the key" {
    : >empty
    echo secret >password
    chmod 644 password
    echo 'ttl junk' >config
    echo 'node redis://:password@127.0.0.1:1' >public
    chmod 644 public
    names_key 69 -N "$PWD/nobody" "$key" -- true
    names_key 69 -N "$PWD/nobody" --node-wait 200ms "$key" -- true
    names_key 69 --replicas 1 "$key" -- true
    names_key 69 --restart-guard 100d "$key" -- true
    names_key 127 "$key" -- ./missing
    names_key 126 "$key" -- ./empty
    names_key 71 --report missing/report "$key" -- true
    names_key 124 --max-run 100ms "$key" -- sleep 10
    names_key 0 --ttl 25h "$key" -- true
    names_key 77 --password-file password "$key" -- true
    names_key 77 -N "unix://nobody:password@$(node a)" "$key" -- true
    names_key 78 --password-file missing "$key" -- true
    names_key 78 --password-file empty "$key" -- true
    names_key 78 --config missing "$key" -- true
    names_key 78 --config config "$key" -- true
    names_key 69 --config public -N "$PWD/nobody" "$key" -- true
    names_key 64 --ttl junk "$key" -- true
    names_key 64 --shell "$key" -- true false
    names_key 64 -N "$(node a)" -N "$(node a)" "$key" -- true
    names_key 64 "$key"
    DLOCK_TTL=junk names_key 64 "$key" -- true
    names_key 75 --token "$OTHER_TOKEN" "$key" -- true
    names_key 76 "$key" -- "$REDIS_CLI" -s "$(server_dir a)/s" del "$key"
    take "$key"
    names_key 75 "$key" -- true
    stalls_note
    try run --wait 200ms "$key" -- true
    waited_in_vain 75
    messages_name_key
    # An invalid KEY is not used as a prefix.
    refuses 64 '^dlock: KEY is empty' run '' -- true
    refuses 64 '^dlock: KEY is missing' run -- nice ./job
    refuses 64 'COMMAND is missing; usage: dlock run [[]options[]] KEY' run "$key"
}

@test "an unknown option: the message names the help of the command; an invalid --wait: it mentions forever" {
    refuses 64 forever run --wait never "$key" -- true
    works run --wait infinity "$key" -- true
    refuses 64 "unknown option '-F'; see dlock run --help" run -F "$key" -- true
    refuses 64 "unknown option '--frobnicate'; see dlock status --help" status --frobnicate
    refuses 64 "unknown option '-F'; see dlock --help all" -F status
}

@test "status into a pipe whose reader ends is no error" {
    for i in {1..60}; do take "$key-$i-$(printf 'x%.0s' {1..200})"; done
    passes bash -o pipefail -c '"$DLOCK" status --json | head -n 1'
    [ "${#lines[@]}" -eq 1 ]
    # The reader may have gone before anything is written.
    dlock run "$key-1" -- true
    for i in 'status --json' "history $key-1" --help 'help run' doctor; do
        passes bash -c "{ sleep 0.2; '$DLOCK' $i; echo \$? >status; } | :"
        [[ $(cat status) == [01] ]] || fail "$i: $(cat status)"
    done
}

@test "an unknown user is shown as a number" {
    [ "$(id -u)" = 0 ] || must_run 'only root can become another user'
    # Another user may enter the folders of the test.
    passes env -u LOGNAME -u USER setpriv --reuid 54321 --clear-groups --inh-caps=+dac_override \
        --ambient-caps=+dac_override "$DLOCK" acquire "$key"
    [ "$(dlock status --json "$key" | jq -r .owner.user)" = 54321 ]
}

@test "break says what happens to the command, and shows the holder when it refuses" {
    start_holding "$key" --ttl 30s 'exec sleep 60'
    refuses 64 "$key: held by .*\\(sh\\).*its command ends within 22s.*--force" break "$key" </dev/null
    is_held "$key"
    works break --force "$key"
    [[ $output == *'its command ends within 22s' ]] || fail 'expected what follows'
}

@test "renewals fail for a while: a warning when that begins, and one when it ends" {
    redis_start c
    start run -N "$(node c)" --ttl 12s --node-timeout 2s "$key" -- sh -c 'while [ ! -e stop ]; do sleep 0.2; done'
    start run -q -N "$(node c)" --ttl 12s --node-timeout 2s "$key-q" -- sh -c 'while [ ! -e stop ]; do sleep 0.2; done'
    wait_until "held '$key' c && held '$key-q' c"
    redis_freeze c
    wait_until "grep -Eq '$key: a renewal failed: .*; trying again, the lease ends in [0-9.]+m?s\$' bg.1.err"
    redis_thaw c
    wait_until "grep -Eq '$key: the lease is renewed again, after an outage of [0-9.]+m?s\$' bg.1.err"
    stops 0
    [ -z "$stderr" ] || fail 'expected no word with -q'
    [ "$(wc -l <bg.1.err)" -eq 2 ] || fail "expected two lines: $(cat bg.1.err)"
}
