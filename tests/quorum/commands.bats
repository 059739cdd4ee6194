#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# One lock over several independent nodes: what every command does where all is well, and
# which lists of nodes make no sense.

load ../lib/quorum

node_count=7

# ------------------------------------------------------------------- the commands

@test "five nodes: acquire, renew, status, release, run" {
    works acquire --ttl 20s --label backup "$key"
    token=$output
    wait_until "held_everywhere '$key' 5 '$token'"
    refuses 75 "$key: held by $(id -un)@$(uname -n):[0-9]+ \(backup\), 1[0-9.]+s of its lease left; " acquire "$key"
    on_all 5 pexpire "$key" 5000
    works renew --ttl 20s "$key" "$token"
    for name in $(node_names 5); do
        wait_until "[ \$(rcli $name pttl '$key') -gt 15000 ]"
    done
    works status "$key"
    [[ $output == *"5/5"* ]] || fail "expected 5/5"
    works release "$key" "$token"
    wait_until "free_everywhere '$key' 5"
    gives 1 status "$key"
    refuses 1 '' renew "$key" "$token"
    free_everywhere "$key" 5
    gives 3 run --ttl 20s "$key" -- sh -c 'echo "$DLOCK_TOKEN"; exit 3'
    wait_until "free_everywhere '$key' 5"
}

@test "a run renews on all nodes" {
    start_holding "$key" --ttl 3s -k 100ms 'while [ ! -e stop ]; do sleep 0.2; done'
    for name in $(node_names 5); do is_renewed "$key" "$name"; done
    alive "$bg"
    stops 0
}

@test "the list of nodes: repeated --node, blanks; the option replaces the environment" {
    for list in "$(node n1) $(node n2) $(node n3)" " $(node n1)"$'\n\t'"$(node n2)  $(node n3) "; do
        DLOCK_NODES=$list tells 0 '.nodes == 3' acquire --json "$key"
        DLOCK_NODES=$list works release "$key" "$(jq -r .token <<<"$output")"
        wait_until "free_everywhere '$key' 5"
    done
    DLOCK_NODES="$(node n4) $(node n5)" works acquire --json \
        --node "$(node n1)" -N "$(node n2)" --node="$(node n3)" "$key"
    json_is '.nodes == 3'
    is_free "$key" n4
    is_free "$key" n5
}

@test "--json of acquire shows the number of nodes and the number that granted" {
    works acquire --json --ttl 20s "$key"
    json_is '.nodes == 5 and .granted >= 3 and .granted <= 5 and (.token | length) == 22'
    # Validity is the lease less what it took, and less 1 % + 2 ms for clocks that drift.
    json_is '.ttl_ms == 20000 and .valid_ms <= 19798 and .valid_ms > 15000'
    [ "$(rcli n1 hget "{$key}:dlock" fence)" = "$(jq .fence <<<"$output")" ]
}

@test "renew without --ttl takes the shortest lease that a node knows" {
    use 3
    take_on_all 3
    rcli n1 hset "{$key}:dlock" ttl 90000 >/dev/null
    tells 0 '.ttl_ms == 30000' renew --json "$key" "$token"
}

@test "renew and release need the token that a majority has; a release also reaches the nodes beyond the majority" {
    take "$key"
    refuses 1 "held by another" renew "$key" "$OTHER_TOKEN"
    refuses 1 "held by another" release "$key" "$OTHER_TOKEN"
    wait_until "held_everywhere '$key' 5 '$token'"
    for i in 1 2 3 4 5 6 7 8 9 10; do
        dlock release "$key" "$token"
        wait_until "free_everywhere '$key' 5"
        take "$key"
    done
}

@test "a release also reaches a node whose name is resolved after the others have replied" {
    need_localhost
    redis_start_tcp tcp
    for i in 1 2 3 4 5; do
        take "$key" --node "$(node n1)" --node "$(node n2)" --node "$(node tcp)"
        wait_until "held '$key' tcp"
        works release --node "$(node n1)" --node "$(node n2)" --node "localhost:$(port_of tcp)" "$key" "$token"
        wait_until "free '$key' tcp"
    done
}

@test "--min-hold keeps the lock on all nodes, and no longer than it says" {
    works run --min-hold 6s "$key" -- true
    [ "$(holders "$key" 5)" -eq 5 ] || fail "held on $(holders "$key" 5) of 5"
    refuses 75 '' acquire "$key"
    wait_until "free_everywhere '$key' 5"
}

# ----------------------------------------------------------- numbers and twins

@test "two nodes and four: a majority is enough" {
    use 2
    tells 0 '.nodes == 2 and .granted == 2' acquire --json "$key"
    use 4
    tells 0 '.nodes == 4 and .granted >= 3' acquire --json "$key-4"
    redis_stop n1
    works acquire "$key-4b"
    redis_stop n2
    refuses 69 '2 of 4.* 3 are needed' acquire --node-timeout 2s "$key-4c"
    use 2
    refuses 69 '' acquire --node-timeout 2s "$key-2b"
    wait_until "free '$key-4c' n3 && free '$key-4c' n4"
}

@test "fifteen nodes, of which eight reply" {
    list=()
    for ((i = 1; i <= 8; i++)); do list+=(--node "$PWD/nobody-$i"); done
    redis_start n8
    for i in 1 2 3 4 5 6 7; do list+=(--node "$(node "n$i")"); done
    refuses 69 '7 of 15.* 8 are needed' acquire --node-timeout 2s "${list[@]}" "$key"
    for i in 1 2 3 4 5 6 7; do rolled_back "$key" "n$i"; done
    tells 0 '.nodes == 15 and .granted == 8' acquire --json --node-timeout 2s --node "$(node n8)" "${list[@]:2}" "$key"
}

# twins A B: each command refuses that list and names both.
twins() {
    local word command
    for command in acquire 'run KEY -- touch ran' status "renew KEY $OTHER_TOKEN" "release KEY $OTHER_TOKEN"; do
        [[ $command == *KEY* ]] || command+=' KEY'
        warns 64 '' --node "$1" --node "$(node n3)" --node "$2" ${command/KEY/$key}
        for word in "$1" "$2"; do
            [[ $stderr == *"${word#*://}"* ]] || fail "expected it to name $word"
        done
    done
    [ ! -e ran ]
}

@test "one node listed twice, also as two databases or spelled differently, is a usage error that names both" {
    twins "$(node n1)" "$(node n1)"
    is_free "$key" n1
    is_free "$key" n3
    twins "$(node n1)" "unix://$(node n1)"
    twins 127.0.0.1:7777 redis://127.0.0.1:7777/1
    twins redis://127.0.0.1:7777/1 redis://127.0.0.1:7777/2
    refuses 64 "$(node n1).* and .*$(node n1)" acquire --node "$(node n1)" --node "unix://$(node n1)?db=1" "$key"
}

# names_of_one: start a server; three names of it are in $names.
names_of_one() {
    local other
    redis_start_tcp tcp 127.0.0.1 -::1
    other="[::1]:$(port_of tcp)"
    try acquire --node "$other" "$key-other"
    [ "$status" -eq 0 ] || other="127.1:$(port_of tcp)" # a host without IPv6
    rcli tcp flushall
    names=("$(server_dir tcp)/s" "$(node tcp)" "$other")
}

# same_server NODE...: the lock is refused, the message names the nodes, and nothing is left behind.
same_server() {
    local command list=() node
    for node; do list+=(--node "$node"); done
    for command in 'acquire KEY' 'acquire --wait 60s KEY' 'run KEY -- touch ran'; do
        within 20000 try ${command%%KEY*} "${list[@]}" $key ${command#*KEY}
        fails 64 'are the same server; a quorum needs independent nodes'
        wait_until "free '$key' n3 && free '$key' tcp"
    done
    [ ! -e ran ]
}

@test "one server under several names never has two votes" {
    names_of_one
    for a in 0 1 2; do
        for b in 0 1 2; do
            [ "$a" = "$b" ] || same_server "${names[a]}" "${names[b]}"
        done
    done
    same_server "${names[@]}"
    try acquire --node "${names[0]}" --node "${names[2]}" "$key"
    [[ $stderr == *"${names[0]}"* && $stderr == *"${names[2]}"* ]] || fail "expected both names"
    # The holder of a held lock is named as usual.
    rcli tcp set "$key" "$OTHER_TOKEN" px 20000
    refuses 75 'held by' acquire --node "${names[0]}" --node "${names[1]}" "$key"
}

@test "one server under two names among others counts once" {
    names_of_one
    list=(--node "${names[0]}" --node "$(node n3)" --node "${names[1]}")
    tells 0 '.nodes == 3 and .granted == 2' acquire --json "${list[@]}" "$key"
    token=$(jq -r .token <<<"$output")
    [ "$(rcli n3 get "$key")" = "$token" ]
    refuses 75 'held by' acquire "${list[@]}" "$key"
    works renew "${list[@]}" "$key" "$token"
    works status "${list[@]}" "$key"
    works release "${list[@]}" "$key" "$token"
    wait_until "free '$key' n3 && free '$key' tcp"
    works run "${list[@]}" "$key" -- true
    # One vote is too few if the other server hangs or is down.
    redis_freeze n3
    refuses 64 'are the same server' acquire --node-timeout 2s "${list[@]}" "$key"
    redis_thaw n3
    list[3]=$PWD/nobody
    refuses 64 'are the same server' acquire "${list[@]}" "$key"
    wait_until "free '$key' n3 && free '$key' tcp"
}
