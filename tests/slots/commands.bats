#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# --slots N: what run, acquire, status and the other commands make of it, on one node.

# shellcheck disable=SC2016
load ../lib/slots

node_count=1
setup() {
    test_begin
    rcli n1 flushall >/dev/null
}

@test "a command has the number and the name of its slot, and each caller another slot" {
    works run --slots 1 "$key" -- sh -c 'echo "$DLOCK_SLOT $DLOCK_KEY $DLOCK_HOLDS"'
    [[ $output == "1 {$key}:slot-1 %7B$key%7D:slot-1="* ]] || fail 'expected slot 1'
    take_slots 3
}

@test "DLOCK_KEY has no prefix" {
    works run --slots 1 --prefix app: "$key" -- sh -c 'echo "$DLOCK_KEY"; "$DLOCK" status --json --prefix app: "$DLOCK_KEY" | jq -r .key'
    prints "{$key}:slot-1"$'\n'"{$key}:slot-1"
    held "app:{$key}:slot-1:dlock" n1
}

@test "a KEY whose braces are no hash tag before or in it: 64" {
    refuses 64 '^dlock: a[{]b: --slots needs a KEY without braces, or with a hash tag before or in it$' run --slots 2 'a{b' -- true
    refuses 64 '--slots needs a --prefix without braces, or with a hash tag' run --slots 2 --prefix '{app' job -- true
}

@test "a KEY has at most 500 bytes, also behind the longest prefix" {
    local k prefix
    k=$(printf 'k%.0s' {1..500})
    prefix=$(printf 'p%.0s' {1..512})
    works run --slots 64 --prefix "$prefix" "$k" -- sh -c 'echo "${#DLOCK_KEY}:${DLOCK_KEY##*:}"'
    [[ $output =~ ^5(09:slot-[1-9]|10:slot-[1-6][0-9])$ ]] || fail 'expected the whole name'
    refuses 64 'KEY has 501 bytes; with --slots it must have 1 to 500' run --slots 2 "k$k" -- true
}

@test "1 to 64 slots, from the command line and the environment" {
    local n
    for n in 0 65 -1 x '' 1.5 ' 3' 3x 99999999999999999999; do
        refuses 64 "invalid number of slots '${n//./[.]}'; use 1 to 64" run --slots="$n" "$key" -- true
    done
    DLOCK_SLOTS=65 refuses 64 "DLOCK_SLOTS: invalid number of slots '65'; use 1 to 64" run "$key" -- true
    DLOCK_SLOTS=1 outputs "{$key}:slot-1" run "$key" -- sh -c 'echo "$DLOCK_KEY"'
}

@test "what --slots does not go with: 64" {
    refuses 64 '--slots needs --export, --json or --keep: a token alone does not name the slot' acquire --slots 2 "$key"
    refuses 64 '--token and --slots cannot be used together' run --slots 2 --token "$OTHER_TOKEN" "$key" -- true
    refuses 64 '--slots needs a KEY' status --slots 2
    refuses 64 '--slots needs a KEY, not a PATTERN' status --slots 2 'job*'
    refuses 64 "--max-age and --slots cannot be used together; name a slot, as in '[{]KEY[}]:slot-1'" status --slots 2 --max-age 1h "$key"
    refuses 64 '--slots is not an option of release' release --slots 2 "$key"
    [ "$(rcli n1 dbsize)" -eq 0 ]
}

@test "all slots are held: 75, and the message names the holder whose lease ends first" {
    local who
    who="$(id -un)@$(uname -n):[0-9]+"
    take_slot 2 --ttl 60s --label late
    take_slot 2 --ttl 20s --label early
    refuses 75 "^dlock: $key: all 2 slots are held; the first to end is held by $who \\(early\\), (20|1[0-9])[.][0-9]s of its lease left; held since .*" \
        run --slots 2 "$key" -- true
    stalls_note
    try run --slots 2 --wait 300ms "$key" -- true
    waited_in_vain 75 'waited [0-9.]+m?s$'
    [[ $stderr == *": waiting; all 2 slots are held; the first to end is held by "*"(early)"* ]] || fail 'expected whom it waits for'
    rcli n1 del "{$key}:slot-2" >/dev/null
    take_slot 2
    [ "$slot" = 2 ] || fail "expected the one that is free, not $slot"
    # A lock without an expiry is the last to end.
    rcli n1 set "{$key}:slot-1" another >/dev/null
    refuses 75 "the first to end is held by $who, " run --slots 2 "$key" -- true
}

@test "a lock of KEY excludes no slot, and a lock with the name of a slot does" {
    take "$key"
    works run --slots 1 "$key" -- true
    take "{$key}:slot-1"
    refuses 75 "^dlock: $key: the only slot is held by .* of its lease left; held since .*, from acquire\$" run --slots 1 "$key" -- true
    gives 9 run --slots 1 -E 9 "$key" -- true
}

@test "JSON of run, acquire and --report has the slot, its name and how many there are" {
    tells 0 '.key == "{\($key)}:slot-1" and .slot == 1 and .slots == 1' acquire --json --slots 1 "$key"
    gives 75 run --json --slots 1 "$key" -- true
    json_is '.outcome == "held" and .key == $key and .slot == null and .slots == 1 and .holder.ttl_ms > 0'
    works run --slots 2 --report report "$key" -- true
    jq -e --arg key "$key" '.outcome == "ran" and .key == "{\($key)}:slot-2" and .slot == 2 and .slots == 2' report || fail "$(cat report)"
}

@test "--export sets both names, in sh and fish" {
    local shell
    for shell in sh fish; do
        command -v "$shell" >/dev/null || must_run "$shell is not installed"
        echo 'eval "$($DLOCK acquire --slots 1 --export $key)"' >script
        [ "$shell" = sh ] || echo 'eval ($DLOCK acquire --slots 1 --export=fish $key)' >script
        echo '$DLOCK renew $DLOCK_KEY; echo "$DLOCK_SLOT $DLOCK_KEY"; $DLOCK release $DLOCK_KEY' >>script
        key=$key passes "$shell" script
        prints "1 {$key}:slot-1"
        is_free "{$key}:slot-1" n1
    done
    take_slots 1
    gives 75 acquire --no-wait --slots 1 --export "$key"
    [[ $output == *'unset DLOCK_SLOT;'* ]] || fail 'expected that no slot is left'
}

@test "--keep keeps the slot, and frees it" {
    key=$key attempt sh -c 'token=$("$DLOCK" acquire --slots 1 --ttl 6s --keep $$ "$key") && "$DLOCK" status --json --slots 1 "$key"'
    succeeds
    json_is '.key == "{\($key)}:slot-1" and .state == "held"'
    wait_until "free '{$key}:slot-1' n1"
}

@test "status --slots: a line for each slot, free ones too; 1 if one is free, WAITING is that of all" {
    gives 1 status --slots 2 "$key"
    [[ ${#lines[@]} -eq 3 && ${lines[1]} == "{$key}:slot-1  free"* && ${lines[2]} == "{$key}:slot-2  free"* ]] || fail 'expected two'
    take_slots 2
    works status --slots 2 "$key"
    queue_for 2 3
    works status --slots 2 --json "$key"
    [ "$(jq -c '[.key, .state, .waiting]' <<<"$output" | paste -sd ' ')" = \
        "[\"{$key}:slot-1\",\"held\",3] [\"{$key}:slot-2\",\"held\",3]" ] || fail 'expected both, and three who wait'
    gives 1 status --slots 3 "$key"
    works status --slots 2 --waiters --json "$key"
    [ "$(jq .owner.pid <<<"$output" | paste -sd ' ')" = "${waiter[*]}" ] || fail 'expected them in their order'
    works status --slots 2 --prometheus "$key"
    [[ $output == *"dlock_held{key=\"{$key}:slot-2\"} 1"* && $output == *"dlock_waiters{key=\"{$key}:slot-1\"} 3"* ]] || fail 'expected metrics'
    gives 0 status "{$key}:slot-*"
    [ "${#lines[@]}" -eq 3 ]
    end_process "${waiter[@]}"
}

@test "DLOCK_KEY with renew, release, break and history needs no option" {
    take_slot 1 --ttl 5s
    works renew --ttl 60s "$name" "$token"
    [ "$(rcli n1 pttl "$name")" -gt 50000 ]
    works release "$name" "$token"
    is_free "$name" n1
    start_holding "$key" --slots 1 --ttl 3s 'sleep 60'
    works break --force "$name"
    stalls_note
    loses
    works history --json "$name"
    [ "$(jq -r .outcome <<<"$output" | paste -sd ' ')" = 'broken released' ] || fail 'expected both'
}

@test "nested: a further slot, and 64 once this process has all of them" {
    outputs 2 run --slots 2 "$key" -- "$DLOCK" run --slots 2 "$key" -- sh -c 'echo "$DLOCK_HOLDS" | wc -w'
    gives 64 run --slots 1 "$key" -- "$DLOCK" run --slots 1 --wait 20s "$key" -- true
    complains 'this process is in the only slot already, and would wait for itself'
    gives 64 run --slots 2 "$key" -- "$DLOCK" run --slots 2 "$key" -- "$DLOCK" run --slots 2 --wait 20s "$key" -- true
    complains 'this process is in all 2 slots already, and would wait for itself'
    outputs 2 run --slots 1 "$key" -- "$DLOCK" run --slots 2 "$key" -- sh -c 'echo "$DLOCK_SLOT"'
    works run --slots 1 "$key" -- sh -c '"$DLOCK" run "$DLOCK_KEY" -- true' # enters it again, as any lock
}

@test "a script that has released its slot, and still has its variables, may take one again" {
    eval "$(dlock acquire --slots 1 --export "$key")"
    gives 64 run --slots 1 "$key" -- true
    works release "$DLOCK_KEY"
    works run --slots 1 "$key" -- true
}

# ---------------------------------------------------------------- what the tests of consul lock -n and of Redisson check

@test "an operator deletes a slot: its command ends, the others run on, and the slot is free" {
    local first name
    start_holding "$key" --slots 2 --ttl 3s 'echo "$DLOCK_KEY" >name; exec sleep 60'
    first=$bg
    name=$(cat name)
    start_holding "$key" --slots 2 --ttl 3s 'while [ ! -e stop ]; do sleep 0.2; done'
    rcli n1 del "$name" >/dev/null
    finishes 76 "$first"
    outputs "$name" run --slots 2 "$key" -- sh -c 'echo "$DLOCK_KEY"'
    stops 0
}

@test "a slot that has expired: its token neither renews nor releases it, nor that of the next holder" {
    local old next
    take_slot 1
    old=$token
    rcli n1 pexpire "$name" 1 >/dev/null
    wait_until 'free "$name" n1'
    gives 1 release "$name" "$old"
    take_slot 1
    next=$token
    gives 1 renew "$name" "$old"
    gives 1 release "$name" "$old"
    [ "$(rcli n1 get "$name")" = "$next" ]
    works release "$name" "$next"
    gives 1 release "$name" "$next"
}
