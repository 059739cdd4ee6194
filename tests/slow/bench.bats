#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# bench/run: every scenario in a moment, to see that it works and that its tables and plots are whole.

load ../lib/redis

: "${BENCH_SPAWN:=${DLOCK%/*}/bench/spawn}"
export BENCH_SPAWN

need_spawn() { [ -x "$BENCH_SPAWN" ] || must_run "no $BENCH_SPAWN; make bench/spawn builds it"; }

bench() { timeout --foreground -k 2 1200 "$PYTHON" "$top_srcdir/bench/run" "$@"; }

# well_formed FOLDER: the rows of a table are of one length and not empty, and SVG is XML with text and shapes.
well_formed() {
    "$PYTHON" - "$1" <<'END'
import glob, re, sys
import xml.etree.ElementTree as xml
tables = 0
for path in glob.glob(sys.argv[1] + "/*.md"):
    block = []
    for line in [*open(path, encoding="utf-8"), "\n"]:
        if line.startswith("|"):
            block.append([cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip())[1:-1]])
        elif block:
            assert len(block) > 2 and set(block[1]) == {"---"}, (path, block)
            assert len({len(row) for row in block}) == 1, (path, block)
            assert all(cell for row in block[2:] for cell in row), (path, block)
            tables, block = tables + 1, []
plots = glob.glob(sys.argv[1] + "/results/*.svg")
for path in plots:
    names = [element.tag.rpartition("}")[2] for element in xml.parse(path).iter()]
    assert names[0] == "svg" and names.count("text") > 4 and {"rect", "circle"} & set(names), path
    assert "nan" not in open(path, encoding="utf-8").read(), path
print(tables, len(plots))
END
}

@test "bench: every scenario writes its table and its plot" {
    need_spawn
    yields 0 bench --quick --only flock,dlock --out out
    [ "$(echo out/*.json)" = "$(printf 'out/%s.json ' aims contend fleet handoff idle keys modes overhead quorum repeat server status summary)out/zookeeper.json" ]
    passes well_formed out
    # One of each scenario, two of contend and of overhead, three of modes, and all of them again in RESULTS.md.
    prints "34 5"
    run -0 grep -c 'not measured' out/aims.md
    [ "$output" -eq 11 ]
    # The aims with a limit whose scenarios have measured it here.
    run -0 grep -cE '^\| [^|]+ \| at most [^|]+ \| [0-9., ]+ \| [0-9., ]+ \| (\*\*not )?reached' out/aims.md
    [ "$output" -eq 10 ]
    grep -q '^| dlock, five nodes |' out/overhead.md
    grep -q '^`bench/run --quick' out/RESULTS.md
}

@test "bench: a tool that is not installed is skipped with a message" {
    need_spawn
    mkdir empty
    REDIS_SERVER=$(command -v "$REDIS_SERVER") PYTHON=$(command -v "$PYTHON")
    export REDIS_SERVER PYTHON
    yields 0 env PATH="$PWD/empty" "$PYTHON" "$top_srcdir/bench/run" keys --quick --out out
    [[ $stderr == *'flock is skipped: flock is not installed'* ]] || fail "expected a word of flock"
    [[ $stderr == *'etcdctl is skipped: etcd is not installed'* ]] || fail "expected a word of etcdctl"
    grep -q '^Not measured: kazoo, java is not installed' out/RESULTS.md
    grep -q '^| dlock, unix socket | over | 2 |' out/keys.md
}

@test "bench: SIGINT ends everything that it started" {
    need_spawn
    set -m
    TMPDIR=$BATS_TEST_TMPDIR "$PYTHON" "$top_srcdir/bench/run" idle --seconds 100 --only flock,dlock --out out \
        </dev/null >bg.out 2>&1 3>&- 4>&- &
    bg=$!
    set +m
    # A flock and three dlocks hold, and each has its command.
    wait_until "[ \"\$(holders)\" -ge 4 ] || ! alive $bg" 200
    kill -INT "$bg"
    wait_until "! alive $bg" 20
    wait "$bg" || status=$?
    [ "$status" -eq 130 ] || fail "$(cat bg.out)"
    wait_until '[ -z "$(leftovers)" ]'
    [ -z "$(compgen -G "$BATS_TEST_TMPDIR/dlock-bench.*")" ]
}

# holders: how many commands hold a lock for a benchmark of this test.
holders() {
    local file count=0
    for file in $(env -u TEST_MARK grep -lzsx "TEST_MARK=$TEST_MARK" /proc/[0-9]*/environ); do
        tr '\0' ' ' 2>/dev/null <"${file%environ}cmdline" | grep -q "^$BENCH_SPAWN hold" && count=$((count + 1))
    done
    echo "$count"
}

@test "bench: a command that fails is no measurement" {
    need_spawn
    yields 1 "$BENCH_SPAWN" turns 2 ::: /bin/true ::: /bin/false
    [[ $stderr == *'this command failed: /bin/false'* ]]
    yields 2 bench nothing
    [[ $stderr == *'no scenario nothing'* ]]
}

@test "bench: the second command of a pair gets the token of the first" {
    need_spawn
    passes "$BENCH_SPAWN" turns 2 ::: /bin/echo word :::+ /bin/sh -c '[ "$DLOCK_TOKEN" = word ]' :::2 /bin/true
    [ "$(cut -d ' ' -f 1,2 <<<"$output" | sort | tr '\n' ,)" = "0 0,0 1,0 2,1 0,1 1," ]
}
