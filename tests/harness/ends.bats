#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# A test that fails or is killed leaves no process behind, as one that succeeds.

load ../lib/redis

# bats calls teardown in a trap when a test has failed.
@test "a process is found to be alive in a trap, after a failure" {
    attempt bash -c '. "$1"; trap "alive \$\$ && echo alive" EXIT; false' bash "$lib_dir/process.bash"
    prints alive
}

@test "no server outlives a make or a bats that is killed" {
    at=@
    cat >inner.bats <<EOF
load $lib_dir/redis
setup_file() { redis_start_tcp a; servers_start b tcp/silent; }
${at}test "waits" {
    start run "\$key" sleep 60
    echo "\$(server_pid a) \$(server_pid b) \$bg" >$PWD/pids
    sleep 60
}
EOF
    printf 'all:\n\tmake -f inner.mk test\ntest:\n\t%s inner.bats\n' "$BATS_ROOT/bin/bats" >inner.mk
    for who in KILL-make INT-make TERM-bats; do
        set -m # else INT is ignored
        env -i PATH="$PATH" TMPDIR="$BATS_TEST_TMPDIR" DLOCK="$DLOCK" make -f inner.mk >inner.out 2>&1 3>&- 4>&- &
        pid=$!
        set +m
        wait_until '[ -s pids ]' 30 || fail "$(<inner.out)"
        [[ $who = *make ]] || pid=$(pgrep -f "bats-exec-suite .*$PWD/inner.bats")
        kill "-${who%-*}" "$pid"
        for pid in $(<pids); do wait_until "! alive $pid" || fail "$who: $pid still runs"; done
        rm pids
    done
}
