#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# dlock acquire in scripts of several shells: --export, and whom the lock belongs to.

# shellcheck disable=SC1003
load ../lib/redis

posix_shells=(bash dash zsh)

setup() {
    test_begin
    export DLOCK key
}

# each_shell FUNCTION: call it for each shell of the Bourne kind; $shell is its name.
each_shell() {
    local shell
    for shell in "${posix_shells[@]}"; do
        command -v "$shell" >/dev/null || must_run "$shell is not installed"
        "$@"
    done
}

stops_at_failure() {
    yields 75 "$shell" -c 'eval "$("$DLOCK" acquire --export "$key")" || exit; touch deployed'
    yields 75 "$shell" -e -c 'eval "$("$DLOCK" acquire --export "$key")"; touch deployed'
    yields 75 "$shell" -e -c 'out=$("$DLOCK" acquire --export "$key") || exit; eval "$out"; touch deployed'
    yields 9 "$shell" -c 'eval "$("$DLOCK" acquire -E 9 --export "$key")"; exit $?'
    [ ! -e deployed ] || fail "$shell went on without the lock"
}

stops_at_usage() {
    local words
    for words in '--bogus --export' '--export --bogus' '--ttl x --export' '--export=tcl' '--export --config /nonexistent'; do
        attempt "$shell" -c 'eval "$("$DLOCK" acquire '"$words"' "$key" 2>/dev/null)"; exit $?'
        [ "$status" = 64 ] || [ "$status" = 78 ] || fail "$shell: $words"
    done
    yields 64 "$shell" -c 'eval "$("$DLOCK" aquire --export "$key" 2>/dev/null)"; exit $?'
    yields 69 "$shell" -c 'eval "$("$DLOCK" acquire --export --node /nonexistent/socket "$key" 2>/dev/null)"; exit $?'
}

@test "eval of --export with a wrong command line, or without Redis, fails" { each_shell stops_at_usage; }

@test "eval of a failed --export fails with -E 0, too" {
    take "$key"
    gives 0 acquire --export=sh -E 0 "$key"
    [ "${lines[-1]}" = '(exit 75)' ] || fail 'expected a failure'
    gives 3 acquire --export=sh -E 3 "$key"
    [ "${lines[-1]}" = '(exit 3)' ] || fail 'expected the status'
    # With --json it is a usage error, and takes no lock.
    warns 64 'cannot be used together' acquire --export=sh --json "$key-2"
    [ "${lines[-1]}" = '(exit 64)' ] || fail 'expected a failure'
    is_free "$key-2"
}

@test "eval of an --export that a signal ended fails" {
    take "$key"
    start acquire --export --wait 60s "$key"
    wait_until '[ "$(rcli a zcard "{$key}:dlock:waiting")" = 1 ]'
    terminate
    yields 143 bash -c "eval '$output'"
}

clears() {
    attempt "$shell" -c 'eval "$("$DLOCK" acquire --export "$key-'"$shell"'")"
        eval "$("$DLOCK" acquire --export "$key" 2>/dev/null)"
        echo "${DLOCK_KEY-none} ${DLOCK_TOKEN-none} ${DLOCK_FENCE-none} ${DLOCK_TTL_MS-none}"
        "$DLOCK" release "$key-'"$shell"'"'
    succeeds
    [ "$output" = 'none none none none' ] || fail "$shell keeps variables"
    is_free "$key-$shell"
}

@test "eval of a failed --export fails with the status of dlock, and clears the variables of an earlier one" {
    take "$key"
    each_shell stops_at_failure
    each_shell clears
}

keeps_both() {
    attempt "$shell" -e -c 'one=$key-1-'"$shell"' two=$key-2-'"$shell"'
        eval "$("$DLOCK" acquire --export "$one")"
        eval "$("$DLOCK" acquire --export "$two")"
        "$DLOCK" run "$one" -- echo in one
        "$DLOCK" run "$two" -- echo in two
        "$DLOCK" renew "$one"
        "$DLOCK" release "$one"
        "$DLOCK" status "$one" >/dev/null && exit 9
        "$DLOCK" release "$two"'
    succeeds
    [ "$output" = $'in one\nin two' ] || fail "$shell"
    is_free "$key-1-$shell"
    is_free "$key-2-$shell"
}

@test "two exports in a shell keep both locks" { each_shell keeps_both; }

@test "--export=fish is for the eval of fish" {
    command -v fish >/dev/null || must_run 'fish is not installed'
    take "$key"
    attempt fish -c 'eval ($DLOCK acquire --export=fish "$key-fish'"'"'s \\ $HOME"); or exit 9
        test "$DLOCK_KEY" = "$key-fish'"'"'s \\ $HOME"; or exit 8
        eval ($DLOCK acquire --export=fish $key-2); or exit 7
        $DLOCK run "$key-fish'"'"'s \\ $HOME" -- echo in; or exit 6
        eval ($DLOCK acquire --export=fish --bogus $key 2>/dev/null); and exit 3
        eval ($DLOCK acquire --export=fish $key 2>/dev/null)
        set -l code $status
        set -q DLOCK_KEY; and exit 5
        $DLOCK release $key-2; or exit 4
        exit $code'
    exits 75
    [ "$output" = in ]
    is_free "$key-2"
}

@test "--export=SHELL has the form of that shell" {
    gives 64 acquire --export=csh "$key"
    refuses 64 'not an option of run' run --export "$key" -- true
    is_free "$key"
    try acquire --export=fish "$key-2"
    [[ $output == "set -gx DLOCK_KEY '$key-2';"* ]] || fail 'expected set'
    try acquire --export=sh "$key-3"
    [[ $output == "DLOCK_KEY='$key-3'; export DLOCK_KEY;"* ]] || fail 'expected export'
}

# Each would create the file "code" if a part of it were evaluated, in the quoting of one shell or of another.
hostile_keys=('a'\''; touch code; '\' '\'\''; touch code; #' '\\'\''; touch code; #' '\' '\\' "'" "''" $'a\ntouch code\n' '$(touch code)'
    '`touch code`' '(touch code)' '"; touch code; "' '\'\'' touch code; #' "'\\'' touch code; '" $'\\\ntouch code' '{a,b}~*?!!' $'\xe3\\\'; touch code; #')

# reads_back FORM EVAL: the shell gets each hostile KEY back from what --export=FORM prints, and runs no part of it.
reads_back() {
    local KEY
    for KEY in "${hostile_keys[@]}"; do
        KEY=$KEY attempt "$shell" -c "$2"' "$("$DLOCK" acquire --export='"$1"' "$KEY")"; test "$DLOCK_KEY" = "$KEY"'
        if [ "$status" != 0 ] || [ -e code ]; then fail "$shell: $KEY"; fi
        rcli a flushall >/dev/null
    done
}

# runs_nothing FORM: it runs no part of one in what is meant for the other kind of shell either.
runs_nothing() {
    local KEY
    for KEY in "${hostile_keys[@]}"; do
        KEY=$KEY attempt "$shell" -c 'eval "$("$DLOCK" acquire --export='"$1"' "$KEY")"'
        [ ! -e code ] || fail "$shell: $KEY"
        rcli a flushall >/dev/null
    done
}

@test "a hostile KEY in --export is never code, whatever shell evaluates it" {
    each_shell reads_back sh eval
    each_shell runs_nothing fish
    command -v fish >/dev/null || must_run 'fish is not installed'
    shell=fish
    reads_back fish eval
    runs_nothing sh
}

owned_by_script() {
    attempt "$shell" -c 'echo $$
        token=$("$DLOCK" acquire "$key-'"$shell"'") || exit
        "$DLOCK" status --json "$key-'"$shell"'" | jq -c "[.owner.pid, .owner.command]"
        "$DLOCK" status --no-headings -o PID "$key-'"$shell"'"'
    succeeds
    [ "${lines[1]}" = "[${lines[0]},\"acquire\"]" ] || fail "$shell: expected the PID of the script"
    [ "${lines[2]}" = "${lines[0]}" ]
}

@test "the owner of a lock of acquire is the script that called it" { each_shell owned_by_script; }

@test "the owner is the script, though a copy of the shell called acquire" {
    attempt bash -c 'echo $$
        token=$("$DLOCK" acquire "$key" || exit) || exit
        "$DLOCK" status --json "$key" | jq .owner.pid'
    succeeds
    [ "${lines[1]}" = "${lines[0]}" ]
    attempt bash -c 'echo $$
        "$DLOCK" acquire "$key-2" | cat >/dev/null
        "$DLOCK" status --json "$key-2" | jq .owner.pid'
    succeeds
    [ "${lines[1]}" = "${lines[0]}" ]
}
