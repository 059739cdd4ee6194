# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154
#
# Other lock clients, beside redis.bash: redis-py, and node-redlock on ioredis.

need_redis_py() { "$PYTHON" -c 'import redis' 2>/dev/null || must_run "$PYTHON has no module redis"; }

# js LINE...: JavaScript that finds acquire(), which gives null where the lock is held, and
# release(), node-redlock's on our key and nodes, in its version 4 or 5; `clients` are those of ioredis.
js() {
    command node -e '
const [key, code, ...nodes] = process.argv.slice(1);
const Redis = require("ioredis");
const module_ = require("redlock");
const Redlock = module_.default || module_;
const clients = nodes.map((path) => new Redis(path, { commandTimeout: 2000 }));
clients.forEach((client) => client.on("error", () => {}));
const redlock = new Redlock(clients, { retryCount: 0 });
redlock.on("error", () => {});
const acquire = () => (redlock.acquire ? redlock.acquire([key], 20000) : redlock.lock(key, 20000)).catch(() => null);
const release = (lock) => (lock.release ? lock.release() : lock.unlock());
const fs = require("fs");
const assert = require("assert");
const sleep = (ms) => new Promise((f) => setTimeout(f, ms));
const until = async (file) => { while (!fs.existsSync(file)) await sleep(20); };
const run = Object.getPrototypeOf(async function () {}).constructor;
new run("acquire", "release", "fs", "assert", "until", "sleep", "clients", "key", code)(acquire, release, fs, assert, until, sleep, clients, key)
    .then(() => Promise.all(clients.map((client) => client.quit().catch(() => {}))))
    .then(() => process.exit(0), (error) => { console.error(error); process.exit(1); });' \
        "$key" "$*" $DLOCK_NODES
}

need_redlock() {
    type -P node >/dev/null || must_run "there is no node"
    command node -e 'require("redlock"); require("ioredis")' 2>/dev/null || must_run "node finds no redlock and ioredis"
}
