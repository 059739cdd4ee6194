#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# dlock status: the table, its columns and its width, foreign clients, metrics.

load ../lib/redis

setup() {
    test_begin
    export TERM=xterm
    unset NO_COLOR COLUMNS
}

# at_terminal COLUMNS ARG...: dlock ARG... on a terminal of that width; the lines are in $lines.
at_terminal() {
    attempt "$PYTHON" "$lib_dir/terminal.py" -- sh -c 'stty cols "$0" rows 24; exec "$@"' "$1" "$DLOCK" "${@:2}"
}

# fits COLUMNS: no line is wider.
fits() {
    local line
    for line in "${lines[@]}"; do
        [ ${#line} -le "$1" ] || fail "wider than $1: $line"
    done
}

# ---------------------------------------------------------------- columns

@test "-o selects columns and their order, case does not matter" {
    take "$key" --label backup
    works status -o label,KEY,State,pid "$key"
    [[ ${lines[0]} =~ ^LABEL\ +KEY\ +STATE\ +PID$ ]] || fail "expected the headings"
    [[ ${lines[1]} =~ ^backup\ +"$key"\ +held\ +[0-9]+$ ]] || fail "expected the row"
    works status --output=user,host,token,client "$key"
    [[ ${lines[1]} =~ ^"$(id -un)"\ +"$(uname -n)"\ +"${token:0:4}"\ +dlock$ ]] || fail "expected the row"
}

@test "missing values of a free lock are shown as dashes; --no-headings omits the headings" {
    gives 1 status -o key,user,host,pid,label,ttl,held,fence,token,client,waiting "$key"
    [[ ${lines[1]} =~ ^"$key"(\ +-)+$ ]] || fail 'expected dashes'
    gives 1 status --no-headings -o key "$key"
    prints "$key"
}

@test "an unknown column is named, and all are listed" {
    refuses 64 "unknown column 'colour'" status -o key,colour
    for column in KEY STATE TTL OWNER LABEL HELD FENCE WAITING NODES USER HOST PID CLIENT TOKEN; do
        [[ $stderr == *"$column"* ]] || fail "$column is not listed"
    done
    refuses 64 '' status -o ''
    refuses 64 '' status -o key,
    refuses 64 '' status -o "$(printf 'key,%.0s' {1..40})key"
    refuses 64 '' status -o $'k\ey'
}

@test "the help lists the existing columns" {
    try status --all -o x
    grep -o 'columns are .*' <<<"$stderr" | tr -d , | cut -d ' ' -f 3- | tr ' ' '\n' >listed
    dlock help status | sed -n '/^COLUMNS: /,/\.$/p' | grep -oE '\<[A-Z]+\>' | grep -v COLUMNS >helped
    diff listed helped
    sed -n '/^\.It Li KEY/,/^\.El/s/^\.It Li //p' "$top_srcdir/man/dlock.1" | tr -d ' ' | tr , '\n' >manual
    diff listed manual
}

# ------------------------------------------------------------------ width

@test "on a terminal the table fits, and long texts are cut" {
    take "$key-with-a-very-long-name-that-goes-on-and-on" --ttl 10m --label "a label that is also longer than it need be"
    for columns in 120 100 80 60 40 20; do
        at_terminal "$columns" status "$key*"
        exits 0
        [ "${#lines[@]}" -eq 2 ] || fail "expected two lines"
        lines=("${lines[@]//$'\e'\[*([0-9])m/}")
        lines=("${lines[@]//$'\e['32m/}")
        lines=("${lines[@]//$'\e['m/}")
        fits "$columns"
    done
    at_terminal 120 status "$key*"
    [[ $output == *HELD*..*-and-on* && $output != *FENCE* ]] || fail "expected FENCE to be dropped and a cut in the middle"
    at_terminal 300 status "$key*"
    [[ $output == *-and-on*'longer than it need be'* ]] || fail "expected nothing to be cut"
    try status "$key*"
    [[ $output == *-and-on*'longer than it need be'* ]] || fail "expected nothing to be cut without a terminal"
}

@test "wide characters take two columns" {
    take "发布锁" --ttl 1m
    take "x发布" --ttl 1m
    works status -o key,state 发布锁 x发布
    [ "${lines[0]}" = 'KEY     STATE' ] && [ "${lines[1]}" = '发布锁  held' ] && [ "${lines[2]}" = 'x发布   held' ] ||
        fail "expected columns that stand in line"
}

@test "colour on a terminal only, and not with NO_COLOR or a dumb terminal" {
    take "$key" --ttl 10m
    at_terminal 80 status "$key"
    [[ $output == *$'\e[32mheld\e[m'* ]] || fail "expected colour"
    NO_COLOR=1 at_terminal 80 status "$key"
    [[ $output == *held* && $output != *$'\e'* ]] || fail "expected no colour with NO_COLOR"
    NO_COLOR='' at_terminal 80 status "$key"
    [[ $output == *$'\e[32mheld'* ]] || fail "an empty NO_COLOR is none"
    at_terminal 80 status "$key-free"
    [[ $output == *$'\e[2mfree'* ]] || fail "expected a free one to be dim"
    rcli a set "$key-foreign" x
    at_terminal 80 status "$key-foreign"
    [[ $output == *$'\e[33mforeign'*forever* ]] || fail "expected a foreign one to be yellow"
    dlock acquire --shared "$key-shared" >/dev/null
    at_terminal 80 status "$key-shared"
    [[ $output == *$'\e[32mshared'* ]] || fail "expected a shared one to be green"
    DLOCK_NODES="$(node a) $PWD/nobody" at_terminal 80 status "$key" "$key-free"
    [[ $output == *$'\e[31munknown'* ]] || fail "expected an unknown one to be red"
    redis_start b
    rcli b set "$key-split" y
    rcli a set "$key-split" x
    DLOCK_NODES="$(node a) $(node b)" at_terminal 80 status "$key-split"
    [[ $output == *$'\e[31mcontended'* ]] || fail "expected a contended one to be red"
    TERM=dumb at_terminal 80 status "$key"
    [[ $output != *$'\e'* ]] || fail "expected no colour on a dumb terminal"
    try status "$key"
    [[ $output != *$'\e'* ]] || fail "expected no colour elsewhere"
}

@test "a table with more rows than are buffered for the column widths" {
    rcli a eval 'for i = 1000, 1999 do redis.call("set", KEYS[1] .. i, "x", "px", 60000) end' 1 "$key:"
    works status -o key,state "$key:*"
    [ "${#lines[@]}" -eq 1001 ] || fail "expected 1000 rows"
    [ "$(tail -n +2 <<<"$output" | sort -u | wc -l)" -eq 1000 ]
    tail -n +2 <<<"$output" | LC_ALL=C sort -c
    try status --json "$key:*"
    [ "$(jq -r .key <<<"$output" | LC_ALL=C sort -u | wc -l)" -eq 1000 ]
}

# --------------------------------------------------------- foreign clients

# client OWNER CLIENT: what status says of our key, and its JSON.
client() {
    outputs "$1" status --no-headings -o owner "$key"
    status_is ".client == $2 and .state == \"foreign\" and .owner == null"
    rcli a del "$key"
}

# Which token looks like whose is in tests/unit/answer.c.
@test "foreign locks are shown with their likely client" {
    rcli a set "$key" 5dbf0eb86e4f11ee9a20fd7f0a0f7c5a px 20000
    client '(redis-py)' '"redis-py"'
    rcli a hset "$key" 5dbf0eb8-6e4f-4a4c-9a20-fd7f0a0f7c5a:57 1
    client '(Redisson, thread 57)' '"Redisson, thread 57"'
    rcli a rpush "$key" x
    client '(a list)' '"a list"'
    rcli a set "$key" whatever
    client - null
}

@test "a lock of redis-py is shown as redis-py" {
    "$PYTHON" -c 'import redis' 2>/dev/null || must_run "$PYTHON has no module redis"
    "$PYTHON" -c 'import redis, sys
assert redis.Redis(unix_socket_path=sys.argv[1]).lock(sys.argv[2], timeout=20).acquire(blocking=False)' "$(node a)" "$key"
    client '(redis-py)' '"redis-py"'
}

# ---------------------------------------------------------------- metrics

# metrics ARG...: status --prometheus ARG..., read strictly; the samples are in $samples.
metrics() {
    try status --prometheus "$@"
    "$PYTHON" "$lib_dir/prometheus.py" <"$BATS_TEST_TMPDIR/attempt.out" >samples || fail "not in the format"
}

has() { grep -qxE "$1" samples || fail "no sample $1 in: $(cat samples)"; }

@test "--prometheus prints metrics that a strict parser accepts" {
    take "$key" --ttl 1m
    metrics "$key"
    exits 0
    has "dlock_held key='$key' 1"
    has "dlock_remaining_seconds key='$key' [1-5][0-9]\.[0-9]{3}"
    has "dlock_waiters key='$key' 0"
    has "dlock_age_seconds key='$key' [0-9]+\.[0-9]{3}"
    has "dlock_node_up node='$(node a)' 1"
    [ "$(wc -l <samples)" -eq 7 ]
    if command -v promtool >/dev/null; then promtool check metrics <"$BATS_TEST_TMPDIR/attempt.out"; fi
}

@test "--prometheus with keys of all kinds" {
    take "$key"$'\n"\\\e{},='
    take "$key-锁"
    rcli a set "$key"$'-\xff' x
    rcli a set "$key"'-\xff' x px 30000
    metrics "$key*" "$key-锁" "$key-free"
    exits 0
    [ "$(grep -c ^dlock_held samples)" -eq 5 ] || fail "expected each once: $(cat samples)"
    [ "$(grep -c ^dlock_age samples)" -eq 2 ] || fail "expected it of dlock only: $(cat samples)"
    has "dlock_held key='$key-锁' 1"
    has "dlock_held key='$key-free' 0"
    has "dlock_remaining_seconds key='$key-free' 0.000"
    [ "$(grep -c 'dlock_remaining_seconds.*+Inf' samples)" -eq 1 ]
    [ "$(grep -c ^dlock_age samples)" -eq 2 ]
}

@test "--prometheus says which nodes are up, and 69 if too few are" {
    DLOCK_NODES="$(node a) $PWD/nobody" metrics "$key"
    fails 69 || true
    exits 69
    has "dlock_node_up node='$(node a)' 1"
    has "dlock_node_up node='$PWD/nobody' 0"
    [ "$(grep -c ^dlock_held samples)" -eq 0 ]
    metrics
    exits 0
    has "dlock_node_up node='$(node a)' 1"
}

@test "--prometheus excludes --json and --watch" {
    refuses 64 'prometheus and --json cannot be used together' status --prometheus --json
    refuses 64 'prometheus and --watch cannot be used together' status --prometheus --watch
}
