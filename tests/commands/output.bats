#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# What dlock writes and where: results on standard output, one line of error on standard
# error, help on standard output; and what happens when it cannot write.

load ../lib/redis

commands='run acquire renew release status history break doctor config help'

# cannot_write REGEX COMMAND...: it ends with 71 and a line that matches.
cannot_write() {
    status=0
    "${@:2}" 2>err || status=$?
    output='' stderr=$(<err)
    fails 71 "$1"
}
full() { dlock "$@" >/dev/full; }
closed() { dlock "$@" >&-; }

@test "acquire to a full disk, a closed standard output or a pipe without a reader releases the lock and exits 71" {
    for option in '' --json --export; do
        cannot_write 'No space left' full acquire $option "$key"
        is_free "$key"
    done
    cannot_write '' closed acquire "$key"
    is_free "$key"
    cannot_write '' "$PYTHON" -c '
import os, signal, subprocess, sys
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
read, write = os.pipe()
os.close(read)
sys.exit(subprocess.run(sys.argv[1:], stdout=write, restore_signals=True).returncode % 256)' \
        "$DLOCK" acquire "$key"
    is_free "$key"
}

@test "any result that cannot be written: 71" {
    rcli a set "$key" foreign
    for command in "renew --json $key $OTHER_TOKEN" "release --json $key $OTHER_TOKEN" doctor 'doctor --json' "status $key" \
        "status --json $key" "break --force $key" 'status --prometheus' config 'help run' --help --version; do
        cannot_write 'No space left' full $command || fail "$command"
    done
    is_free "$key"
}

@test "a token that cannot be written, of a lock that cannot be released: the message says so" {
    proxy_start lossy behind drop@{2..9} # 1 takes it
    cannot_write 'the lock ends with its lease' full acquire --node-timeout 6s -N "$(proxy_node lossy)" "$key"
}

@test "an error or a step that cannot be written does not change the exit status" {
    deaf() { dlock "$@" 2>/dev/full; }
    yields 64 deaf acquire --ttl nonsense "$key"
    yields 3 deaf run -v "$key" -- sh -c 'exit 3'
    is_free "$key"
}

@test "a standard error that is full is not waited for" {
    mkfifo full
    exec 8<>full
    attempt dd if=/dev/zero of=full bs=4096 count=1000 oflag=nonblock
    exits 1
    stuck() { dlock "$@" 2>full; }
    yields 3 stuck run -v "$key" -- sh -c 'exit 3'
    exec 8>&-
}

@test "-q does not suppress results" {
    works acquire -q "$key"
    [ "$output" = "$(rcli a get "$key")" ]
}

@test "-v shows the reply of each node" {
    take "$key"
    gives 75 acquire -v "$key"
    [ "${#stderr_lines[@]}" -ge 2 ] || fail "expected a step and the refusal"
    grep -qF "$(node a): held" <<<"$stderr" || fail "expected the node's answer"
}

@test "--help goes to standard output and exits 0, and so does help, which prints the same" {
    works --help
    [[ $output == *Usage:* || $output == *usage:* ]] || fail "expected the usage"
    outputs "$output" help
    for command in $commands; do
        [[ $output == *"$command"* ]] || fail "expected $command"
    done
    for command in $commands; do
        works "$command" --help
        [[ $output == *"dlock $command"* ]] || fail "expected the synopsis of $command"
        outputs "$output" help "$command"
    done
}

# shown [COMMAND] --help [all]: the names of the options in the help, in a line.
shown() { dlock "$@" | sed -nE 's/^ {2,6}(-[A-Za-z], )?--([a-z-]+).*/\2/p' | sort | tr '\n' ' '; }

@test "the help of a command shows the options that it uses, and no other" {
    taking='conflict-exit-code history label max-waiters no-wait node-wait replicas replicas-timeout restart-guard shared slots token ttl wait'
    common='cacert cacertdir cert config help insecure json key node node-timeout password-command password-file prefix quiet sentinel-password-file sentinel-user sni verbose version'
    while read -r command own; do
        [ "$(shown $command --help)" = "$(printf '%s\n' $own | sort | tr '\n' ' ')" ] || fail "of $command: $(shown $command --help)"
        [ "$(dlock "$command" --help | grep -c -- "^Common options .*: dlock $command --help all$")" -eq 1 ] ||
            fail "no line for the common options: $command"
        [ "$(shown $command --help all)" = "$(printf '%s\n' $own $common | sort | tr '\n' ' ')" ] ||
            fail "all of $command: $(shown "$command" --help all)"
    done <<END
run $taking exec-on-lost foreground kill-after max-run min-hold on-lost once-per replace report shell signal
acquire $taking exec-on-lost export keep kill-after on-lost signal
renew replicas replicas-timeout ttl
status all failed max-age no-headings output prometheus slots waiters watch
history no-headings
break ask conflict-exit-code force wait
doctor replicas replicas-timeout restart-guard ttl
END
    [ "$(shown help --help)" = 'help version ' ]
    [ -z "$(shown release --help | tr -d '\n ')" ]
    [ "$(shown release --help all)" = "$(printf '%s\n' $common | sort | tr '\n' ' ')" ]
    [ "$(shown --help)" = "$(printf '%s\n' $common | sort | tr '\n' ' ')" ]
}

@test "--help all of dlock shows the options of all commands" {
    for command in $commands; do
        shown "$command" --help all | tr ' ' '\n'
    done | grep . | sort -u | tr '\n' ' ' >expected
    [ "$(shown --help all)" = "$(cat expected)" ]
    [ "$(dlock help all)" = "$(dlock --help all)" ]
    [ "$(dlock run -h all)" = "$(dlock run --help=all)" ]
    refuses 64 "--help: invalid choice 'junk'; use all" run --help=junk
    # Another word after it is no value, and a letter is another option.
    [ "$(dlock --help run)" = "$(dlock run -qh)" ]
    [ "$(dlock run -hq)" = "$(dlock run --help)" ]
}

@test "an option that a command ignores is refused on the command line only" {
    take "$key"
    for words in '--wait 1s' '--label x' -n '-E 3' '--ttl 5s' '--restart-guard auto' '--replicas 0'; do
        refuses 64 'is not an option of release' release $words "$key" "$token"
    done
    refuses 64 '--wait is not an option of status' status --wait 5 "$key"
    refuses 64 '--no-wait is not an option of status' status -n "$key"
    printf '%s\n' 'wait 1s' 'label x' >config
    DLOCK_TTL=5s DLOCK_WAIT=3s works release --config config "$key" "$token"
    take "$key"
    DLOCK_WAIT=3s works break --force --config config "$key" # it takes --wait with --ask
    printf '%s\n' 'watch 1s' prometheus 'output FENCE' >config
    [ "$(dlock history --config config "$key")" = "$(dlock history "$key")" ]
}

@test "no option can be abbreviated" {
    for words in '--tt 5' '--tt=5s' '--js' '--jso=1' '--on-l warn' --ttlx '--w'; do
        refuses 64 "^dlock: unknown option '--[a-z-]*'; see dlock acquire --help\$" acquire $words "$key"
    done
    refuses 64 '--json takes no value' acquire --json=1 "$key"
    is_free "$key"
}

@test "help fits into 80 columns and has no tabs or blanks at line ends" {
    for command in '' $commands; do
        for all in '' all; do
            dlock $command --help $all >out
            awk 'length($0) > 80 { print; bad = 1 } END { exit bad }' out || fail "too wide: $command"
            ! grep -nP '\t| $' out || fail "tabs or blanks: $command"
        done
    done
}

@test "help and --version need no Redis and no valid environment" {
    DLOCK_TTL=nonsense DLOCK_NODES=http:// works --help
    DLOCK_CONFIG=$PWD/missing works run --help
    DLOCK_TTL=nonsense DLOCK_CONFIG=$PWD/missing works help run
    DLOCK_CONFIG=$PWD/missing works --version
    [[ ${lines[0]} =~ ^dlock\ [0-9]+\.[0-9]+ ]] || fail "expected dlock and a version"
}

@test "a missing command, and help for one that does not exist, is a usage error" {
    refuses 64 ''
    refuses 64 nonsense help nonsense
}
