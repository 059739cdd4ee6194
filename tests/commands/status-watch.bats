#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# dlock status --watch: again and again, until a signal ends it.

load ../lib/redis

setup() {
    test_begin
    export TERM=xterm NO_COLOR=1
}

second_screen='\x1b[?1049h'
first_screen='\x1b[?1049l'

# frames N FILE: FILE has N rows of our key.
frames() { [ -f "$2" ] && [ "$(grep -c "$key" "$2")" -ge "$1" ]; }

# interrupt: ^C ends it with 0.
interrupt() {
    kill -INT "$bg"
    finishes_well
}

@test "without a terminal the output is repeated, each two seconds by default; ^C ends it with 0" {
    take "$key" --ttl 1m
    start status --watch=100ms "$key"
    wait_until "frames 3 bg.1.out"
    interrupt
    [[ ${lines[0]} == KEY* && ${lines[1]} == "$key"* && ${lines[2]} == '' && ${lines[3]} == KEY* ]] ||
        fail "expected frames with an empty line between"
    [[ $output != *$'\e'* ]] || fail "expected no escapes"
    start status --watch 100ms --no-headings -o key "$key"
    wait_until "frames 2 bg.2.out"
    interrupt
    [ "${lines[0]}" = "$key" ]
    start status --watch "$key"
    wait_until "frames 1 bg.3.out"
    kill -CONT "$bg"
    wait_until "frames 2 bg.3.out"
    terminate
    [ -z "$stderr" ]
    refuses 64 'too short' status --watch=50ms "$key"
    refuses 64 'invalid duration' status --watch=soon "$key"
}

@test "--json: objects only, one per line" {
    take "$key" --ttl 1m
    start status --json --watch 100ms "$key"
    wait_until "frames 3 bg.1.out"
    interrupt
    [ "$(jq -r .state <<<"$output" | sort -u)" = held ]
    ! grep -qx '' <<<"$output" || fail "an empty line"
    attempt "$PYTHON" "$lib_dir/terminal.py" 'expect=}' 'expect={' 'send=\x03' -- "$DLOCK" status --json --watch 100ms "$key"
    [[ $output != *$'\e'* ]] || fail "expected no escapes on a terminal"
}

@test "a node that becomes unavailable is reported, and watching continues" {
    redis_start w
    DLOCK_NODES=$(node w)
    take "$key" --ttl 1m
    start status --watch 100ms --node-timeout 2s "$key"
    wait_until "frames 1 bg.1.out"
    redis_stop w
    wait_until "grep -q 'dlock: .*w/s' bg.1.err"
    redis_start w
    seen=$(grep -c "$key" bg.1.out)
    wait_until "frames $((seen + 1)) bg.1.out"
    rcli w acl setuser default -@scripting # so is a user who may not look for a while
    wait_until "grep -q 'does not permit' bg.1.err"
    rcli w acl setuser default +@all
    seen=$(grep -c "$key" bg.1.out)
    wait_until "frames $((seen + 1)) bg.1.out"
    kill -INT "$bg"
    finishes 0
}

@test "a node that was never available ends it" { within 5000 gives 69 status --watch --node "$PWD/nobody" "$key"; }

@test "a closed standard output ends it" {
    take "$key" --ttl 1m
    attempt sh -c '"$0" status --watch 100ms "$1" | head -n 1' "$DLOCK" "$key"
    [[ $stderr == *'cannot write'* ]] || fail "expected to hear of it"
}

@test "on a terminal the output is redrawn in place, and ^C restores the terminal" {
    take "$key" --ttl 1m --label one
    attempt "$PYTHON" "$lib_dir/terminal.py" "expect=$second_screen" expect=', every 100ms' expect=one 'expect=\x1b[J' \
        'expect=\x1b[H' expect=one 'send=\x03' 'expect=\x1b[?25h'"$first_screen" expect=over -- \
        sh -c 'trap : INT; stty cols 80 rows 24; "$@"; echo "over $?"' x "$DLOCK" status --watch 100ms "$key"
    exits 0
    [[ $output == *'over 0'* ]] || fail "expected status 0"
}

@test "on a terminal a node that becomes unavailable is shown" {
    redis_start w
    DLOCK_NODES=$(node w) take "$key" --ttl 1m --label one
    "$PYTHON" "$lib_dir/terminal.py" expect=one file=gone 'expect=w/s: ' 'send=\x03' "expect=$first_screen" -- \
        sh -c 'stty cols 200 rows 24; exec "$@"' x "$DLOCK" status --watch 100ms --node-timeout 2s -N "$(node w)" "$key" \
        >out 2>err 3>&- 4>&- &
    terminal=$!
    # The first script took the lock, and the third one comes behind the first frame.
    wait_until "rcli w info commandstats | grep -qE 'cmdstat_eval:calls=([3-9]|[1-9][0-9])'"
    redis_stop w
    touch gone
    status=0
    wait "$terminal" || status=$?
    attempt_read out err
    exits 0
}

@test "on a terminal the rows fit its height" {
    rcli a eval 'for i = 100, 199 do redis.call("set", KEYS[1] .. i, "x", "px", 60000) end' 1 "$key:"
    # A terminal that does not know its size is taken for one of 80 times 24.
    for size in '12 8' '3 1' '0 20'; do
        attempt "$PYTHON" "$lib_dir/terminal.py" "expect=$second_screen" 'expect=...' 'send=\x03' "expect=$first_screen" -- \
            sh -c 'stty cols 80 rows $0; exec "$@"' "${size% *}" "$DLOCK" status --watch 5s "$key:*"
        exits 0
        [ "$(grep -c "$key:1" <<<"$output")" -eq "${size#* }" ] || fail "expected ${size#* } rows"
    done
}

@test "^Z restores the terminal meanwhile" {
    take "$key" --ttl 1m --label one
    yields 0 "$PYTHON" "$lib_dir/terminal.py" 'expect=prompt> ' "send=$DLOCK status --watch 100ms $key\n" expect=one \
        'send=\x1a' "expect=$first_screen" expect=Stopped 'send=fg\n' "expect=$second_screen" expect=one \
        'send=\x03' "expect=$first_screen" 'send=exit\n' -- \
        env PS1='prompt> ' HISTFILE=/dev/null bash --norc --noprofile -i
}
