#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# dlock status --all: every lock with a history, also free ones, and how it ended last; and patterns of history, --max-age
# and break.

load ../lib/services
load ../lib/quorum

redis_servers=a node_count=3
setup_file() {
    start_servers
    cluster_start c 3 0
}

# five_jobs: one that succeeded, one that failed, one that crashed, one that runs after a success, one without a history.
five_jobs() {
    dlock run "$key-good" -- true
    try run "$key-bad" -- sh -c 'exit 3'
    take_for 100 "$key-crashed"
    dlock run "$key-now" -- true
    start_holding "$key-now" 'exec sleep 60'
    dlock run --history 0 "$key-secret" -- true
    wait_until "free '$key-crashed'"
}

# all_of FILTER ARG...: the JSON of status --all ARG..., each line by jq's FILTER, on one line.
all_of() {
    try status --all --json "${@:2}"
    jq -r "$1" <<<"$output" | paste -sd ' '
}

@test "--all shows free and held locks with a history, by name, and how they ended last" {
    five_jobs
    works status --all "$key*"
    [[ ${lines[0]} =~ ^KEY\ +STATE\ +LAST\ +OUTCOME\ +TOOK\ +SUCCESS\ +OWNER$ ]] || fail "other columns: ${lines[0]}"
    age='[0-9.]+m?s'
    [[ ${lines[1]} =~ ^$key-bad\ +free\ +$age\ +exit\ 3\ +$age\ +-\ +-$ ]] || fail "${lines[1]}"
    [[ ${lines[2]} =~ ^$key-crashed\ +free\ +$age\ +expired\ +$age\ +-\ +-$ ]] || fail "${lines[2]}"
    [[ ${lines[3]} =~ ^$key-good\ +free\ +$age\ +exit\ 0\ +$age\ +$age\ +-$ ]] || fail "${lines[3]}"
    [[ ${lines[4]} =~ ^$key-now\ +held\ +$age\ +exit\ 0\ +$age\ +$age\ +.*@.*:$bg$ ]] || fail "${lines[4]}"
    [ ${#lines[@]} -eq 5 ] || fail "more: $output"
    # They are what history is completed by.
    wait_until "dlock --complete 1 history '$key-g' | grep -qx '$key-good'"
    try status --all
    [[ $output == *"$key-good "*"$key-now "* && $output != *"$key-secret"* ]] || fail "without operands: $output"
    [ "$(all_of '[.key, .state, .last.outcome, .last.child.exit, .last_success_age_ms != null] | join(",")' "$key*")" = \
        "$key-bad,free,ran,3,false $key-crashed,free,expired,,false $key-good,free,ran,0,true $key-now,held,ran,0,true" ]
    works status --all "$key-good" # not 1, as without --all
    works status --all -o key,took,label "$key-now" "$key-never"
    [[ ${lines[1]} == "$key-now "*' sh' && ${lines[2]} =~ ^$key-never\ +-\ +-$ ]] || fail "$output"
}

@test "the times of the last holder, whose user has an @" {
    local ended
    ended=$(($(date +%s) - 7200))000
    rcli a lpush "{$key}:dlock:history" \
        "$OTHER_TOKEN $ended ran 0 $ended - - $((ended - 5000)) 70 4 14 3 me@corp@here:1job" >/dev/null
    works status --all --no-headings "$key"
    [[ $output =~ ^$key\ +free\ +2h00m\ +exit\ 0\ +5\.0s\ +2h00m\ +-$ ]] || fail 'expected these times'
    works status --all --json "$key"
    json_is "[.last.ended_ago_ms, .last_success_age_ms | . / 60000 | floor] == [120, 120] and .last_success_ms == $ended"
    json_is ".last | [.start_ms, .end_ms, .held_ms, .waited_ms, .fence] == [$ended - 5000, $ended, 5000, 70, 4]"
    json_is '.last | .owner == {user: "me@corp", host: "here", pid: 1, command: "run"} and .label == "job"'
}

@test "--failed shows those whose last holder did not succeed, and is 1 then" {
    five_jobs
    gives 1 status --failed --no-headings -o key "$key*"
    [ "$output" = "$key-bad"$'\n'"$key-crashed" ] || fail "other locks: $output"
    dlock run "$key-bad" -- true
    token=$(dlock acquire "$key-crashed")
    dlock release "$key-crashed" "$token"
    gives 0 status -q --failed "$key*"
}

@test "--all --prometheus: a job that has ended has metrics without being named" {
    five_jobs
    try status --all --prometheus "$key*"
    "$PYTHON" "$lib_dir/prometheus.py" <<<"$output" || fail "not the format"
    samples=$(sed -nE "s/^dlock_last_(run_exit_status|failed)\{key=\"$key-(.*)\"\} /\2=/p" <<<"$output" | paste -sd ' ')
    [ "$samples" = 'bad=3 good=0 now=0 bad=1 crashed=1 good=0 now=0' ] || fail "other exit statuses, or failures: $samples"
    [[ $output =~ dlock_last_end_timestamp_seconds\{key=\"$key-crashed\"\}\ ([0-9]+)\.[0-9]{3} ]]
    [ $(($(date +%s) - BASH_REMATCH[1])) -lt 60 ]
}

@test "patterns of --all match whole keys behind the prefix, and a key with such characters is reachable" {
    export DLOCK_PREFIX='t*[' DLOCK_HISTORY=1
    for k in "$key/a" "$key/b]" "$key/*" "$key/{x}y" "$key/}{" "x$key/a" "$key-[1" "$key-2"; do dlock run "$k" -- true; done
    [ "$(all_of .key "$key-[*")" = "$key-[1" ] || fail 'a bracket without its end is taken as it is'
    [ "$(all_of .key "$key/?")" = "$key/* $key/a" ]
    [ "$(all_of .key "$key*a")" = "$key/a" ] || fail 'a slash is a character like others'
    [ "$(all_of .key "$key/*")" = "$key/* $key/a $key/b] $key/{x}y $key/}{" ]
    [ "$(all_of .key "$key/[b}]*")" = "$key/b] $key/}{" ]
    [ "$(all_of .key "$key/\\*")" = "$key/*" ]
    [ "$(all_of .key "$key/a*" "*$key/a")" = "$key/a $key/a x$key/a" ]
    [ "$(all_of .key "$key/b\\")" = "$key/b\\" ] || fail 'without a pattern it is a KEY'
    [ "$(DLOCK_PREFIX='' all_of .key "*$key/a")" = "t*[$key/a t*[x$key/a" ]
}

@test "history and --max-age take patterns; one that matches nothing is 1, and named" {
    five_jobs
    works history --no-headings "$key-[bg]*"
    [[ ${#lines[@]} -eq 2 && ${lines[0]} == "$key-bad "* && ${lines[1]} == "$key-good "* ]] || fail "$output"
    refuses 1 "^dlock: $key-x\\*: no lock with a history matches$" history "$key-x*"
    dlock run "$key-*" -- true
    try history --json "$key-*"
    [ "$(jq -r .key <<<"$output" | uniq | paste -sd ' ')" = "$key-* $key-bad $key-crashed $key-good $key-now" ]
    works status --max-age 1h "$key-[gn]*"
    [[ ${#lines[@]} -eq 2 && ${lines[0]} == "$key-good: ok: "* && ${lines[1]} == "$key-now: ok: "* ]] || fail "$output"
    gives 1 status --max-age 1h "$key-[bg]*"
    [[ ${lines[0]} == "$key-bad: late: no success"* && ${lines[1]} == "$key-good: ok: "* ]] || fail "$output"
    gives 1 status --max-age 1h "$key-good" "$key-s*"
    [[ $output == "$key-good: ok: "* && $stderr == "dlock: $key-s*: no lock with a history matches" ]] || fail "$output$stderr"
}

@test "break refuses a pattern, but for a lock of exactly this name" {
    take "$key-1"
    refuses 64 "^dlock: '$key-\\*' is a PATTERN, and no lock has just this name; name one KEY" break --force "$key-*"
    held "$key-1"
    take "$key-*"
    works break --force "$key-*"
    held "$key-1"
}

@test "hundreds of locks in order, of which some are held, among more keys than a SCAN reads; --watch shows as many as fit" {
    rcli a eval 'for i = 1, 1500 do redis.call("set", "other" .. i, "") end
        for i = 1, 300 do
        redis.call("lpush", string.format("{%s-%03d}:dlock:history", KEYS[1], i),
            string.format("%022d 1700000060000 ran %d - 1700000060000 0 1700000000000 0 5 3 1 u@hl", i, i % 2))
        end' 1 "$key" >/dev/null
    for i in 001 100 299; do take "$key-$i"; done
    [ "$(all_of .key "$key*" | md5sum)" = "$(printf "$key-%03d\n" {1..300} | paste -sd ' ' | md5sum)" ]
    [ "$(all_of 'select(.state == "held").key' "$key*")" = "$key-001 $key-100 $key-299" ]
    gives 1 status --failed --no-headings "$key*"
    [ ${#lines[@]} -eq 150 ]
    yields 0 "$PYTHON" "$lib_dir/terminal.py" 'expect=...' 'send=\x03' -- \
        sh -c 'stty cols 80 rows 10; exec "$@"' sh "$DLOCK" status --all --watch 100ms "$key*"
    [[ $output == *"$key-005"* && $output != *"$key-007"* ]] || fail "$output"
}

@test "a history of another type is an error of its lock only, which is shown" {
    dlock run "$key-1" -- true
    rcli a set "{$key-2}:dlock:history" x >/dev/null
    warns 69 'the key of the metadata of the lock has another type' status --all --no-headings "$key*"
    [[ ${lines[0]} == "$key-1 "*' exit 0 '* && ${lines[1]} =~ ^$key-2\ +free\ +- ]] || fail "$output"
}

@test "over a Cluster: those of all its servers" {
    DLOCK_NODES=redis+cluster://$(place c1)
    for k in a b c d e f; do dlock run "$key-$k" -- true; done
    take "$key-c"
    works status --all --no-headings -o key,state,outcome "$key*"
    [ "$(tr -s ' ' <<<"$output" | paste -sd ,)" = "$(for k in a b c d e f; do
        echo "$key-$k $([ $k = c ] && echo held || echo free) exit 0"
    done | paste -sd ,)" ] || fail "$output"
}

@test "over three nodes: what a majority says, although one is empty, or down, or has a failed attempt" {
    use 3
    dlock run "$key-1" -- true
    try run "$key-2" -- false
    restart_empty n1
    local i=0 end now
    now=$(date +%s)000
    for end in '- open' "$now expired"; do
        rcli n2 lpush "{$key-$((++i))}:dlock:history" \
            "$OTHER_TOKEN $end - - - - $now 0 9000000000000000 5 5 me@here:1label" >/dev/null
    done
    [ "$(all_of '[.key, .state, .last.child.exit] | join(",")' "$key*")" = "$key-1,free,0 $key-2,free,1" ]
    redis_stop n2
    [ "$(all_of '[.key, .state, .last.child.exit] | join(",")' "$key*")" = "$key-1,free,0 $key-2,free,1" ]
    redis_stop n3
    refuses 69 'no quorum' status --all
    gives 69 status -N "$PWD/nowhere" "$key-1" "$key-2" # of no lock anything is known
    prints ''
}

@test "--all and --failed exclude other forms of output; their columns need them" {
    refuses 64 'together' status --all --waiters "$key"
    refuses 64 'together' status --failed --max-age 1h "$key"
    refuses 64 '--all and --slots' status --all --slots 2 "$key"
    refuses 64 '--failed and --slots' status --failed --slots 2 "$key"
    refuses 64 "unknown column 'took'" status -o key,took
    refuses 64 'not an option of history' history --all "$key"
}
