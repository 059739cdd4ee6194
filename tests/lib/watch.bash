# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154
#
# What a test file has started ends with it, however it ends: a process of its own looks every second whether bats, and the
# make above it, still run.  A part of redis.bash.

# watch_parents: from now on.  It outlives a signal to the process group of make.
watch_parents() {
    local root chain born
    [ ! -e "$BATS_FILE_TMPDIR/watch" ] || return 0
    : >"$BATS_FILE_TMPDIR/watch"
    find_root
    find_parents
    set -m
    (
        set +em
        trap - ERR EXIT
        trap '' HUP INT QUIT TERM
        exec </dev/null >/dev/null 2>&1 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-
        cd / || exit
        short_sleep 0 # makes the pipe
        exec 9<>"$BATS_FILE_TMPDIR/nap"
        while parents_run; do read -rt 1 -u 9; done
        end_descendants
    ) &
    set +m
    echo $! >"$BATS_FILE_TMPDIR/watch"
    disown $!
}

# find_parents: in $chain the processes from this test file's up to the highest make (or bats), in $born when they began.
find_parents() {
    local pid=$$ top=0 suite='' line name args stat
    chain=() born=()
    while [ "$pid" -gt 1 ] && { read -rd '' line <"/proc/$pid/stat" || [ -n "$line" ]; } 2>/dev/null; do
        name=${line#*\(} name=${name%)*}
        mapfile -d '' args <"/proc/$pid/cmdline"
        case ${args[*]} in
            *bats-exec-suite\ *) suite=yes ;;
            # The test itself and its subshells end before the file does.
            *bats-exec-file\ *) [ -n "$suite" ] || { chain=() born=(); } ;;
        esac
        read -ra stat <<<"${line##*) }"
        chain+=("$pid") born+=("${stat[19]}")
        [[ $name != make && $name != gmake && ${args[*]} != */bats-core/* ]] || top=${#chain[@]}
        pid=${stat[1]}
    done
    chain=("${chain[@]:0:top}")
}

# parents_run: all of them.  What is below one that does not is killed: on its own it would go on.
parents_run() {
    local i gone=
    for ((i = ${#chain[@]} - 1; i >= 0; i--)); do
        if ! still_runs "$i"; then
            gone=yes
        elif [ -n "$gone" ]; then
            kill -KILL "${chain[i]}"
            orphaned=yes
        fi
    done
    [ -z "$gone" ]
}

# still_runs I: and is no make that was interrupted and waits for its jobs, which know nothing of it: INT has become fatal.
still_runs() {
    local stat text without_int='[0-9a-f]*[014589cd]'
    process_stat "${chain[$1]}" && [[ ${stat[0]} != [ZX] && ${stat[19]} = "${born[$1]}" ]] || return
    { read -rd '' text <"/proc/${chain[$1]}/status"; } 2>/dev/null
    [[ ! $text =~ ^Name:.g?make[[:space:]].*SigIgn:.${without_int}.SigCgt:.${without_int}[[:space:]] ]]
}

# end_descendants: of this test file, known by their environment, by their working folder (Redis overwrites its
# environment), or by their parents.
end_descendants() {
    local pids self=$BASHPID _
    for _ in 1 2 3; do
        pids=$({
            env -u BATS_FILE_TMPDIR grep -lzsx "BATS_FILE_TMPDIR=$BATS_FILE_TMPDIR" /proc/[0-9]*/environ
            find /proc/[0-9]*/cwd -maxdepth 0 \( -lname "$root/*" -o -lname "$BATS_FILE_TMPDIR/*" \)
        } | cut -d/ -f3 | cat - <(
            echo
            ps -Ao pid=,ppid=
        ) | awk -v self="$self" '
            !NF { listed = 1 }
            !listed { ours[$1] = 1 }
            listed { parent[$1] = $2 }
            END {
                for (pid in parent) {
                    is_ours = 0
                    for (up = pid; up > 1 && up != self; up = parent[up]) is_ours += up in ours
                    if (is_ours && up != self) print pid
                }
            }')
        [ -n "$pids" ] || break
        kill -KILL $pids
        read -rt 0.1 -u 9
    done
    rm -rf "$root"
    [ -z "${orphaned-}" ] || rm -rf "$BATS_RUN_TMPDIR"
}
