#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# dlock status with a hundred thousand locks: the server serves others meanwhile, and the memory that
# it takes is that of the names.

load ../lib/redis

@test "a hundred thousand locks" {
    rcli a eval 'for i = 1, 100000 do
        local key = string.format("job:%06d", i)
        redis.call("set", key, "AAAAAAAAAAAAAAAAAAAAAA", "px", 3600000)
        redis.call("hset", "{" .. key .. "}:dlock", "token", "AAAAAAAAAAAAAAAAAAAAAA", "owner", "root@host:17",
            "label", "backup", "since", "1795262400000", "ttl", "3600000", "fence", "1795262400000000")
    end' 0
    for what in '' --json --prometheus; do
        rcli a config resetstat
        rcli a slowlog reset
        rcli a config set slowlog-log-slower-than 1000
        "$PYTHON" -c '
import resource, subprocess, sys, time
start = time.time()
subprocess.run(sys.argv[1:], stdout=open("out", "w"), check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, int((time.time() - start) * 1000))' \
            "$DLOCK" status --node-timeout 10s $what >used
        memory=$(cut -d ' ' -f 1 used)
        longest=$(rcli a --json slowlog get 128 | jq '[.[][2]] | max // 0')
        echo "# status $what: $memory KiB, $(cut -d ' ' -f 2 used) ms, slowest command $longest us," \
            "$(wc -l <out) lines" >&3
        [ "$(wc -l <out)" -ge 100000 ]
        [ "$memory" -le 40000 ] || fail "$memory KiB"
        # What holds the server up is the number of names that one SCAN looks at.
        [ "$(rcli a info commandstats | sed -n 's/^cmdstat_scan:calls=\([0-9]*\).*/\1/p')" -ge 150 ]
    done
}
