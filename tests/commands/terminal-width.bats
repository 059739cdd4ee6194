#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# What dlock shows on terminals of 80, 100 and 200 columns: everything fits, no column is cut off, what differs still
# differs.  The terminal is tmux.

load ../lib/redis
load ../lib/screens

setup() {
    test_begin
    command -v tmux >/dev/null || must_run "no tmux"
    export LC_ALL=C.UTF-8 TZ=UTC NO_COLOR=1
    unset TMUX COLUMNS
    rcli a flushall >/dev/null
    terminals=0
    printf '%s\n' 'set -g default-shell /bin/sh' 'set -g status off' 'set -g remain-on-exit on' >tmux.conf
}
teardown() {
    while [ "${terminals-0}" -gt 0 ]; do end_tmux; done
    test_end
}

# in_tmux COLUMNS COMMAND...: start it in a terminal of that width; "over STATUS" follows its output.
in_tmux() {
    terminals=$((terminals + 1))
    terminal=$(servers_root)/tmux-$BATS_TEST_NUMBER-$terminals
    tmux -u -S "$terminal" -f tmux.conf new-session -d -x "$1" -y 60 \
        "trap : INT; $(printf '%q ' "${@:2}"); echo over \$?; exec sleep 600" 3>&- 4>&-
}

# end_tmux: end the last terminal, if it has not ended.
end_tmux() {
    tmux -S "$(servers_root)/tmux-$BATS_TEST_NUMBER-$terminals" kill-server 2>/dev/null || true
    terminals=$((terminals - 1))
}

# shows REGEX: a line of the terminal matches; $lines are the lines that are not empty.
shows() {
    tmux -S "$terminal" capture-pane -p >screen
    mapfile -t lines < <(grep . screen)
    grep -qE -- "$1" screen
}

# on_screen COLUMNS ARG...: what dlock ARG... prints there is in $lines, without "over"; its status is in $status.
on_screen() {
    in_tmux "$1" "$DLOCK" "${@:2}"
    wait_until 'shows "^over [0-9]+"' || fail "$(<screen)"
    status=${lines[-1]#over }
    unset 'lines[-1]'
    output=$(printf '%s\n' "${lines[@]}")
}

# rows N: so many lines below the headings.  A line that was too wide would have become two.
rows() { [ "${#lines[@]}" -eq $(($1 + 1)) ] || fail "expected $1 rows"; }

# headings NAME...: these columns are shown.
headings() { [ "$(tr -s ' ' <<<"${lines[0]}")" = "$*" ] || fail "expected the columns $*"; }

# column NAME: its cells.  Where the column is, is counted in columns of the terminal.
column() {
    "$PYTHON" - "$1" screen <<'END'
import sys, unicodedata

def cells(line):  # a wide character as two, a combining one as none
    for c in line:
        if not unicodedata.combining(c):
            yield from [c, ""] if unicodedata.east_asian_width(c) in "WF" else [c]

lines = [line.rstrip("\n") for line in open(sys.argv[2]) if line.strip() and not line.startswith("over ")]
first = lines[0].index(sys.argv[1])
rest = lines[0][first:].split("  ", 1)
width = len(rest[0]) + 2 + len(rest[1]) - len(rest[1].lstrip()) if len(rest) > 1 else 1000
for line in lines[1:]:
    line = list(cells(line))
    assert first == 0 or line[first - 1] == " " and line[first] != " ", "the column does not begin in line"
    print("".join(line[first:first + width]).rstrip())
END
}

# all_differ NAME: the cells of this column are different.
all_differ() {
    column "$1" >cells || fail "no such column: $1"
    [ -z "$(sort cells | uniq -d)" ] || fail "the same in column $1: $(sort cells | uniq -d)"
}

# Locks whose keys, hosts and labels differ at the begin, in the middle and at the end.
held_locks() {
    local i=0 key
    for key in deploy-production-eu-west-1-frontend-{blue,green} deploy-production-eu-west-2-frontend-{blue,green} \
        1-deploy-production-frontend 发布-生产-环境-{一,二}-网页-前端-全部; do
        i=$((i + 1))
        lock "$key" "ci@build-runner-$i.eu-west-1.example.net:3141592" "release $i of the web frontend, all sides" 190 600000
    done
    waiter 1-deploy-production-frontend "$THIRD_TOKEN" ops@web-01:4711 manual 10
    dlock run --min-hold 10m --label 'the command of a lock that is kept' \
        deploy-production-eu-west-3-frontend-blue -- true
    # The name of this host may be very long.
    rcli a hset '{deploy-production-eu-west-3-frontend-blue}:dlock' owner \
        ci@build-runner-8.eu-west-1.example.net:3141592 >/dev/null
}

@test "status on a narrow terminal: texts that differ still differ, and no column is cut off" {
    held_locks
    for columns in 80 100; do
        on_screen "$columns" status
        exits 0
        rows 8
        headings KEY STATE TTL OWNER LABEL HELD
        all_differ KEY
        all_differ LABEL
        all_differ OWNER # with the same user and PID
        [ "$(grep -c ':3141592$' cells)" -eq 8 ] || fail "PIDs that are shortened: $(<cells)"
        [ "$(column STATE | sort | uniq -c | tr -s ' \n' ' ')" = ' 7 held 1 kept ' ] || fail "states: $(column STATE)"
    done
}

@test "history and --waiters: a key that was asked for is not shortened" {
    long=deploy-production-eu-west-1-frontend-of-the-web-shop
    dlock run --label 'release 1 of the web frontend, all sides' "$long" -- true
    on_screen 80 history "$long" nightly
    [[ $output == *"$long"* ]] || fail 'expected the whole key'
    take "$long"
    waiter "$long" "$OTHER_TOKEN" ops@web-02.example.net:5120 nightly 95
    on_screen 80 status --waiters "$long" nightly
    [[ $output == *"$long"* ]] || fail 'expected the whole key'
}

@test "status drops FENCE, then NODES of a single node, then WAITING, and only then shortens texts" {
    dropped=0 before=''
    lock deploy-production-frontend ops@web-01.example.net:4711 nightly 190 590000
    for columns in 120 110 100 90 85 84; do
        at_width "$columns" status
        case $output in
            *FENCE*WAITING*NODES*) dropped=0 ;;
            *FENCE*) fail "FENCE is not the first to be dropped" ;;
            *WAITING*NODES*) dropped=1 ;;
            *NODES*) fail "NODES is not the second" ;;
            *WAITING*) dropped=2 ;;
            *) dropped=3 ;;
        esac
        [[ $output == *HELD* ]]
        shortened=no
        [[ $output != *..* ]] || shortened=yes
        [ $shortened = no ] || [ $dropped = 3 ] || fail "$columns columns: a text was shortened before columns were dropped"
        before+=" $dropped$shortened"
    done
    [ "$before" = ' 0no 1no 2no 3no 3no 3yes' ] || fail "$before"
    at_width 50 status -o key,fence,waiting,nodes # what was asked for stays
    [[ $output == *FENCE*WAITING*NODES* ]] || fail 'expected all columns'
    # Of several nodes it says how many hold the lock.
    ln -s "$(node a)" one
    at_width 100 status --node "$(node a)" --node "$PWD/one"
    [[ $output == *HELD*NODES* && $output != *WAITING* ]] || fail 'expected NODES'
}

# at_width COLUMNS ARG...: the same without tmux, which takes longer.
at_width() {
    attempt "$PYTHON" "$lib_dir/terminal.py" -- sh -c 'stty cols "$0" rows 24; exec "$@"' "$1" "$DLOCK" "${@:2}"
}

@test "history: no column is cut off" {
    past backup 03:15:00 ran 0 254 0 ops@web-01.eu-west-1.example.net:31415 'nightly, of all databases'
    past backup 09:30:00 released - 61 12500 admin@bastion.example.net:7731 'manual, of all databases'
    past backup 11:20:00 broken - 600 250 ops@web-02.eu-west-1.example.net:31415 'nightly, of all databases' \
        admin@bastion.example.net:7802
    for columns in 80 100; do
        on_screen "$columns" history backup
        exits 0
        rows 3
        headings START HELD OUTCOME OWNER LABEL
        all_differ OWNER
    done
    on_screen 200 history backup
    rows 3
    headings START END HELD WAITED OUTCOME OWNER LABEL FENCE
    [[ $output != *..* ]] || fail "expected no shortened text"
    past deploy 03:15:00 ran 0 254 0 ops@web-01.eu-west-1.example.net:31415 'nightly, of all databases'
    on_screen 80 history backup deploy
    rows 4
    [[ ${lines[0]} == KEY\ *OWNER* ]]
    # Names that match a pattern are shortened, so that the other columns stay.
    past backup-of-all-databases-of-the-eu-west-1-web-shop 03:15:00 ran 0 254 0 ops@web-01:31415 nightly
    on_screen 80 history 'backup*'
    rows 4
    headings KEY START HELD OUTCOME OWNER
}

@test "status --waiters: no column is cut off" {
    waiter backup "$OTHER_TOKEN" ops@web-01.eu-west-1.example.net:31415 'nightly, of all databases, the first of them' 95
    waiter backup "$THIRD_TOKEN" ops@web-02.eu-west-1.example.net:31415 'nightly, of all databases, the second of them' 12
    for columns in 80 100; do
        on_screen "$columns" status --waiters backup
        exits 0
        rows 2
        headings PLACE WAITING OWNER LABEL
        all_differ OWNER
        all_differ LABEL
    done
    on_screen 200 status --waiters backup
    rows 2
    headings PLACE SINCE WAITING OWNER LABEL
    [[ $output != *..* ]] || fail "expected no shortened text"
}

@test "the line of --wait shows key and holder, however long they are" {
    key=deploy-production-eu-west-1-frontend-blue
    lock "$key" ci@build-runner-1.eu-west-1.example.net:3141592 'release of the web frontend, all sides' 190 600000
    for columns in 40 60 80 100 200; do
        in_tmux "$columns" "$DLOCK" run --wait 10m "$key" -- true
        wait_until 'shows "^dlock: .*: waiting for [0-9.]+s"' || fail "$(<screen)"
        [ "${#lines[@]}" -eq 1 ] || fail "expected one line: $(<screen)"
        case $columns in
            40) [[ ${lines[0]} =~ ^dlock:\ dep.*\.\..*ue:\ waiting\ for\ [0-9.]+s$ ]] ;;
            60) [[ ${lines[0]} =~ ^dlock:\ dep.*\.\..*ue:\ waiting\ for\ [0-9.]+s(,\ held\ by\ .*:3141592)?$ ]] ;;
            80) [[ ${lines[0]} =~ ^dlock:\ depl.*\.\..*blue:\ waiting\ for\ [0-9.]+s,\ held\ by\ ci@.*\.\.:3141592\ \(re.*\.\..*\)$ ]] ;;
            100) [[ ${lines[0]} =~ ^dlock:\ deploy.*\.\..*-blue:\ waiting\ for\ [0-9.]+s,\ held\ by\ ci@build.*\.\..*:3141592\ \(rel.*\.\..*\)$ ]] ;;
            200) [[ ${lines[0]} == *"$key: waiting for "*", held by ci@build-runner-1.eu-west-1.example.net:3141592 (release of the web frontend, all sides) for "* ]] ;;
        esac || fail "$columns columns: ${lines[0]}"
        tmux -S "$terminal" send-keys C-c
        wait_until 'shows "^over 130"' || fail "$(<screen)"
        ! grep -q 'waiting for' screen || fail "the line is still there: $(<screen)"
    done
    in_tmux 200 "$DLOCK" run --wait 10m "$key" -- true
    wait_until 'shows "waiting for"'
    rcli a del "$key"
    wait_until 'shows "^over 0"' || fail "$(<screen)"
    [ "${#lines[@]}" -eq 1 ] || fail "expected no word of the wait: $(<screen)"
}

@test "the line of --wait for a slot, and behind readers, shows the holder in 80 columns" {
    key=job
    for _ in 1 2; do dlock acquire --json --slots 2 --ttl 10m "$key" >/dev/null; done
    in_tmux 80 "$DLOCK" run --slots 2 --wait 10m "$key" -- true
    wait_until "shows '^dlock: $key: waiting for [0-9.]+s, 2 held, first by .*:[0-9]+'" || fail "$(<screen)"
    in_tmux 80 "$DLOCK" run --slots 2 --wait 10m "$key" -- true
    wait_until "shows '^dlock: $key: waiting for [0-9.]+s, 1 before us, 2 held, first by .*:[0-9]+'" || fail "$(<screen)"
    for _ in 1 2; do dlock acquire --shared --label report --ttl 10m "$key" >/dev/null; done
    in_tmux 80 "$DLOCK" run --wait 10m "$key" -- true
    wait_until "shows '^dlock: $key: waiting for [0-9.]+s, shared by 2, first .*:[0-9]+ .report.'" || fail "$(<screen)"
}

@test "the line of --wait says why nobody gets the lock" {
    works run --min-hold 10m --label job "$key" -- true
    in_tmux 36 "$DLOCK" run --wait 20m "$key" -- true # where there is room
    wait_until 'shows "^dlock: $key: waiting for [0-9.]+m?s$"' || fail "$(<screen)"
    works break --force --quiet "$key"
    wait_until 'shows "^over 0"' || fail "$(<screen)"
    in_tmux 200 "$DLOCK" run --restart-guard 1h --wait 10m "$key" -- true
    wait_until 'shows "^dlock: $key: waiting for [0-9.]+s, $(node a): it started .*--restart-guard[)]"' || fail "$(<screen)"
    tmux -S "$terminal" send-keys C-c
    wait_until 'shows "^over 130"' || fail "$(<screen)"
}

@test "status --watch is laid out anew when the terminal is resized" {
    held_locks
    in_tmux 200 "$DLOCK" status --watch 1h
    wait_until 'shows "NODES$" && [ ${#lines[@]} -eq 10 ]' || fail "$(<screen)"
    [[ ${lines[0]} == *', every 1h00m' ]] || fail "${lines[0]}"
    tmux -S "$terminal" resize-window -x 80 -y 30
    wait_until 'shows "HELD$" && [ ${#lines[@]} -eq 10 ]' || fail "$(<screen)"
    ! shows 'FENCE|WAITING|NODES' || fail "$(<screen)"
    sed -i 1d screen
    lines=("${lines[@]:1}")
    rows 8
    all_differ KEY
    all_differ OWNER
    all_differ LABEL
    tmux -S "$terminal" resize-window -x 200 -y 60
    wait_until 'shows "NODES$" && [ ${#lines[@]} -eq 10 ]' || fail "$(<screen)"
    [ "$(grep -cF .. screen)" -eq 0 ] || fail "$(<screen)"
    tmux -S "$terminal" send-keys C-c
    wait_until 'shows "^over 0"'
}
