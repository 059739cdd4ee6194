#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# A user of Redis with the rights that the manual lists can do everything, with its own
# keys only; and what it says when one of these rights is missing.

load ../lib/services

# Every right of the manual, and what fails without it: a function of this file.  This is the
# only list here; a right that comes or goes in the manual comes or goes here.
#   -  what needs it does without it, as a waiter that then tries by itself, or waits for a slot
rights='
+eval             acquires
+time             acquires
+type             meets
+get              renews
+set              acquires
+del              releases
+pttl             renews
+pexpire          renews
+hget             fences
+hmget            acquires
+hset             acquires
+info             guards
+exists           guards
+scan             lists
+select           selects
+hincrby          -
+zadd             enters
+zrem             -
+zcount           -
+zremrangebyscore enters
+blpop            -
+lpop             -
+lpush            -
+rpush            -
+lindex           -
+lrange           remembers
+lset             -
+ltrim            -
+zscore           enters
+zrangebyscore    -
+zrevrange        -
+hlen             -
+hkeys            -
+dump             breaks
+memory|usage     breaks
+role             asks_sentinels
+cluster|slots    asks_cluster
+asking           -
+wait             confirms
~app:*            acquires
~{app:*}:dlock*   acquires
~{app:*}:slot*    takes_slot
'

setup_file() {
    redis_start_tcp a
    redis_start b
    sentinel_start s a jobs 1
}
setup() {
    test_begin
    rcli a flushall >/dev/null
    rcli b flushall >/dev/null
    key=app:job
}

# rules: the words of the manual's ACL SETUSER, one a line.
rules() {
    sed -n '/^\.Sh RIGHTS IN REDIS$/,/^\.S[hs] /p' "$top_srcdir/man/dlock-nodes.7" |
        awk '/^\.Ed/ { block = 0 } block; /^\.Bd -literal/ { block = 1 }' |
        sed -E "s/\\\\e\$//; s/^redis-cli ACL SETUSER dlock//" | tr -s "' " '\n' | grep .
}

# calls: the rights for what the scripts and the program itself call, as the manual writes them.
calls() {
    (
        cd "$top_srcdir/src" || exit
        grep -ohE "redis\.p?call\('[A-Z]+'(, 'USAGE')?" lua/*.lua | sed -E "s/.*call\('//; s/', '/|/; s/'\$//"
        grep -ohE 'command_begin\([^,]+, "[A-Z]+' redis/*.c | cut -d '"' -f 2 |
            grep -vxE 'AUTH|CONFIG|SENTINEL' # everybody may; doctor does without; not of a server
        # One is written out.
        grep -ohE '"\*1[^"]*[A-Z]+\\r\\n"' redis/*.c | sed 's/\\r\\n"$//; s/.*n//'
    ) | sed 's/^CLUSTER$/CLUSTER|SLOTS/' | tr '[:upper:]' '[:lower:]' | sed 's/^/+/' | sort -u
}

# login SERVER [RIGHT [USER]]: the user dlock there has the manual's rights but for that one.
login() {
    local words=()
    mapfile -t words < <(rules | grep -vxF -- "${2-}")
    [ "$(rcli "$1" acl setuser "${3:-dlock}" "${words[@]}")" = OK ]
}

# user_node SERVER [USER]
user_node() { echo "unix://${2:-dlock}:PASSWORD@$(server_dir "$1")/s"; }

as_user() {
    login a "${1-}"
    DLOCK_NODES=$(user_node a)
}

# ------------------------------------------------------- one for each right that can be missing

acquires() { try acquire "$key"; }

meets() {
    rcli a set "$key" "$OTHER_TOKEN" px 60000 >/dev/null
    try acquire "$key"
}

renews() {
    rcli a set "$key" "$OTHER_TOKEN" px 60000 >/dev/null
    try renew "$key" "$OTHER_TOKEN"
}

releases() {
    rcli a set "$key" "$OTHER_TOKEN" px 60000 >/dev/null
    try release "$key" "$OTHER_TOKEN"
}

# Two nodes of which one has a greater fence: it is raised on the other, where a right is missing.
fences() {
    login b
    rcli b hset "{$key}:dlock" fence "$((($(date +%s) + 600) * 1000000))" >/dev/null
    try acquire -N "$(user_node a)" -N "$(user_node b)" "$key"
}

guards() { try acquire --restart-guard 1d "$key"; }
lists() { try status; }
remembers() { try history "$key"; }

enters() {
    token=$(dlock acquire -N "$(node a)" "$key")
    try acquire --token "$token" "$key"
}

breaks() {
    rcli a hset "$key" 5dbf0eb8-6e4f-4a4c-9a20-fd7f0a0f7c5a:57 1 >/dev/null
    try break --force "$key"
}

asks_sentinels() { try acquire -N "redis+sentinel://dlock:PASSWORD@$(place s)/jobs" "$key"; }

# The finding is not a failure, and names the missing right.
asks_cluster() { try acquire -N "redis+cluster://dlock:PASSWORD@$(place a)" "$key"; }
confirms() { try acquire --replicas 1 "$key"; }

selects() { try status -N "$(user_node a)?db=1" "$key"; }

takes_slot() { try run --slots 2 "$key" -- true; }

# ----------------------------------------------------------------------------------------- tests

@test "the manual has the rights that are tested here" {
    rules | grep '^[+~]' | sort >manual
    awk 'NF { print $1 }' <<<"$rights" | sort >here
    [ "$(wc -l <here)" -ge 20 ]
    passes diff -u manual here
    [ "$(rules | head -n 3 | tr '\n' ' ')" = 'reset on >PASSWORD ' ]
}

@test "the rights are those for the commands that dlock calls, and no more" {
    rules | grep '^+' | sort >manual
    calls >called
    [ "$(wc -l <called)" -ge 20 ]
    passes diff -u called manual
}

@test "the shell accepts the command of the manual" {
    sed -n '/^\.Sh RIGHTS IN REDIS$/,/^\.S[hs] /p' "$top_srcdir/man/dlock-nodes.7" |
        awk '/^\.Ed/ { exit } block; /^\.Bd -literal/ { block = 1 }' |
        sed -E "s/\\\\e\$/\\\\/; s|^redis-cli|'$REDIS_CLI' -s '$(server_dir a)/s'|" >setuser
    passes sh -eu setuser
    prints OK
    as_user
    works acquire "$key"
}

@test "with these rights: acquire, renew, release, status of one, some and all" {
    as_user
    take "$key"
    refuses 75 'held by' acquire "$key"
    works renew --ttl 60s "$key" "$token"
    works status "$key"
    works status 'app:*'
    [[ $output == *"$key"* ]] || fail "expected the lock"
    works status
    [[ $output == *"$key"* ]] || fail "expected the lock"
    works release "$key" "$token"
    gives 1 status "$key"
    works acquire "app:{tag}x"
}

@test "with these rights: run, its renewals, --min-hold and a database" {
    as_user
    DLOCK_NODES+='?db=1'
    start_holding "$key" -v --ttl 6s --node-timeout 2s --min-hold 1ms 'exec sleep 30'
    wait_until "grep -q 'done\$' bg.1.err"
    terminate_command
    [[ $stderr != *permission* ]] || fail "something was refused"
    wait_until "[ \$(rcli a -n 1 exists $key) = 0 ]"
}

@test "with these rights: waiting for a lock that is released, and the history" {
    as_user
    take_for 100 "$key"
    wait_until "free '$key'"
    works run "$key" -- true
    works history "$key"
    [[ $output == *'exit 0'*expired* ]] || fail "expected both holders"
    take "$key"
    start acquire --wait 60s "$key"
    wait_until "[[ \$(rcli a info clients) == *blocked_clients:1* ]]"
    dlock release "$key" "$token"
    finishes_well
    [ "$(rcli a get "$key")" = "$output" ]
}

@test "with these rights: re-entry, break of a foreign lock, and doctor" {
    as_user
    take "$key"
    works acquire --token "$token" "$key"
    works release "$key" "$output"
    works break --force "$key"
    rcli a hset "$key" 5dbf0eb8-6e4f-4a4c-9a20-fd7f0a0f7c5a:57 1 >/dev/null
    works status "$key"
    [[ $output == *'(Redisson, thread 57)'* ]] || fail "expected Redisson"
    works break --force "$key"
    DLOCK_PREFIX=app: gives 1 doctor
    [[ $output != *fail* ]] || fail "expected no failure"
}

@test "a break names the node that does not say what it holds, also if others do" {
    login a +dump
    rcli a hset "$key" a 1 >/dev/null
    rcli b hset "$key" a 1 >/dev/null
    refuses 77 "^dlock: $(server_dir a)/s: its ACL" break --force -N "$(user_node a)" -N "$(node b)" "$key"
}

@test "with these rights: slots" {
    as_user
    works run --slots 1 "$key" -- "$DLOCK" run --slots 2 "$key" -- true
    works acquire --json --slots 1 "$key"
    refuses 75 'only slot' run --slots 1 "$key" -- true
    start run --slots 1 --wait 60s "$key" -- true
    wait_until "[[ \$(rcli a info clients) == *blocked_clients:1* ]]"
    works status --slots 1 "$key"
    works status --slots 1 --waiters "$key"
    works break --force "{$key}:slot-1"
    finishes 0
    works history "{$key}:slot-1"
}

@test "without a right that the history needs: the lock works, and the list does not grow" {
    for right in +lindex +lpush +ltrim +lset; do
        rcli a flushall >/dev/null
        as_user "$right"
        for ((i = 0; i < 5; i++)); do
            works run --history 2 "$key" -- true
            is_free "$key"
        done
        [ "$(rcli a llen "{$key}:dlock:history")" -le 3 ]
    done
}

@test "with these rights: a quorum, raising a fence, the restart guard, readers, and a writer that waits for them" {
    as_user
    readers_and_writer a
    fences
    succeeds
    refuses 69 restart-guard acquire --restart-guard 1d "$key-2"
}

@test "with these rights: no access to other keys, whatever the name of the lock" {
    as_user
    for name in other:job '{other}app:job' apps 'app'; do
        refuses 77 'does not permit access to the keys of this lock.*KEY was' acquire "$name"
        is_free "$name"
    done
    rcli a acl setuser dlock '~{*}:app:*' >/dev/null
    for name in 'app:a}b' 'app:{}b'; do
        works acquire "$name"
    done
}

@test "without one of these rights: 77, and the message names it" {
    while read -r right scenario; do
        [ -n "$right" ] && [ "$scenario" != - ] || continue
        rcli a flushall >/dev/null
        rcli b flushall >/dev/null
        as_user "$right"
        "$scenario"
        case $right in
            '~'*) fails 77 'does not permit access to the keys of this lock; see RIGHTS IN REDIS' ;;
            +eval | +scan | +select)
                fails 77 "does not permit the command ${right#+}; see RIGHTS IN REDIS"
                ;;
            *) fails 77 "does not permit (a command that the scripts of dlock call|the command ${right//[+|]/.?}); see" ;;
        esac
        [ "$scenario" != acquires ] || wait_until "free '$key'" || fail "a lock is left without $right"
        as_user
        rcli a flushall >/dev/null
        rcli b flushall >/dev/null
        "$scenario"
        [ "$status" -ne 77 ] || fail "77 with all rights: $scenario"
    done <<<"$rights"
}

@test "with these rights: status lists the locks of the prefix beside those of others" {
    take "$key"
    take other:lock
    take '{other}:lock'
    rcli a set other:foreign x >/dev/null
    rcli a hset other:hash a b >/dev/null
    as_user
    warns 0 '2 locks are not shown: this user may not read their keys' status
    [[ ${#lines[@]} -eq 2 && ${lines[1]} == "$key "* ]] || fail 'expected one lock'
    # With a pattern all keys, and the pattern may be the name of a lock.
    for pattern in '*' '[ao]*'; do
        warns 0 'locks are not shown: this user may not read their keys' status "$pattern"
        [[ ${#lines[@]} -eq 2 && ${lines[1]} == "$key "* ]] || fail "expected one lock: $pattern"
    done
    warns 0 'dlock: 1 lock is not shown: this user may not read its key' status 'other:l*'
    tells 0 '.key == $key' status --json
    works status -q
    works status --prometheus
    [[ $output != *other* ]] || fail 'expected no lock of others'
    # There may be no lock of its own.
    rcli a del "$key" >/dev/null
    gives 0 status
    [ "${#lines[@]}" -eq 1 ]
    # A key that is named on the command line is not omitted.
    warns 77 'does not permit access to the keys of this lock.*KEY was other:lock' status "$key" other:lock
    refuses 77 'KEY was other:lock' status other:lock
}

@test "with these rights: doctor says that it needs a prefix" {
    as_user
    gives 77 doctor
    [[ $output == *'-> use a --prefix that this user may use'* ]] || fail 'expected advice'
    gives 1 doctor --prefix app:
    [[ $output != *fail* ]] || fail 'expected no failure'
}

# Clients are then not served in order, but each one when the lease would have ended.
@test "without a right that waiting needs: the lock is acquired without the queue" {
    count=0 waiter=()
    while read -r right _; do
        [[ $right =~ ^\+(hincrby|z.*|.*p(op|ush)|lindex)$ ]] || continue
        count=$((count + 1))
        login a "$right" "user-$count"
        dlock acquire --ttl 3s --node-timeout 2s "$key-$count" >held
        start acquire -N "$(user_node a "user-$count")" --wait 60s "$key-$count"
        waiter+=("$bg")
    done <<<"$rights"
    [ "$count" -eq 13 ]
    for bg in "${waiter[@]}"; do
        finishes_well "$bg"
    done
}
