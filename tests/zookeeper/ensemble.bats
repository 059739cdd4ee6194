#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# The ensemble and its locks as a user meets them: URLs, chroots, keys, passwords, servers that are down, status, doctor.

load ../lib/zookeeper

setup_file() { zk_start --sync 40; }

# finds CHECK... RESULT: some finding of the last run that matches.
finds() { jq -s -e "any(.[]; $1)" <<<"$output" >/dev/null || fail "expected a finding: $1"; }

# ---------------------------------------------------------------- status

@test "status shows whether a lock is held, by whom, for how long, and how many wait" {
    gives 1 status "$key"
    status_is '.state == "free"'
    start_holding "$key" --label 'weekly report' 'while [ ! -e stop ]; do sleep 0.2; done'
    holder=$bg
    start run --wait 30s "$key" -- true
    queue_length_is 2
    status_is ".state == \"held\" and .label == \"weekly report\" and .waiting == 1 and .ttl_ms >= 0 and .ttl_ms <= 20000 and
        .held_ms >= 0 and .held_ms < 20000 and (.fence | type) == \"number\" and .owner.pid == $holder and
        .owner.host == \"$(uname -n)\" and (.nodes | length) == 1 and (.token_hint | length) == 4"
    token_of_command
    [[ $output != *"$token"* ]]
    works status "$key"
    [[ ${lines[1]} =~ ^"$key "+"held "+.*" $(id -un)@$(uname -n):"[0-9]+" "+"weekly report "+.*" 1 "+"1/1"$ ]] ||
        fail "expected a row"
    stops 0 "$holder"
}

@test "status lists locks below the chroot, by pattern and prefix" {
    silently status --json # there is no chroot yet
    for k in "$key" "$key/b" 'x y' 'per%cent' $'a\x01b'; do take "$k"; done
    zk_ask 1 create "$chroot/empty" ''
    zk_ask 1 owned "$chroot/unread" me:secret
    works status --json
    jq -s -e --arg key "$key" '[.[].key] | sort == (["\u0001"|"a"+.+"b", $key, $key + "/b", "per%cent", "x y"] | sort)' \
        <<<"$output" || fail "expected the keys"
    try status --json "$key*"
    [ "$(jq -r .key <<<"$output" | sort | paste -sd ' ')" = "$key $key/b" ] || fail "expected two"
    try status --json "/$key*"
    [ "$(jq -r .key <<<"$output" | sort | paste -sd ' ')" = "/$key /$key/b" ] || fail "expected two with slashes"
    for pattern in 'x?y' 'x\ ?'; do
        try status --json "$pattern"
        [ "$(jq -r .key <<<"$output")" = 'x y' ] || fail "$pattern"
    done
    try status --json --prefix "$key/" '*'
    [ "${#lines[@]}" -eq 1 ] || fail "expected one"
    silently status --json 'nothing*'
}

@test "status of more locks, and of more waiters, than are asked at once" {
    zk_ask 1 create "$chroot/$key" '' $(seq -f x-1-%010g 150) $(seq -f n%g 150) $(seq -f n%g/x-1-0000000001 150)
    works status --json --waiters "$key"
    [ "${#lines[@]}" -eq 149 ]
    works status --json
    [ "${#lines[@]}" -eq 151 ]
}

@test "keys that end in ten digits are listed, and their parents are no locks" {
    for k in "$key/1700000000" "$key/job-2026112212" 1700000000; do take "$k"; done
    try status --json
    [ "$(jq -r .key <<<"$output" | paste -sd ' ')" = "1700000000 $key/1700000000 $key/job-2026112212" ] ||
        fail 'expected three'
    gives 1 status "$key"
    take "$key"
    status_is '.waiting == 0'
}

@test "a KEY whose last part looks like a waiter does not bar the KEY above it" {
    for below in job-0000000000 0000000001 x-0000000000; do
        take "$key/$below"
        token_below=$token
        gives 1 status "$key"
        take "$key"
        status_is '.waiting == 0'
        refuses 75 'held by' run "$key" -- true
        works break --force "$key"
        works status "$key/$below"
        dlock release "$key/$below" "$token_below"
    done
}

@test "status shows a foreign holder as such" {
    for name in _c_00112233-4455-6677-8899-aabbccddeeff-lock- _c_00112233445566778899aabbccddeeff-lock- \
        00112233445566778899aabbccddeeff__lock__ x-12345-; do
        lock=$key-${name:0:5}${#name}
        zk_ask 1 create "$chroot/$lock/${name}0000000000" 'somebody'
        tells 0 '.state == "foreign"' status --json "$lock"
        refuses 75 '' acquire "$lock"
        works break --force "$lock"
        [ -z "$(zk_ask 1 get "$chroot/$lock")" ] || fail 'expected no record: it has no token'
        works run "$lock" -- true
    done
    # One whose data we may not read, in front and behind.
    zk_ask 1 create "$chroot/$key" ''
    zk_ask 1 owned "$chroot/$key/_c_00112233445566778899aabbccddeeff-lock-0000000001" me:secret
    status_is '.state == "foreign" and .waiting == 0'
    zk_ask 1 owned "$chroot/$key/x-12345-0000000003" me:secret
    works status --waiters --json "$key"
    [ "${#lines[@]}" -eq 1 ] || fail 'expected a waiter'
    refuses 75 'held by' run --wait 1s "$key" -- true
    refuses 75 'held by' run --replace --wait 1s "$key" -- true
}

@test "status --watch keeps its session, --prometheus prints metrics that a strict parser accepts" {
    take "$key"
    works status --prometheus "$key"
    "$PYTHON" "$lib_dir/prometheus.py" <"$BATS_TEST_TMPDIR/attempt.out" >samples || fail "not accepted"
    grep -q held samples
    requests_reset
    start status --watch=500ms --json "$key"
    wait_until '[ "$(requests getChildren2)" -ge 5 ]'
    [ "$(requests connect)" -eq 1 ] || fail "$(requests connect) connections"
    terminate
    wait_until '[ "$(requests closeSession)" -eq 1 ]'
}

# ---------------------------------------------------------------- usage, places

@test "zk:// beside another node, --replicas and bad URLs: 64" {
    refuses 64 '' run -N "$(zk_url)" -N redis://127.0.0.1:1 "$key" -- true
    refuses 64 '' run -N "$(zk_url)" -N "$(zk_url 1)" "$key" -- true
    refuses 64 replicas run --replicas 1 "$key" -- true
    refuses 64 replicas run --replicas-timeout 1s "$key" -- true
    for url in zk:// zk:///path zk://h: zk://h:0 zk://h:65536 zk://h:x zk://h,,i zk://h/a//b zk://h/../b zk://h/%zz \
        zk://h/a%00b zk://h/a/; do
        try acquire -N "$url" "$key"
        [ "$status" -eq 64 ] || [[ $url == */ ]] || fail "expected 64 for $url"
    done
}

@test "a chroot that does not exist is created, and goes when it is empty" {
    chroot=/deep/er$chroot
    DLOCK_NODES=$(zk_url)
    take "$key"
    zk_is_held "$key"
    dlock release "$key" "$token"
    wait_until '! zk_ask 1 stat /deep >/dev/null' 20
}

@test "a chroot that does not exist and may not be created: 77 at once, however long the wait" {
    zk_ask 1 node "$chroot" 1
    chroot+=/typo
    DLOCK_NODES=$(zk_url)
    requests_reset
    refuses 77 "does not let us create the node of KEY, or one above it; is the chroot right" run --wait forever "$key" -- true
    [ "$(requests)" -le 12 ] || fail "$(requests) requests"
}

@test "a lock is acquired although some of the servers are down" {
    DLOCK_NODES="zk://127.0.0.1:1,127.0.0.1:2,${DLOCK_NODES#zk://}"
    for _ in 1 2 3 4 5; do
        works run "$key" -- true
    done
    gives 0 run -v -N "zk://127.0.0.1:1,127.0.0.1:${zk_direct[0]}$chroot" "$key" -- true
    [[ $stderr == *" 127.0.0.1:${zk_direct[0]}: granted, fence "*"releasing the lock"*": done"* ]] || fail "expected the answers"
    gives 69 status -v -N "zk://127.0.0.1:1,127.0.0.1:2$chroot" "$key"
    [[ $stderr == *' 127.0.0.1:1: connection refused'* && $stderr == *' 127.0.0.1:2: connection refused'* ]] ||
        fail 'expected both servers'
}

@test "no server, a silent server, a server that is not ZooKeeper: 69 within the node timeout" {
    servers_start others tcp/silent tcp/close tcp/http tcp/random tcp/endless tcp/refused
    for mode in refused close http random endless silent; do
        DLOCK_NODES=zk://127.0.0.1:$(<"$(server_dir others)/$mode.port")
        within 4000 refuses 69 '' run --node-timeout 500ms "$key" -- true
        [ "$mode" != silent ] || fails 69 'no answer in time'
        within 4000 refuses 69 '' run --insecure --node-timeout 500ms -N "${DLOCK_NODES/zk:/zks:}" "$key" -- true
        [[ $stderr != *'failed with error'* ]] || fail 'expected the reason'
        within 4000 refuses 69 '' status --node-timeout 500ms "$key"
        within 4000 refuses 69 '' acquire --wait 1s --node-timeout 500ms "$key"
    done
    silent=${DLOCK_NODES#zk://}
    gives 1 status --prometheus --node-timeout 4s -N "zk://$silent,127.0.0.1:${zk_direct[0]}$chroot" "$key"
    [[ $output == *"dlock_node_up{node=\"$silent"*'"} 0'*"dlock_node_up{node=\"127.0.0.1:${zk_direct[0]}"*'"} 1'* ]] ||
        fail 'expected one that is up'
}

@test "digest: others may read but not break, a wrong password is 77" {
    mine=zk://me:secret@${DLOCK_NODES#zk://} other=zk://me:wrong@${DLOCK_NODES#zk://}
    take "$key" -N "$mine"
    refuses 77 '' acquire -N "$other" "$key"
    tells 0 '.state == "held"' status -N "$other" --json "$key"
    refuses 77 '' break --force -N "$other" "$key"
    refuses 77 'its ACL' break --ask -N "$other" "$key"
    [[ $stderr != *wrong* ]] || fail "the password is shown"
    try acquire "$key"
    [ "$status" -eq 77 ] || [ "$status" -eq 75 ] || fail "expected a refusal"
    DLOCK_PASSWORD=wrong refuses 75 'held by' acquire -N "$mine" "$key" # that of the URL counts
    works release -N "$mine" "$key" "$token"
    # Whoever has the token can end the session.
    take "$key" -N "$mine"
    works release "$key" "$token"
    zk_is_free "$key"
    try run -N "zk://me@${DLOCK_NODES#zk://}" "$key" -- true
    [ "$status" -ne 0 ]
    DLOCK_PASSWORD=secret works run -N "zk://me@${DLOCK_NODES#zk://}" "$key" -- true
}

@test "digest: a password file that changes while a lock is held" {
    echo secret >password
    chmod 600 password
    start_holding "$key" --ttl 4s --password-file password -N "zk://me@${DLOCK_NODES#zk://}" 'until [ -e finish ]; do sleep 0.2; done'
    echo other >password
    holder=$bg
    stays_renewed
    touch finish
    finishes 0
    zk_is_free "$key"
}

@test "digest: a password command runs again when the nodes are those of another password" {
    zk_ask 1 create "$chroot" ''
    echo secret >password
    start status --watch=200ms --json --password-command 'cat password' -N "zk://me@${DLOCK_NODES#zk://}"
    requests_reset
    wait_until '[ "$(requests getChildren2)" -ge 2 ]'
    [ "$(requests sync)" -ge 1 ] # before the second, so that the list is no older than the request
    zk_ask 1 delete "$chroot"
    zk_ask 1 owned "$chroot" me:other
    wait_until "grep -q 'its ACL' bg.1.err"
    echo other >password
    take "$key" -N "zk://me:other@${DLOCK_NODES#zk://}"
    wait_until "grep -q '$key' bg.1.out" || fail 'its new password is not used'
    end_process "$bg"
}

@test "a user without a password: 64" {
    for user in me me:; do
        try run -N "zk://$user@${DLOCK_NODES#zk://}" "$key" -- touch ran
        fails 64 'the user of .* has no password; use --password-file, --password-command or DLOCK_PASSWORD'
    done
    [ ! -e ran ]
}

@test "no right to delete: a release ends the session, and the next gets in at once" {
    zk_ask 1 create "$chroot/x" ''
    zk_ask 1 node "$chroot/$key" $((1 + 2 + 4))
    gives 0 run -v "$key" -- true
    [[ $stderr == *'ending the session'* ]] || fail 'expected why'
    zk_is_free "$key"
    take "$key"
    start run --wait 1m "$key" -- true
    queue_length_is 2
    within 5000 works release "$key" "$token"
    within 5000 finishes 0
    zk_is_free "$key"
    # The token of a further hold gives back that hold only.
    take "$key"
    works run --token "$token" "$key" -- true
    zk_is_held "$key"
    # Nobody can break it, but it is kept as long as it should.
    refuses 77 '' break --force "$key"
    zk rules hold:closeSession
    start release --node-timeout 15s "$key" "$token"
    # Until the session has ended, nobody enters the lock again.
    wait_until 'dlock status "$key" | grep -q kept'
    zk rules
    finishes 0
}

@test "no right to write the node of KEY: a break leaves no record there, and breaks; none to read the chroot: status is 77" {
    zk_ask 1 create "$chroot/x" ''
    zk_ask 1 node "$chroot/$key" $((1 + 4 + 8))
    take "$key"
    works break --force "$key"
    zk_is_free "$key"
    zk_ask 1 node "$chroot-unread" $((2 + 4))
    refuses 77 'its ACL' status -N "$(zk_url)-unread"
    gives 77 status --json -N "$(zk_url)-unread" '*'
}

@test "a password, and a chroot in which everybody may make nodes: doctor and --verbose say so" {
    DLOCK_NODES=zk://me:secret@${DLOCK_NODES#zk://}
    export DLOCK_NODE_TIMEOUT=5s
    gives 1 doctor --json
    finds '.check == "acl" and .result == "warn"'
    try run -v -N "$DLOCK_NODES-other" "$key" -- true
    [[ $stderr == *'everybody may break this lock'* ]] || fail 'expected a warning'
    zk_ask 1 owned "$chroot-mine" me:secret open
    mine=${DLOCK_NODES/%"$chroot"/"$chroot-mine"}
    try run -v -N "$mine" open -- true
    [[ $stderr == *'everybody may break this lock'* ]] || fail 'expected a warning'
    gives 0 run -v -N "$mine" "$key" -- true
    [[ $stderr != *everybody* ]] || fail 'expected no warning'
    gives 1 doctor --json -N "$mine"
    jq -e 'select(.result != "ok" and .check != "reach")' <<<"$output" && fail 'expected no other warning'
    # Who has no password is not told, as everybody may break it anyway.
    chroot+=-open
    # shellcheck disable=SC2119
    try doctor --json -N "$(zk_url)"
    jq -e 'select(.result != "ok" and .check != "reach")' <<<"$output" && fail 'expected no other warning'
    exits 1
}

# round_trip KEY: taken, refused, seen and released.
round_trip() {
    local k=$1
    works acquire -- "$k"
    token=$output
    refuses 75 '' acquire -- "$k"
    gives 0 status --json -- "$k"
    works release -- "$k" "$token"
}

@test "keys: every byte from 1 to 255, dots, slashes, the longest" {
    all='' some=''
    for ((i = 1; i < 256; i++)); do printf -v k '\\x%02x' "$i" && printf -v k %b "$k" && all+=$k; done
    round_trip "$all"
    for ((i = 1; i < 256; i += 8)); do
        printf -v some '%b' "$(printf '\\x%02x' $(seq "$i" $((i + 7 < 255 ? i + 7 : 255))))"
        works run "$some" -- true
    done
    for k in . .. a/.. a/./b a// a//b a/ / // ./ 'ö/ß' 🔒 $'\xed\xa0\x80' $'\xef\xbf\xbf' zookeeper zookeeper/x %2E %; do
        round_trip "$k"
    done
    printf -v k '%512s' ''
    round_trip "${k// /$'\xff'}"
    take /leading
    refuses 75 '' acquire leading
    # A key below /zookeeper is refused without a chroot.
    for k in zookeeper/x zookeeper; do refuses 64 '' acquire -N "$(chroot='' zk_url)" "$k"; done
}

# ---------------------------------------------------------------- doctor

@test "doctor: all is well" {
    export DLOCK_NODE_TIMEOUT=5s
    gives 1 doctor --json
    finds '.result == "ok" and (.finding | test("3.8|3.9|3.[5-7]"))'
    finds '.check == "answer" and (.finding | test("in [0-9.]*[1-9]"))'
    finds '.check == "leases" and .finding == "from 1s to 30s"'
    # Its test lock: the node above it goes as every empty container does.
    wait_until "[ -z \"\$(zk_ask 1 tree '$chroot' 2>/dev/null)\" ]" 20
    finds '.check == "reach" and .result == "warn" and (.finding | test("loopback"))'
    [ -z "$(jq 'select(.result != "ok" and .check != "reach")' <<<"$output")" ] || fail 'expected no other warning'
    gives 1 doctor
    [[ $output == *leader* && $output == *follower* ]] || fail "expected the modes"
}

@test "doctor: a lease that is not granted, few servers in the URL: warnings" {
    gives 1 doctor --json --ttl 60s
    finds '.result == "warn" and (.finding | test("30s"))'
    gives 1 doctor --json -N "$(zk_url 1)"
    finds '.result == "warn"'
}

@test "doctor: a server that is down is a warning at most; no leader: fail, 69" {
    zk_roles
    zk kill "${follower[0]}"
    try doctor --json
    [ "$status" -eq 1 ] || [ "$status" -eq 0 ] || fail "expected a warning"
    zk kill "$leader"
    zk_direct=("${zk_direct[@]}")
    wait_until 'zk_roles; [ -z "$leader" ]' 20
    gives 69 doctor --json --node-timeout 500ms
    finds '.check == "leader" and .result == "fail"'
    ! finds '.check == "ensemble"' 2>/dev/null || fail 'nothing is known of the ensemble'
}

@test "doctor: the servers of two ensembles in one URL: a warning" {
    dir=$(server_dir other)
    spawn other "$PYTHON" "$lib_dir/zkservers.py" "$dir"
    wait_until 'is_ready other'
    gives 1 doctor --json -N "zk://127.0.0.1:1,127.0.0.1:$(<"$dir/port"),127.0.0.1:${zk_direct[0]}$chroot"
    finds '.check == "ensemble" and .result == "warn" and (.finding | test("does not know a session"))'
}
