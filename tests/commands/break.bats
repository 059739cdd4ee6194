#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# dlock break: taking a lock from whoever holds it, on one node and on several.

load ../lib/quorum

redis_servers=a

redisson=5dbf0eb8-6e4f-4a4c-9a20-fd7f0a0f7c5a:57

# at_terminal ANSWER ARG...: dlock break ARG... at a terminal, with that answer to its question.
at_terminal() {
    attempt "$PYTHON" "$lib_dir/terminal.py" 'expect=Break it? [y/N] ' "send=$1" -- "$DLOCK" break "${@:2}"
}

# at_terminal_gives STATUS ANSWER ARG...: the same, and its status.
at_terminal_gives() {
    at_terminal "${@:2}"
    exits "$1"
}

# ---------------------------------------------------------------- asking

@test "break at a terminal shows the holder, and y breaks the lock" {
    take "$key" --label backup --ttl 1m
    at_terminal_gives 0 'y\n' "$key"
    [[ $output == *"$key: held by $(id -un)@$(uname -n):"*" (backup)"*" of its lease left"*", from acquire"*"$key: broken"* ]] ||
        fail "expected its holder"
    is_free "$key"
}

@test "any answer but y does not break the lock: 75" {
    take "$key"
    for answer in '\n' 'n\n' 'no\n' 'yo\n' 'yyyyyyyyyyyyyyyyyyyyy\n' '\x04' 'y\x04\x04'; do
        at_terminal_gives 75 "$answer" "$key"
        [[ $output == *'not broken'* ]]
        [ "$(rcli a get "$key")" = "$token" ] || fail "broken by $answer"
    done
    at_terminal_gives 3 'n\n' -E 3 --json "$key"
    [[ $output == *'"outcome":"kept"'* ]]
}

@test "the question goes to the terminal, the result to standard output" {
    take "$key"
    yields 0 "$PYTHON" "$lib_dir/terminal.py" 'expect=Break it? [y/N] ' 'send=yes\n' -- \
        sh -c '"$0" break --json "$1" >out' "$DLOCK" "$key"
    [ "$(jq -r .outcome out)" = broken ]
}

@test "a lock that changed its holder during the question is not broken" {
    take "$key"
    at_terminal_meanwhile "rcli a set '$key' '$OTHER_TOKEN' px 20000"
    exits 75
    [[ $output == *'"outcome":"changed"'*'not broken: the holder has changed'* ]] || fail "expected the reason"
    [ "$(rcli a get "$key")" = "$OTHER_TOKEN" ]
    at_terminal_meanwhile "rcli a set '$key' another px 20000"
    exits 75
    [ "$(rcli a get "$key")" = another ]
    at_terminal_meanwhile "rcli a del '$key'"
    exits 1
    [[ $output == *'the lock is free'* ]] || fail "expected the reason"
}

# at_terminal_meanwhile COMMAND: it is run while the question is shown, then the answer is yes.
at_terminal_meanwhile() {
    rm -f go
    "$PYTHON" "$lib_dir/terminal.py" 'expect=Break it? [y/N] ' file=go 'send=y\n' -- "$DLOCK" break --json "$key" \
        >out 2>err 3>&- 4>&- &
    local pid=$!
    # It has looked at the lock before it opens the terminal to ask.
    wait_until "asks $pid"
    eval "$1"
    : >go
    status=0
    wait "$pid" || status=$?
    attempted="break, and meanwhile: $1"
    attempt_read out err
}

# asks PID: a child of that process has asked the question.
asks() {
    local child
    child=$(ps -o pid= --ppid "$1" | tr -d ' ')
    [ -n "$child" ] && find "/proc/$child/fd" -lname /dev/tty 2>/dev/null | grep -q .
}

# ------------------------------------------------------------- the outcome

@test "break of a free lock: nothing to break, 1" {
    refuses 1 'the lock is free' break --force "$key"
    tells 1 '.outcome == "free" and .owner == null' break --force --json "$key"
}

@test "--json shows what was broken" {
    take "$key" --label backup
    tells 0 '.ends_within_ms == null' break --force --json "$key" # its script learns of it by renew only
    json_is '.key == $key and .outcome == "broken" and .label == "backup" and .client == "dlock" and .held_ms >= 0'
    json_is '.owner | has("user") and has("host") and has("pid")'
    [[ $output != *"$token"* ]] || fail "the token is shown"
}

@test "break without a terminal needs --force; a late renewal does not restore a broken lock" {
    take "$key"
    refuses 64 '--force' break "$key" </dev/null
    refuses 64 '--force' break "$key" <<<y
    [ "$(rcli a get "$key")" = "$token" ]
    works break --force "$key"
    is_free "$key"
    [ "$(rcli a hget "{$key}:dlock" gone)" = "$token" ]
    refuses 1 '' renew "$key" "$token"
    is_free "$key"
}

@test "a waiter gets a broken lock" {
    take "$key" --ttl 1h
    start acquire --wait 20s "$key"
    wait_until '[ "$(rcli a zcard "{$key}:dlock:waiting")" = 1 ]'
    works break --force "$key"
    finishes_well
    [ "$(rcli a get "$key")" = "$output" ]
}

@test "break uses the prefix" {
    rcli a set "app:$key" x px 60000
    rcli a set "$key" x px 60000
    works break --force --prefix app: "$key"
    is_free "app:$key"
    is_held "$key"
}

@test "break without a node: 69; with a wrong password: 77" {
    refuses 69 '' break --force --node "$PWD/nobody" "$key"
    refuses 77 '' break --force --node "unix://:wrong@$(node a)" "$key"
}

# ------------------------------------------------------------ foreign clients

@test "break removes a foreign client's lock, whatever its token" {
    for value in x "$(printf '%0100d' 1)" $'\xff\x01binary' ''; do
        rcli a set "$key" "$value"
        works break --force "$key"
        [[ $output == *'; its client may not notice' ]]
        is_free "$key"
    done
    rcli a eval 'redis.call("set", KEYS[1], string.rep("t", 50000) .. "\0")' 1 "$key"
    works break --force "$key"
    is_free "$key"
}

@test "a foreign token that differs after its first bytes is another one" {
    begin=$(printf '%0100d' 1)
    rcli a set "$key" "${begin}a"
    at_terminal_meanwhile "rcli a set '$key' '${begin}b'"
    exits 75
    [ "$(rcli a get "$key")" = "${begin}b" ]
}

@test "break removes a lock of Redisson only if it is as it was shown" {
    rcli a hset "$key" "$redisson" 1
    at_terminal_meanwhile "rcli a hincrby '$key' $redisson 1"
    exits 75
    [[ $output == *'Redisson, thread 57'* ]] || fail "expected Redisson"
    [ "$(rcli a hget "$key" "$redisson")" = 2 ]
    at_terminal_gives 0 'Y\n' "$key"
    is_free "$key"
}

@test "a key that is too large to be a lock is not removed" {
    rcli a eval 'for i = 1, 5000 do redis.call("rpush", KEYS[1], "an element " .. i) end' 1 "$key"
    refuses 64 'too large' break --force "$key"
    [ "$(rcli a llen "$key")" = 5000 ]
    rcli a del "$key"
    rcli a eval 'redis.call("set", KEYS[1], string.rep("t", 100000))' 1 "$key"
    refuses 64 'a string that is too large' break --force "$key"
    is_held "$key"
}

# ------------------------------------------------------------- several nodes

@test "a broken lock is removed on all nodes" {
    use 5
    take "$key" --ttl 1m
    works break --force "$key"
    [[ $output == *'on 5 of 5 nodes'* ]]
    is_free_everywhere "$key" 5
}

@test "the lock of another client on a minority stays, also if a node of the majority is late" {
    use 5
    take "$key" --ttl 1m
    rcli n4 set "$key" "$OTHER_TOKEN" px 60000
    rcli n5 del "$key"
    rcli n5 hset "$key" "$redisson" 1
    redis_freeze n3
    start break --force --node-timeout 20s "$key"
    short_sleep 0.5
    redis_thaw n3
    finishes_well
    [[ $output == *'on 3 of 5 nodes'* ]]
    [ "$(holders "$key" 5)" -eq 2 ]
    [ "$(rcli n4 get "$key")" = "$OTHER_TOKEN" ]
}

@test "break removes a foreign lock on a majority, with one node down" {
    use 5
    on_all 4 set "$key" "a foreign token" px 60000
    rcli n4 set "$key" "another token" px 60000
    redis_stop n5
    works break --force "$key"
    [ "$(holders "$key" 4)" -eq 1 ]
    is_held "$key" n4
}

@test "if no holder has a majority, all are shown and broken" {
    use 5
    rcli n1 set "$key" one
    rcli n2 set "$key" one
    rcli n3 set "$key" "two"
    rcli n4 hset "$key" "$redisson" 1
    at_terminal_gives 0 'y\n' "$key"
    [ "$(grep -c "^$key: held by" <<<"$output")" -eq 3 ] || fail "expected three holders"
    is_free_everywhere "$key" 5
    for i in 1 2 3; do rcli "n$i" set "$key" "holder $i"; done
    use 3
    at_terminal_meanwhile "rcli n1 del '$key'"
    exits 0
    is_free_everywhere "$key" 3
    use 5
    take "$key" --ttl 1m
    on_all 2 del "$key"
    rcli n3 set "$key" one
    works break --force "$key"
    [[ $output == *', on '[12]' of 5 nodes, and by others; '* ]] || fail 'expected others'
    is_free_everywhere "$key" 5
}

@test "break with too few nodes: 69, and nothing is removed" {
    use 5
    take "$key" --ttl 1m
    redis_stop n1 n2 n3
    refuses 69 'no quorum' break --force "$key"
    is_held "$key" n4
}

@test "the run whose lock is broken ends its command with 76, and break says by when" {
    start_holding "$key" --ttl 12s 'exec sleep 60' # two thirds, and a round of a tenth, but of 2 s at most
    at_terminal_gives 75 'n\n' --json "$key"
    [[ $output == *'"ends_within_ms":null'* ]] || fail 'expected no end of what goes on'
    tells 0 '.ends_within_ms == 9200' break --json --force "$key"
    finishes 76
    has_ended "$command_pid"
    is_free "$key"
}

@test "break of a lock that is kept says until when it was, and that its command has ended" {
    try run --once-per 1h --label job "$key" -- true
    try break "$key" </dev/null
    fails 64 "^dlock: $key: kept until $instant \\(--once-per\\); job on .* ended [0-9.a-z]+ ago\\. Standard input"
    works break --force "$key"
    how="^$key: broken; it was kept until $instant [(]--once-per[)]; job on .* ended [0-9.a-z]+ ago\$"
    [[ $output =~ $how ]] || fail 'expected how it was'
}
