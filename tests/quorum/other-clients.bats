#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# dlock beside other Redlock clients on the same five nodes and key: node-redlock, and a plain
# Redlock loop on redis-py.  Either side keeps the other out.

load ../lib/quorum
load ../lib/peers

# -------------------------------------------------- a plain Redlock on redis-py

# py LINE...: Python code that finds acquire() and release() of our key.
py() {
    "$PYTHON" -c '
import os, redis, secrets, sys, time
key, code, nodes = sys.argv[1], sys.argv[2], sys.argv[3:]
clients = [redis.Redis(unix_socket_path=path, socket_timeout=1) for path in nodes]
COMPARE = "if redis.call(\"get\", KEYS[1]) == ARGV[1] then return redis.call(\"del\", KEYS[1]) end return 0"
token = secrets.token_hex(20)

def release():
    count = 0
    for client in clients:
        try:
            count += client.eval(COMPARE, 1, key, token)
        except redis.RedisError:
            pass
    return count

def acquire(ttl=20000):
    start, count = time.monotonic(), 0
    for client in clients:
        try:
            count += bool(client.set(key, token, nx=True, px=ttl))
        except redis.RedisError:
            pass
    left = ttl - (time.monotonic() - start) * 1000 - ttl / 100 - 2
    if count > len(clients) // 2 and left > 0:
        return True
    release()
    return False

def until(file):
    while not os.path.exists(file):
        time.sleep(0.02)

exec(code)' "$key" "$(printf '%s\n' "$@")" $DLOCK_NODES
}

# ---------------------------------------------------------------- what both must do

# The same steps for each peer: PEER is py or js, and these say them in its language.
hold() {
    case $1 in
        py) py 'assert acquire()' 'open("begun", "w").close()' 'until("stop")' 'assert release() >= 3' ;;
        js) js 'const lock = await acquire(); assert(lock); fs.writeFileSync("begun", "");
            await until("stop"); await release(lock);' ;;
    esac
}

fails_to_acquire() {
    case $1 in
        py) py 'assert not acquire()' ;;
        js) js 'assert.equal(await acquire(), null);' ;;
    esac
}

acquires() {
    case $1 in
        py) py 'assert acquire()' 'assert release() >= 3' ;;
        js) js 'const lock = await acquire(); assert(lock); await release(lock);' ;;
    esac
}

# visits the resource, as dlock's contenders do, until the file "enough" is there.
visit() {
    case $1 in
        py) py 'while not os.path.exists("enough"):' '    if acquire():' \
            '        try:' '            os.mkdir("inside")' \
            '        except FileExistsError:' '            open("overlaps", "a").write("a peer met another\n")' \
            '        time.sleep(0.01)' '        open("peer", "a").write("in\n")' \
            '        os.path.isdir("inside") and os.rmdir("inside")' '        release()' \
            '    time.sleep(0.03 * secrets.randbelow(100) / 100)' ;;
        js) js 'while (!fs.existsSync("enough")) {
            const lock = await acquire();
            if (lock) {
                try { fs.mkdirSync("inside"); } catch (e) { fs.appendFileSync("overlaps", "a peer met another\n"); }
                await sleep(10);
                fs.appendFileSync("peer", "in\n");
                try { fs.rmdirSync("inside"); } catch (e) { fs.appendFileSync("overlaps", "inside is gone\n"); }
                await release(lock).catch(() => {});
            }
            await sleep(Math.random() * 30);
        }' ;;
    esac
}

keeps_dlock_out() {
    hold "$1" >peer.out 2>&1 3>&- 4>&- &
    local peer=$!
    wait_until "[ -e begun ] || ! alive $peer"
    [ -e begun ] || fail "$(cat peer.out)"
    refuses 75 "$key: held by a client that is not dlock" acquire "$key"
    refuses 75 '' run "$key" -- touch ran
    [ ! -e ran ]
    status_is '.state == "foreign"'
    refuses 1 "held by another" release "$key" "$OTHER_TOKEN"
    refuses 1 "held by another" renew "$key" "$OTHER_TOKEN"
    [ "$(holders "$key" 5)" -ge 3 ]
    start run --wait 20s "$key" -- touch ran
    touch stop
    wait "$peer"
    finishes 0
    [ -e ran ]
    # The peer may leave its own key on a minority; dlock leaves none.
    local dlocks i
    dlocks=$(rcli n1 hget "{$key}:dlock" gone)
    for i in 1 2 3 4 5; do
        [ "$(rcli "n$i" get "$key")" != "$dlocks" ] || fail "n$i holds the token of dlock"
    done
}

# kept N: N nodes hold the token of dlock.
kept() {
    local name count=0
    for name in $(node_names 5); do
        if [ "$(rcli "$name" get "$key")" = "$token" ]; then count=$((count + 1)); fi
    done
    [ "$count" -eq "$1" ]
}

# What a peer leaves behind on a minority, where its undo overtook its attempt: node-redlock sends that
# undo when a majority has refused, and to a node that lacks its scripts the attempt goes out twice.
clear_leftovers() {
    [ "$(holders "$key" 5)" -lt 3 ] || fail "a majority is held by nobody"
    on_all 5 del "$key"
}

is_kept_out() {
    take "$key" --ttl 60s
    wait_until 'kept 5'
    fails_to_acquire "$1"
    kept 5
    on_all 2 del "$key"
    fails_to_acquire "$1"
    kept 3
    dlock release "$key" "$token"
    wait_until 'kept 0'
    acquires "$1"
    clear_leftovers
    start_holding "$key" --ttl 6s 'while [ ! -e stop ]; do sleep 0.2; done'
    fails_to_acquire "$1"
    redis_stop n1
    redis_freeze n2
    fails_to_acquire "$1"
    redis_thaw n2
    stops 0
}

contends() {
    visit "$1" >peer.out 2>&1 3>&- 4>&- &
    local peer=$! i
    for i in 1 2 3 4 5 6 7 8 9 10; do
        gives 0 run --ttl 10s --wait 30s "$key" -- sh -c "$resource"
    done
    wait_until "[ -e peer ] || ! alive $peer" 30
    touch enough
    wait "$peer" || fail "$(cat peer.out)"
    no_overlap
    [ "$(visits)" -eq 10 ]
    [ -s peer ]
}

@test "redis-py: its Redlock excludes dlock until it is released" {
    need_redis_py
    keeps_dlock_out py
}

@test "redis-py: a lock of dlock excludes its Redlock, also with nodes that lack the lock, are dead or hang" {
    need_redis_py
    is_kept_out py
}

@test "redis-py: contending with dlock, both make progress and never overlap" {
    need_redis_py
    contends py
}

@test "node-redlock: its lock excludes dlock until it is released" {
    need_redlock
    keeps_dlock_out js
}

@test "node-redlock: a lock of dlock excludes it, also with nodes that lack the lock, are dead or hang" {
    need_redlock
    is_kept_out js
}

@test "node-redlock: contending with dlock, both make progress and never overlap" {
    need_redlock
    contends js
}
