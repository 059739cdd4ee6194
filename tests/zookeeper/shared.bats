#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# --shared on ZooKeeper: readers together, a writer alone, all in one queue.

# shellcheck disable=SC2016
load ../lib/zookeeper

setup_file() { zk_start --sync 40; }

# readers COUNT [ARG...]: so many take $key by acquire; their tokens are in $tokens.
readers() {
    local i
    tokens=()
    for ((i = 0; i < $1; i++)); do
        take "$key" --shared "${@:2}"
        tokens[i]=$token
    done
}

# wait_in_line KIND...: a waiter of each kind, r or w, in this order; they write what they are to "served".  A reader is in
# as long as there is the file "stay".  Their pids are in $waiter.
wait_in_line() {
    local kind count
    waiter=()
    for kind; do
        count=$(zk_ask 1 children "$chroot/$key" | grep -cE -e '-lock-|__READ__')
        if [ "$kind" = r ]; then
            start run --wait 60s --shared "$key" -- sh -c 'echo r >>served; while [ -e stay ]; do sleep 0.2; done'
        else
            start run --wait 60s "$key" -- sh -c 'echo w >>served'
        fi
        waiter+=("$bg")
        wait_until "[ \"\$(zk_ask 1 children '$chroot/$key' | grep -cE -e '-lock-|__READ__')\" -gt $count ]" 20
    done
}

@test "readers hold a lock together; its state, and the refusal of a writer" {
    readers 3 --label report
    status_is '.state == "shared" and .holders == 3 and .label == "report" and .waiting == 0'
    works run --shared --min-hold 20s "$key-kept" -- true
    tells 0 '.state == "kept"' status --json "$key-kept"
    take "$key-kept" --shared
    tells 0 '.state == "shared" and .holders == 2' status --json "$key-kept"
    works status "$key"
    [[ ${lines[1]} =~ ^$key\ +shared\ .*\ \+2\ +report ]] || fail 'expected two more'
    refuses 75 "^dlock: $key: shared by 3 readers, the first was .* \(report\), [12]?[0-9][.][0-9]s of the lease left; held since" run "$key" -- true
    zk_ask 2 children "$chroot/$key" >names
    [ "$(wc -l <names)" -eq 6 ]
    [ "$(grep -cE '^_c_.{36}-(__READ__|__rlock__)[0-9]{10}$' names)" -eq 6 ] || fail "names: $(cat names)"
    works release "$key" "${tokens[0]}"
    status_is '.state == "shared" and .holders == 2'
    works renew "$key" "${tokens[1]}"
    works release "$key" "${tokens[2]}"
    works release "$key" "${tokens[1]}"
    zk_is_free "$key"
}

@test "the order is kept: readers that stand together enter together, those behind a writer after it" {
    take "$key"
    : >stay
    wait_in_line r r w r r
    dlock release "$key" "$token"
    wait_until '[ -e served ] && [ "$(wc -l <served)" -eq 2 ]'
    status_is '.state == "shared" and .holders == 2 and .waiting == 3'
    refuses 75 'shared by 2 readers, .* of the lease left, and a writer waits' run --shared "$key" -- true
    works status --waiters --json "$key"
    [ "$(jq .owner.pid <<<"$output" | paste -sd ' ')" = "${waiter[*]:2}" ] || fail 'expected three'
    rm stay
    for bg in "${waiter[@]}"; do finishes 0 "$bg" 60; done
    [ "$(paste -sd ' ' served)" = 'r r w r r' ] || fail "served: $(cat served)"
}

@test "a writer that gives up lets the readers in that stood behind it" {
    readers 1
    : >stay
    DLOCK_TTL=6s wait_in_line w w r w r
    requests_reset
    terminate "${waiter[1]}"
    wait_until '[ "$(requests getChildren2)" -ge 1 ]' # the reader behind it looks for the other writer
    short_sleep 0.3
    [ ! -e served ] || fail 'a reader passed a writer'
    terminate "${waiter[0]}"
    wait_until '[ -e served ]'
    [ "$(wc -l <served)" -eq 1 ] || fail 'a reader passed a writer'
    end_process "${waiter[3]}"
    rm stay
    finishes 0 "${waiter[2]}" 60
    finishes 0 "${waiter[4]}" 60
    dlock release "$key" "${tokens[0]}"
}

@test "break ends all readers; the fence of a reader lies between those of the writers before and after" {
    local fences=() option
    for option in '' --shared ''; do
        fences+=("$(dlock run $option "$key" -- sh -c 'echo $DLOCK_FENCE')")
    done
    [ "${fences[0]}" -lt "${fences[1]}" ] && [ "${fences[1]}" -lt "${fences[2]}" ] || fail "fences: ${fences[*]}"
    readers 1
    start run --shared "$key" -- sh -c 'echo >inside; sleep 60'
    wait_until '[ -e inside ]'
    works break --force "$key"
    loses
    gives 1 renew "$key" "${tokens[0]}"
    zk_is_free "$key"
}

@test "nested: a reader enters the lock of its process; nothing exclusive is waited for within a shared one" {
    local json='"$DLOCK" status --json "$DLOCK_KEY"'
    tells 0 '.state == "shared" and .holders == 1' run --shared "$key" -- "$DLOCK" run --shared "$key" -- sh -c "$json"
    works run "$key" -- "$DLOCK" run --shared "$key" -- "$DLOCK" run "$key" -- sh -c "$json"
    json_is '.state == "held" and .holds == 3'
    gives 64 run --shared "$key" -- "$DLOCK" run --wait 20s "$key" -- true
    complains 'this process holds it shared; it cannot become exclusive'
    readers 1
    refuses 64 'this process holds it shared' run --token "${tokens[0]}" "$key" -- true
    works run --shared --token "${tokens[0]}" "$key" -- true
}

@test "a reader that was killed: a writer comes in when its session has ended" {
    start_holding "$key" --shared --ttl 2s 'sleep 60'
    end_process "$bg"
    readers 1
    start_next
    dlock release "$key" "${tokens[0]}"
    finishes 0 "$next" 60
}

@test "sixteen readers and writers: a writer is alone" {
    local i option reads writes pids=()
    reads='mkdir "in.$$"; [ ! -e writing ] || echo "a writer beside a reader" >>overlaps; sleep 0.05; rmdir "in.$$"; echo >>ran'
    writes='mkdir writing || echo "two writers" >>overlaps; ! ls -d in.* || echo "readers beside a writer" >>overlaps
        sleep 0.02; rmdir writing; echo >>ran'
    for i in {1..16}; do
        if [ $((i % 4)) -eq 0 ]; then
            start run --wait 60s "$key" -- sh -c "$writes"
        else
            start run --wait 60s --shared "$key" -- sh -c "$reads"
        fi
        pids+=("$bg")
    done
    for bg in "${pids[@]}"; do finishes 0 "$bg" 60; done
    [ ! -e overlaps ] || fail "$(cat overlaps)"
    [ "$(wc -l <ran)" -eq 16 ]
    [ "$(cut -d ' ' -f 1 "$zk_dir/requests" | sort -u | wc -l)" -ge 2 ] || fail 'all use one server'
    zk_is_free "$key"
}
