#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# --slots N on ZooKeeper: the leases, the mutex before them, and what the commands make of both.

# shellcheck disable=SC2016
load ../lib/zookeeper
load ../lib/slotted

setup_file() { zk_start --sync 40; }
setup() {
    zk_begin
    queue_of=$key/locks
}

uuid='[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}'

# nothing_is_left: no lease, and nobody in the mutex.
nothing_is_left() {
    wait_until '[ -z "$(leases)" ]' || fail "leases: $(leases)"
    zk_is_free "$key/locks"
}

@test "each caller has another slot, whose lease names its number, and the fence is its czxid" {
    local name fence
    works run --slots 1 "$key" -- sh -c 'echo "$DLOCK_SLOT $DLOCK_KEY $DLOCK_HOLDS"'
    [[ $output == "1 $key/leases/slot-1 $key/leases/slot-1="* ]] || fail 'expected slot 1'
    nothing_is_left
    take_slots 3
    [ "$(leases | grep -cE "^_c_$uuid-lease-[0-9]{10}\$")" -eq 3 ] || fail "leases: $(leases)"
    zk_is_free "$key/locks"
    fence=$(dlock status --json "$key/leases/slot-2" | jq .fence)
    for name in $(leases); do
        zk_ask 1 stat "$chroot/$key/leases/$name" | cut -d ' ' -f 1
    done | grep -qx "$fence" || fail "no lease was made by the transaction $fence"
}

@test "a free slot costs four transactions, and nothing more than a lock while it is held" {
    zk_ask 1 create "$chroot/$key/locks/stays" ''
    zk_ask 1 create "$chroot/$key/leases/stays" ''
    requests_reset
    works run --slots 1 "$key" -- true
    wait_until '[ "$(requests closeSession)" -eq 1 ]'
    # The entry in the mutex, the lease, its number together with the end of the mutex, and its end.
    [ "$(requests multi)" -eq 4 ] || fail "$(requests multi) transactions"
    [ "$(requests connect)" -eq 1 ]
    [ "$(requests)" -le 13 ] || fail "$(requests) requests: $(tail -n 20 "$zk_dir/requests")"
}

@test "all slots are held: 75, and the message names the holder whose lease ends first" {
    take_slot 3 --ttl 25s --label late
    take_slot 3 --ttl 15s --label early
    take_slot 3 --ttl 25s --label last
    refuses 75 "^dlock: $key: all 3 slots are held; the first to end is held by .* \(early\), 1[0-9][.][0-9]s of its lease left" \
        run --slots 3 "$key" -- true
    within 12000 refuses 75 'waited [0-9.]+m?s$' run --slots 3 --wait 2s "$key" -- true
    at_least 2000
    dlock release "$name" "$token"
    tells 0 '.key == "\($key)/leases/slot-3" and .slot == 3 and .slots == 3' acquire --json --slots 3 "$key"
}

@test "those who wait are served in order, each with the slot that was released" {
    take_slots 3
    queue_for 3 4
    end_slot 2
    for bg in "${waiter[@]}"; do finishes 0 "$bg" 60; done
    served_are 1 2 3 4
    [ "$(cut -d ' ' -f 2 served | sort -u)" = 2 ] || fail 'expected that all had slot 2'
    end_slot 1
    end_slot 3
    nothing_is_left
}

@test "the time of a wait is not that of a hold" {
    local option
    for option in '' '--slots 1'; do
        json=$(dlock acquire --json $option "$key")
        start run --wait 60s $option "$key" -- sh -c 'echo "$DLOCK_KEY" >name.new; mv name.new name
            until [ -e stop ]; do sleep 0.2; done'
        wait_until "grep -q waiting 'bg.$bg_count.err'"
        sleep 1
        start=$(now_ms)
        dlock release "$(jq -r .key <<<"$json")" "$(jq -r .token <<<"$json")"
        # The server that is asked may learn of it a little later than that of the holder.
        wait_until '[ -e name ] && held=$(dlock status --json "$(<name)" | jq .held_ms) &&
            [ "$held" -le $(($(now_ms) - start)) ]'
        touch stop
        finishes 0
        rm stop name
    done
}

@test "callers with different numbers: each waits until no more than its own are held" {
    take_slots 2
    refuses 75 'the only slot is held by' run --slots 1 "$key" -- true
    outputs 3 run --slots 3 "$key" -- sh -c 'echo "$DLOCK_SLOT"'
    # One that waits has a lease, too, which is no slot.
    start run --slots 1 --wait 60s "$key" -- true
    wait_until '[ "$(leases | wc -l)" -eq 3 ]'
    refuses 75 'a slot may be free, but another client has the mutex' run --slots 3 --node-timeout 1s "$key" -- true
    terminate
    end_slot 1
    refuses 75 'the only slot is held by' run --slots 1 "$key" -- true
    outputs 1 run --slots 2 "$key" -- sh -c 'echo "$DLOCK_SLOT"'
}

@test "a waiter that is killed or gives up is no lease for long, and the next one is served" {
    take_slots 1
    queue_for 1 3 --ttl 3s
    end_process "${waiter[0]}" # it had the mutex, and a lease
    terminate "${waiter[1]}"
    wait_until '[ "$(leases | wc -l)" -eq 2 ]' 20 || fail "leases: $(leases)"
    end_slot 1
    finishes 0 "${waiter[2]}" 60
    nothing_is_left
}

@test "a holder that was killed: its slot is free when its session ends" {
    start_holding "$key" --slots 2 --ttl 2s 'sleep 60'
    end_process "$bg"
    take_slot 2
    outputs 1 run --slots 2 --wait 30s "$key" -- sh -c 'echo "$DLOCK_SLOT"'
}

@test "renew, release, break and status with the name of a slot; a token is that of its slot" {
    take_slots 2
    works renew "$key/leases/slot-2" "${tokens[2]}"
    gives 1 release "$key/leases/slot-1" "${tokens[2]}"
    works break --force "$key/leases/slot-1"
    gives 1 renew "$key/leases/slot-1" "${tokens[1]}"
    complains 'broken by' # the node that says so is there while another slot is held
    works release "$key/leases/slot-2" "${tokens[2]}"
    gives 1 status "$key/leases/slot-2"
    start_holding "$key" --slots 2 'sleep 60'
    works break --force "$key/leases/slot-1"
    within 3000 finish # its next renewal comes up to 6.7 s later
    exits_76_or_killed
    nothing_is_left
}

@test "two slots are broken at a time: both are free" {
    take_slots 2
    zk rules hold:multi@1
    requests_reset
    start break --force "$(slot_name 1)"
    wait_until '[ "$(requests exists)" -ge 1 ]'
    works break -N "zk://127.0.0.1:${zk_direct[0]}$chroot" --force "$(slot_name 2)"
    zk rules
    finishes 0
    nothing_is_left
}

@test "status --slots has a line for each slot, also free ones; a list has those that are held; --max-waiters counts the mutex" {
    take_slot 3
    gives 1 status --slots 2 "$key"
    [[ ${#lines[@]} -eq 3 && ${lines[1]} == "$key/leases/slot-1  held"* && ${lines[2]} == "$key/leases/slot-2  free"* ]] || fail 'expected two'
    take_slot 3
    queue_for 2 2
    works status --slots 2 --json "$key"
    [ "$(jq -c '[.state, .waiting]' <<<"$output" | paste -sd ' ')" = '["held",2] ["held",2]' ] || fail 'expected both, and two who wait'
    works status --slots 2 --waiters --json "$key"
    [ "$(jq .owner.pid <<<"$output" | paste -sd ' ')" = "${waiter[*]}" ] || fail 'expected them in their order'
    works status --json
    [ "$(jq -r .key <<<"$output" | paste -sd ' ')" = "$key/leases/slot-1 $key/leases/slot-2" ] || fail 'expected the slots alone'
    works status "$key/leases/slot-[2-9]"
    [ "${#lines[@]}" -eq 2 ]
    within 5000 refuses 75 '2 wait already \(--max-waiters 2\)' run --slots 2 --wait 60s --max-waiters 2 "$key" -- true
    end_process "${waiter[@]}"
}

@test "names: 64 for a plain lock with that of a slot, and for a KEY whose slots could have no name" {
    refuses 64 'this is the name of a slot; use --slots' run "$key/leases/slot-1" -- true
    refuses 64 'this is the name of a slot; use --slots' acquire "$key/leases"
    refuses 64 '--slots needs a KEY that does not end in a slash, nor as that of a slot' run --slots 2 "$key/" -- true
    refuses 64 'nor as that of a slot' run --slots 2 "$key/leases/slot-1" -- true
    refuses 64 'KEY has 491 bytes; with --slots it must have 1 to 490' run --slots 2 "$(printf 'k%.0s' {1..491})" -- true
    works run --slots 64 --prefix "$(printf 'p%.0s' {1..512})" "$(printf 'k%.0s' {1..490})" -- sh -c 'echo "${#DLOCK_KEY}"'
    prints 504
}

@test "nested: a further slot, its own lock again, and 64 once this process has all of them" {
    outputs 2 run --slots 2 "$key" -- "$DLOCK" run --slots 2 "$key" -- sh -c 'echo "$DLOCK_HOLDS" | wc -w'
    gives 64 run --slots 2 "$key" -- "$DLOCK" run --slots 2 "$key" -- "$DLOCK" run --slots 2 --wait 20s "$key" -- true
    works run --slots 1 "$key" -- sh -c '"$DLOCK" run "$DLOCK_KEY" -- "$DLOCK" status --json "$DLOCK_KEY"'
    json_is '.holds == 2'
}

@test "--keep, --min-hold and --export with a slot" {
    key=$key attempt sh -c 'token=$("$DLOCK" acquire --slots 1 --keep $$ "$key") && "$DLOCK" status --json --slots 1 "$key"'
    succeeds
    json_is '.state == "held"'
    works run --slots 1 --wait 30s --min-hold 6s "$key" -- true
    stalls_note
    try run --slots 1 "$key" -- true
    waited_in_vain 75 'kept until .* \(--min-hold\)'
    works run --slots 1 --wait 30s "$key" -- sh -c 'sleep 1; "$DLOCK" status --json --slots 1 "$0"' "$key"
    json_is '.held_ms >= 900 and .held_ms < 4000' # since it was granted, not since it came
    key=$key attempt sh -c 'eval "$("$DLOCK" acquire --slots 1 --export "$key")"; "$DLOCK" renew "$DLOCK_KEY" && "$DLOCK" release "$DLOCK_KEY"'
    succeeds
    nothing_is_left
}

@test "slots that are kept end a wait only if all are, and none is free" {
    export DLOCK_TTL=30s
    take_slot 2
    works run --slots 2 --min-hold 29s "$key" -- true
    start run --slots 2 --wait 15s "$key" -- true
    wait_until "grep -q waiting 'bg.$bg_count.err'"
    zk_ask 1 create "$chroot/$key/locks/x-12345-0000000000" '' # before the next one
    dlock release "$name" "$token"
    finishes 0
    start run --slots 2 --wait 15s --min-hold 29s "$key" -- true
    wait_until "grep -q waiting 'bg.$bg_count.err'"
    zk_ask 1 delete "$chroot/$key/locks/x-12345-0000000000"
    finishes 0
    within 8000 refuses 75 'kept until' run --slots 2 --wait 10s "$key" -- true
}

@test "twelve contenders with three slots: never a fourth, and fences that grow in each slot" {
    local i
    for i in {1..12}; do
        start run --slots 3 --wait 60s "$key" -- sh -c "$in_slot" sh 3
        waiter[i]=$bg
    done
    for i in {1..12}; do finishes 0 "${waiter[i]}" 60; done
    no_overlap
    [ "$(wc -l <ran)" -eq 12 ]
    nothing_is_left
}

@test "the leader is killed while slots are held and waited for: nobody loses its slot or its place" {
    hold_beating --slots 1 --ttl 20s
    queue_for 1 2
    zk_roles
    zk kill "$leader"
    stays_held 1
    zk start "$leader"
    stops 0 "$holder"
    for bg in "${waiter[@]}"; do finishes 0 "$bg" 60; done
    served_are 1 2
}

@test "leases with any data are counted; one that is not of dlock is shown as foreign" {
    local junk i=0
    zk_ask 1 create "$chroot/$key/locks/x-12345-0000000000" '' # without any lease
    refuses 75 'another client has the mutex' run --slots 2 --node-timeout 1s "$key" -- true
    refuses 75 "^dlock: $key: a slot may be free" run --slots 2 --wait 1s --max-waiters 1 "$key" -- true
    zk_ask 1 delete "$chroot/$key/locks"
    for junk in '' 'dlock 1' $'dlock 1\nslot 99999999999999999999\n' $'dlock 1\nslot 65\n' "$(printf 'x%.0s' {1..5000})"; do
        i=$((i + 1))
        zk_ask 1 create "$chroot/$key/leases/_c_00112233-4455-6677-8899-aabbccddeef$i-lease-000000000$i" "$junk"
    done
    zk_ask 1 owned "$chroot/$key/leases/_c_00112233-4455-6677-8899-aabbccddeeff-lease-0000000009" me:secret # not to be read
    gives 1 status --slots 6 --json "$key"
    [ "$(jq -r .state <<<"$output" | sort | uniq -c | tr -s ' ' | paste -sd ,)" = ' 5 foreign, 1 free' ] || fail 'expected five and one that waits'
    refuses 75 'all 5 slots are held' run --slots 5 "$key" -- true
    outputs 1 run --slots 7 "$key" -- sh -c 'echo "$DLOCK_SLOT"'
    take_slot 7 --label ours # the only one whose end is known
    refuses 75 'the first to end is held by .*\(ours\)' run --slots 6 "$key" -- true
    for i in 1 2; do # both name one slot: it is that of the first
        zk_ask 1 create "$chroot/$key/twice/leases/x-1-000000000$i" $'dlock 1\nslot 1\nlabel '"$i"$'\n'
    done
    works status --json "$key/twice/leases/slot-1"
    json_is '.label == "1"'
}
