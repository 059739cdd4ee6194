// SPDX-License-Identifier: MIT
//
// redlock-nodes.js ROUNDS SOCKET...: node-redlock over these nodes, its connections kept.  Prints the
// milliseconds of each acquire and release.
"use strict";
const Redis = require("ioredis");
const redlock = require("redlock");
const Redlock = redlock.default || redlock;

async function main(rounds, sockets) {
    const clients = sockets.map((path) => new Redis(path));
    clients.forEach((client) => client.on("error", () => {}));
    const locks = new Redlock(clients);
    locks.on("error", () => {});
    locks.on("clientError", () => {});
    for (let i = 0; i < rounds + 5; i++) {
        const begun = process.hrtime.bigint();
        const lock = await (locks.acquire ? locks.acquire([`key${i}`], 30000) : locks.lock(`key${i}`, 30000));
        await (lock.release || lock.unlock).call(lock);
        if (i >= 5)
            console.log(Number(process.hrtime.bigint() - begun) / 1e6);
    }
    process.exit(0);
}

main(Number(process.argv[2]), process.argv.slice(3));
