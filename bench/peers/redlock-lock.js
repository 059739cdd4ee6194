// SPDX-License-Identifier: MIT
//
// redlock-lock.js PORT KEY COMMAND...: node-redlock with its defaults, but that it waits for as long as it takes.
// Versions 4 and 5 name the same things in different ways.
"use strict";
const { spawnSync } = require("child_process");
const Redis = require("ioredis");
const redlock = require("redlock");
const Redlock = redlock.default || redlock;

async function main(port, key, command) {
    const client = new Redis(port, "127.0.0.1");
    const locks = new Redlock([client], { retryCount: -1 });
    const lock = await (locks.acquire ? locks.acquire([key], 600000) : locks.lock(key, 600000));
    const { status } = spawnSync(command[0], command.slice(1), { stdio: "inherit" });
    await (lock.release || lock.unlock).call(lock);
    await client.quit();
    process.exitCode = status === null ? 1 : status;
}

main(Number(process.argv[2]), process.argv[3], process.argv.slice(4));
