#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# dlock beside other lock clients on the same key: a lock of theirs keeps dlock out, a
# lock of dlock's keeps them out, and what one side releases the other can take.

load ../lib/redis
load ../lib/peers

# ------------------------------------------------- redis-py, redis.lock.Lock

# py LINE...: Python code that finds `lock`, redis-py's lock on our key, and `client`.
py() {
    "$PYTHON" -c '
import redis, sys, time
client = redis.Redis(unix_socket_path=sys.argv[1])
lock = client.lock(sys.argv[2], timeout=20)
exec(sys.argv[3])' "$(node a)" "$key" "$(printf '%s\n' "$@")"
}

# start_py LINE...: the same in the background; it waits for the file "stop".
start_py() {
    py "$@" 'open("begun", "w").close()' 'import os' \
        'while not os.path.exists("stop"): time.sleep(0.02)' 'print(lock.release())' \
        >py.out 2>&1 3>&- 4>&- &
    peer=$!
    wait_until "[ -e begun ] || ! alive $peer"
    [ -e begun ] || cat py.out
}

@test "redis-py: its lock excludes dlock until it is released" {
    need_redis_py
    start_py 'assert lock.acquire(blocking=False)'
    refuses 75 "$key.*held" acquire "$key"
    refuses 75 '' run "$key" -- touch ran
    [ ! -e ran ]
    status_is '.state == "foreign"'
    touch stop
    wait "$peer"
    works run "$key" -- touch ran
    [ -e ran ]
}

@test "redis-py: a lock of dlock excludes it until it is released" {
    need_redis_py
    take "$key"
    py 'assert not lock.acquire(blocking=False)'
    py 'assert not lock.acquire(blocking_timeout=0.3)'
    [ "$(rcli a get "$key")" = "$token" ]
    dlock release "$key" "$token"
    py 'assert lock.acquire(blocking=False)' 'lock.release()'
}

@test "redis-py: it does not release a lock of dlock" {
    need_redis_py
    py 'assert lock.acquire(blocking=False)' 'client.delete(sys.argv[2])' 'import subprocess' \
        'subprocess.check_call(["'"$DLOCK"'", "run", "--min-hold", "20s", sys.argv[2], "--", "true"])' \
        'try:' '    lock.release()' '    sys.exit(1)' \
        'except redis.exceptions.LockNotOwnedError:' '    pass'
    is_held "$key"
}
