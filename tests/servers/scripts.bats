#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# The scripts of src/lua as they are: run with EVAL.

load ../lib/scripts

@test "the head of every script says how redis-cli runs it, and what it returns" {
    for file in "$top_srcdir"/src/lua/*.lua; do
        name=$(basename "$file")
        grep -q "^-- *redis-cli --eval $name {*KEY" "$file" || fail "expected a call in $name"
        grep -q '^--.*Returns' "$file" || fail "expected what it returns in $name"
    done
}

@test "all keys of a script are in KEYS, unless a line says that it makes names of keys" {
    for file in "$top_srcdir"/src/lua/*.lua; do
        ! grep -q "\.\. ':" "$file" || grep -qx -- '--!df flags=allow-undeclared-keys' "$file" || fail "$file makes a name"
    done
}

@test "the tests of the scripts run every script" {
    for file in "$top_srcdir"/src/lua/*.lua; do
        name=$(basename "$file" .lua)
        grep -qE "^ *(script|acquire) ?$name|script $name" "$BATS_TEST_DIRNAME"/scripts*.bats \
            "$BATS_TEST_DIRNAME/../lib/scripts.bash" || fail "not run: $name"
    done
}

@test "every script that dlock runs is its file without blanks and comments" {
    "$REDIS_CLI" -s "$(node a)" monitor >monitor 3>&- 4>&- &
    monitor=$!
    wait_until 'grep -q OK monitor'
    take "$key"
    dlock renew "$key" "$token"
    dlock status "$key" >out
    dlock release "$key" "$token"
    rcli a ping
    wait_until 'grep -q "\"ping\"" monitor'
    kill "$monitor"
    wait "$monitor" || true
    for file in acquire renew inspect release; do
        "$PYTHON" -c '
import re, sys
lines = [re.sub(" -- [^\x27\"]*$", "", line.strip()) for line in open(sys.argv[1])]
code = "\n".join(line for line in lines if line and not re.match("--(?!!)", line))
quoted = code.replace("\\", "\\\\").replace("\"", "\\\"").replace("\n", "\\n")
sys.exit(quoted not in open("monitor").read())' "$top_srcdir/src/lua/$file.lua" || fail "another $file.lua"
    done
}

@test "acquire.lua grants a free lock once" {
    returns 1 acquire "$one"
    [ "${lines[1]}" -gt 1000000000000000 ]
    [ "$(rcli a get "$key")" = "$one" ]
    [ "$(rcli a pttl "$key")" -le 20000 ]
    [ "$(rcli a hget "$meta" fence)" = "${lines[1]}" ]
    [ "$(rcli a pttl "$meta")" -gt 3600000 ]
    returns 0 acquire "$two"
    [ "${lines[1]}" = "$one" ]
    [ "$(rcli a get "$key")" = "$one" ]
}

# entry TOKEN NODE: acquire.lua for that one of the caller's nodes.
entry() {
    script acquire "$key" "$meta" "$meta:holds" "$meta:wake" "$meta:waiting" "$meta:history" , "$1" 20000 0 me@here:1 label 0 "$2" \
        '' w1 60000
}

@test "acquire.lua: a repeated request is granted as before, but not for another node" {
    returns 1 entry "$one" 2
    fence=${lines[1]}
    renew "$one.inner" 20000 "$fence"
    rcli a pexpire "$key" 9000
    before=$(rcli a hgetall "$meta")
    rcli a config resetstat
    entry "$one" 2
    rcli a info commandstats | grep -q 'cmdstat_pexpire:calls=1' || fail 'expected a write, which WAIT waits for'
    [ "${lines[*]}" = "1 $fence" ] || fail 'expected the same grant'
    entry "$one" 1
    [ "${lines[*]}" = '-2 2' ] || fail 'expected who has the vote'
    entry "$one" 3
    [ "${lines[*]}" = '-2 2' ] || fail 'expected who has the vote'
    # Nothing has changed, and the client does not wait for itself.
    [ "$(rcli a pttl "$key")" -le 9000 ]
    [ "$(rcli a hgetall "$meta")" = "$before" ]
    [ "$(rcli a zcard "$meta:holds")" = 2 ]
    [ "$(rcli a exists "$meta:waiting")" = 0 ]
    # A released request is not granted again.
    give_back "$one" 0 0 0 1000 1
    returns 0 entry "$one" 2
    [ "$(rcli a exists "$key")" = 0 ]
}

@test "acquire.lua: the fence is greater than the last one, near the server's time, never far ahead" {
    near=$((($(rcli a time | head -n 1) - 1000) * 1000000))
    acquire "$one" "$near"
    [ "${lines[1]}" = "$near" ]
    rcli a del "$key" "$meta"
    acquire "$one"
    before=${lines[1]}
    now=$(rcli a time | head -n 1)000000
    [ "$before" -ge $((now - 1801000000)) ]
    rcli a del "$key"
    acquire "$two" 9007199254740991
    [ "${lines[1]}" -gt "$before" ]
    [ "${lines[1]}" -le $((now + 1860000000)) ]
    rcli a del "$key"
    acquire "$one" 5
    [ "${lines[1]}" = $(($(rcli a hget "$meta" fence))) ]
    [ "${lines[1]}" -gt $((now + 1700000000)) ]
}

@test "acquire.lua loses no digit of a fence" {
    rcli a hset "$meta" fence 4503599627370497
    acquire "$one"
    [ "${lines[1]}" = 4503599627370498 ]
    [ "$(rcli a hget "$meta" fence)" = 4503599627370498 ]
}

@test "renew.lua renews for the holder only" {
    acquire "$one"
    rcli a pexpire "$key" 5000
    returns 0 renew "$two"
    [ "${lines[2]} ${lines[3]}" = '0 0' ] && [ "${lines[5]}" -gt 0 ] || fail 'expected how long another one holds it'
    [ "$(rcli a pttl "$key")" -le 5000 ]
    rcli a pexpire "$meta" 100000
    returns 1 renew "$one"
    [ "$(rcli a pttl "$key")" -gt 10000 ]
    [ "$(rcli a pttl "$meta")" -gt 3610000 ]
    rcli a pexpire "$key" 5000
    returns 1 renew "$one" 0 1
    [ "${lines[2]}" = 20000 ] && [ "$(rcli a pttl "$key")" -gt 10000 ] || fail 'expected the length of the lease'
    rcli a set "$meta" x
    returns 1 renew "$one"
    rcli a del "$key"
    returns -1 renew "$one"
    is_free "$key"
}

@test "renew.lua never shortens and never lowers the fence" {
    acquire "$one"
    fence=$(rcli a hget "$meta" fence)
    returns 1 renew "$one" 10 1
    [ "$(rcli a pttl "$key")" -gt 10000 ]
    [ "$(rcli a hget "$meta" fence)" = "$fence" ]
    renew "$one" 10 $((fence + 10000000001))
    [ "$(rcli a hget "$meta" fence)" = $((fence + 10000000001)) ]
}

@test "release.lua deletes for the holder only, and repeats a lost reply" {
    acquire "$one"
    returns 0 give_back "$two" 0
    is_held "$key"
    returns 1 give_back "$one" 0
    is_free "$key"
    returns 1 give_back "$one" 0 1
    returns -1 give_back "$one" 0
    returns -1 give_back "$two" 0
    # Others have had it since.
    for token in "$two" "$three" DDDDDDDDDDDDDDDDDDDDDD EEEEEEEEEEEEEEEEEEEEEE; do
        acquire "$token"
        give_back "$token" 0
    done
    returns 1 give_back "$one" 0 1
    returns -1 give_back "${one:0:10}XXXXXXXXXXXX" 0 1
}

@test "release.lua keeps the lock for a while, and nothing prolongs it" {
    acquire "$one"
    rcli a pexpire "$meta" 100000
    returns 1 give_back "$one" 5000 0 0 60000
    [ "$(rcli a pttl "$key")" -le 5000 ]
    [ "$(rcli a pttl "$meta")" -gt 3661000 ]
    [ "$(rcli a get "$key")" = "$one" ]
    returns 0 renew "$one"
    [ "${lines[2]} ${lines[3]}" = '1 1' ] || fail 'expected that it was released'
    [ "$(rcli a pttl "$key")" -le 5000 ]
    inspect
    [[ ${lines[12]} == [0-9]*' min-hold' ]] || fail 'expected why it is kept'
    # The server's clock was set back: it cannot have ended in the future.
    read -r _ until _ why < <(rcli a hget "$meta" keep)
    rcli a hset "$meta" keep "$one $until $(($(now_ms) + 3600000)) $why"
    acquire "$two"
    [ "${lines[12]}" = '0 min-hold' ] || fail "expected that it has just ended, not '${lines[12]}'"
    inspect
    [ "${lines[12]}" = '0 min-hold' ] || fail "expected that it has just ended, not '${lines[12]}'"
}

@test "fence.lua raises the fence for the holder only" {
    acquire "$one"
    raised=$((lines[1] + 10000000001))
    returns 1 fence "$one" "$raised"
    [ "$(rcli a hget "$meta" fence)" = "$raised" ]
    rcli a pexpire "$meta" 1000
    returns 1 fence "$one" 5
    [ "$(rcli a pttl "$meta")" -gt 3600000 ]
    [ "$(rcli a hget "$meta" fence)" = "$raised" ]
    returns 0 fence "$two" $((raised + 1))
    [ "$(rcli a hget "$meta" fence)" = "$raised" ]
}

@test "no script records a fence that is more than a day ahead of the server's clock" {
    acquire "$one"
    fence=${lines[1]}
    now=$(rcli a time | head -n 1)
    fine=$(((now + 86340) * 1000000)) far=$(((now + 86460) * 1000000))
    for n in "$far" 9007199254740990; do
        returns 2 fence "$one" "$n"
        returns 1 renew "$one" 20000 "$n"
        [ "${lines[3]}" = "$fence" ] || fail "told another fence than the recorded one"
        [ "$(rcli a hget "$meta" fence)" = "$fence" ]
        rcli a del "$key"
        returns 1 script heal "$key" "$meta" "$meta:holds" , "$one" 20000 "$n" "$((now + 60))000" me@here:1 label 3000
        [ "$(rcli a hget "$meta" fence)" = "$fence" ]
        [ "$(rcli a pttl "$meta")" -le 3620000 ] || fail "its metadata is kept for too long"
    done
    renew "$one" 20000 "$fine"
    [ "${lines[3]}" = "$fine" ]
    [ "$(rcli a hget "$meta" fence)" = "$fine" ]
    [ "$(rcli a pttl "$meta")" -gt 86400000 ]
    rcli a pexpire "$meta" 1000
    returns 1 fence "$one" $((fine + 1))
    [ "$(rcli a pttl "$meta")" -gt 86400000 ]
    rcli a pexpire "$meta" 1000
    rcli a del "$key"
    answers 1 script heal "$key" "$meta" "$meta:holds" , "$one" 20000 $((fine + 2)) "$((now + 60))000" me@here:1 label 3000
    [ "$(rcli a hget "$meta" fence)" = $((fine + 2)) ]
    [ "$(rcli a pttl "$meta")" -gt 86400000 ]
    # A server continues from its own last fence, whatever its clock shows.
    rcli a del "$key"
    acquire "$two" "$far"
    [ "${lines[1]}" = $((fine + 3)) ]
}

@test "inspect.lua reads and changes nothing" {
    returns 0 inspect
    acquire "$one"
    rcli a hgetall "$meta" >before
    inspect "$one.12345678"
    [ "${lines[1]}" = "$one" ]
    [ "${lines[2]}" -le 20000 ]
    [ "${lines[6]}" -le 20000 ]
    [ "${lines[9]} ${lines[10]} ${lines[11]} ${lines[14]}" = 'string 1 20000 0' ] || fail 'expected one hold, and no uptime'
    inspect "$two"
    [ "${lines[14]}" -ge 1 ]
    rcli a acl setuser default -info
    inspect "$two"
    rcli a acl setuser default +info
    [ "${lines[1]}" = "$one" ] || fail 'expected that it needs no INFO'
    rcli a hgetall "$meta" | diff before -
}

@test "heal.lua restores the lock on a server that lost it, once and in time" {
    late=$(($(rcli a time | head -n 1) * 1000 - 1000)) soon=$(($(rcli a time | head -n 1) * 1000 + 60000))
    heal() { script heal "$key" "$meta" "$meta:holds" , "$1" 20000 5 "$2" me@here:1 label 3000; }
    returns 0 heal "$one" "$late"
    is_free "$key"
    returns 1 heal "$one" "$soon"
    [ "$(rcli a get "$key")" = "$one" ]
    [ "$(rcli a pttl "$key")" -le 20000 ]
    [ "$(rcli a hmget "$meta" ttl owner fence)" = $'20000\nme@here:1\n5' ]
    [ "$(rcli a hget "$meta" since)" -lt $((($(rcli a time | head -n 1) - 2) * 1000)) ]
    [ "$(rcli a pttl "$meta")" -gt 3610000 ]
    heal "$two" "$soon"
    [[ $output == -[1-9]* ]] || fail "expected how long the other one holds it"
    [ "$(rcli a get "$key")" = "$one" ]
    give_back "$one" 0
    returns 0 heal "$one" "$soon"
    is_free "$key"
    rcli a hset "$meta" fence 7
    returns 1 heal "$two" "$soon"
    [ "$(rcli a hget "$meta" fence)" = 7 ] || fail 'expected that it keeps a greater fence'
}

@test "break.lua removes only what matches the fingerprint" {
    answers '' script break "$key" , ''
    rcli a set "$key" 'a foreign token'
    script break "$key" , ''
    mark=$output
    [ ${#mark} -eq 40 ] || fail "expected a mark"
    rcli a set "$key" 'another'
    returns 0 script break "$key" , "$mark"
    [ "$(rcli a get "$key")" = another ]
    rcli a set "$key" 'a foreign token' px 20000
    returns 1 script break "$key" , "$mark"
    is_free "$key"
    returns -1 script break "$key" , "$mark"
    returns 1 script break "$key" , "$mark" 1
}

@test "break.lua: the fingerprint of a key of another type covers its content, not its expiry" {
    rcli a hset "$key" 5dbf0eb8-6e4f-4a4c-9a20-fd7f0a0f7c5a:57 1
    script break "$key" , ''
    mark=$output
    rcli a pexpire "$key" 20000
    answers "$mark" script break "$key" , ''
    rcli a hincrby "$key" 5dbf0eb8-6e4f-4a4c-9a20-fd7f0a0f7c5a:57 1
    returns 0 script break "$key" , "$mark"
    is_held "$key"
    rcli a hincrby "$key" 5dbf0eb8-6e4f-4a4c-9a20-fd7f0a0f7c5a:57 -1
    returns 1 script break "$key" , "$mark"
    is_free "$key"
}

@test "break.lua does not read what is too large for a lock" {
    rcli a eval 'for i = 1, 5000 do redis.call("rpush", KEYS[1], "an element " .. i) end' 1 "$key"
    answers - script break "$key" , ''
    rcli a del "$key"
    rcli a eval 'redis.call("set", KEYS[1], string.rep("t", 50000))' 1 "$key"
    script break "$key" , ''
    [ ${#output} -eq 40 ] || fail "expected a mark"
    rcli a eval 'redis.call("set", KEYS[1], string.rep("t", 70000))' 1 "$key"
    answers - script break "$key" , ''
    returns 0 script break "$key" , 0000000000000000000000000000000000000000
}

@test "inspect.lua returns the holder of a lock of Redisson" {
    rcli a hset "$key" mode write 5dbf0eb8-6e4f-4a4c-9a20-fd7f0a0f7c5a:57:write 1
    inspect
    [ "${lines[1]}" = 5dbf0eb8-6e4f-4a4c-9a20-fd7f0a0f7c5a:57 ] || fail "expected the holder's field"
    rcli a hset "$key" 1 1 2 1 3 1 4 1 5 1 6 1 7 1 8 1
    inspect
    [ -z "${lines[1]}" ] || fail "looked into a hash of many fields"
}

@test "no script returns more than 64 bytes of a value that may be anything" {
    rcli a set "$key" "$(printf 'x%.0s' {1..100})" px 20000
    acquire "$one"
    [ ${#lines[1]} = 64 ]
    for call in "inspect $key $meta $meta:holds $meta:waiting" "slots $meta:waiting $key $meta" \
        "history $key $meta $meta:waiting $meta:history"; do
        script $call ,
        [ ${#lines[1]} = 64 ]
    done
}

@test "no script makes a key without a TTL" {
    acquire "$one"
    renew "$one" 20000 4503599627370497
    fence "$one" 4503599627370498
    give_back "$one" 0
    queue "$two" '' w1 60000
    give_back "$two" 0 0 0 60000
    # A lock of somebody else, which a caller would replace who has no place in the queue.
    rcli a set "{$key}2" foreign px 20000
    for number in -1 0; do
        [ "$(rcli a exists "{$key}2:dlock")" = 0 ] || fail 'nobody has asked it to end'
        script acquire "{$key}2" "{$key}2:dlock" "$meta:holds" "$meta:wake" "$meta:waiting" "$meta:history" , "$two" 20000 0 \
            me@here:1 label 0 0 '' w3 0 0 0 0 0 "$number"
    done
    # This one is kept for a second.
    wait_until "leave w2 1; rcli a --raw keys '*$key*' >keys; grep -q ':leave:' keys"
    grep -q ':waiting$' keys && grep -q ':wake$' keys && grep -q '2:dlock$' keys
    while IFS= read -r k; do
        [ "$(rcli a pttl "$k")" -ne -1 ] || fail "$k has no TTL" # -2: it has ended already
    done <keys
}
