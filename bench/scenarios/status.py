# SPDX-License-Identifier: MIT
"""`dlock status` over very many locks: time, memory, and how long Redis makes others wait meanwhile."""

import shutil
import subprocess
import threading
import time

from lib.lab import Connection, Redis
from lib.report import median, percentile

DEFAULT_ROUNDS, QUICK_ROUNDS = 5, 1

COPY = """
for i = ARGV[1], ARGV[2] do
    local name = string.format('lock:%06d', i)
    redis.call('RESTORE', name, 3600000, ARGV[3])
    redis.call('RESTORE', '{' .. name .. '}:dlock', 7200000, ARGV[4])
end
"""


ENDED = """
for i = ARGV[1], ARGV[2] do
    redis.call('RESTORE', string.format('{job:%06d}:dlock:history', i), 7200000, ARGV[3])
end
"""


def fill_ended(bench, server, count):
    """The histories of that many jobs that have ended, copies of a real one."""
    redis = server.connection
    subprocess.run([bench.dlock, "run", "--node", server.path, "ended", "--", "true"], env=bench.lab.environment,
                   check=True)
    copy = redis.call("DUMP", "{ended}:dlock:history")
    redis.call("FLUSHALL")
    for begin in range(0, count, 1000):
        redis.call("EVAL", ENDED, 0, begin, min(begin + 999, count - 1), copy)


def fill(bench, server, count):
    """That many locks of dlock's, copies of a real one."""
    redis = server.connection
    subprocess.run([bench.dlock, "acquire", "--node", server.path, "--ttl", "1h", "first"], env=bench.lab.environment,
                   check=True, stdout=subprocess.DEVNULL)
    before = redis.info("memory", "used_memory")
    copies = redis.call("DUMP", "first"), redis.call("DUMP", "{first}:dlock")
    for begin in range(1, count, 1000):
        redis.call("EVAL", COPY, 0, begin, min(begin + 999, count - 1), *copies)
    return (redis.info("memory", "used_memory") - before) / max(count - 1, 1)


class Pinger:
    """Asks Redis for a word again and again, and keeps how long each answer took, in milliseconds."""

    def __init__(self, server):
        self.connection, self.times, self.on = Connection(server.path), [], True
        self.thread = threading.Thread(target=self.ping)
        self.thread.start()

    def ping(self):
        while self.on:
            begun = time.perf_counter()
            self.connection.call("PING")
            self.times.append((time.perf_counter() - begun) * 1000)
            time.sleep(0.0005)  # lest the client is what is measured

    def end(self):
        self.on = False
        self.thread.join()
        self.connection.close()
        return self.times


def slowest(redis):
    """Milliseconds of the longest command since the last time, and which it was."""
    log = redis.call("SLOWLOG", "GET", 100000)
    redis.call("SLOWLOG", "RESET")
    worst = max(log, key=lambda entry: entry[2], default=None)
    return (worst[2] / 1000, worst[3][0].decode()) if worst else (0, "-")


def main(bench, report):
    count = bench.options.locks or (300 if bench.options.quick else 100000)
    rounds = bench.rounds(DEFAULT_ROUNDS, QUICK_ROUNDS)
    server = Redis(bench.lab, bench.redis)
    redis = server.connection
    size = fill(bench, server, count)
    redis.call("CONFIG", "SET", "slowlog-log-slower-than", "50")
    redis.call("CONFIG", "SET", "slowlog-max-len", "100000")
    commands = {
        "dlock status": [bench.dlock, "status", "--node", server.path],
        "dlock status --json": [bench.dlock, "status", "--json", "--node", server.path],
        "dlock status 'lock:0000*'": [bench.dlock, "status", "--node", server.path, "lock:0000*"],
        "dlock status lock:000042": [bench.dlock, "status", "--node", server.path, "lock:000042"],
    }
    if bench.peers.has("redis-cli"):
        commands["redis-cli --scan"] = [shutil.which("redis-cli"), "-s", server.path, "--scan"]
        commands["redis-cli KEYS '*'"] = [shutil.which("redis-cli"), "-s", server.path, "KEYS", "*"]
    ended = {f"dlock status --all{option}": [bench.dlock, "status", "--all", *option.split(), "--node", server.path]
             for option in ("", " --json", " --prometheus")}
    rows = []
    pinger = Pinger(server)
    time.sleep(0.2 if bench.options.quick else 2)
    idle = pinger.end()
    rows.append(["nothing", "-", "-", "-", "-", f"{percentile(idle, 99):.2f}", f"{max(idle):.1f}"])
    for name, argv in {**commands, **ended}.items():
        if name == "dlock status --all":
            fill_ended(bench, server, count)
        slowest(redis)
        pinger = Pinger(server)
        runs = bench.lab.turns_within(bench.budget(8), rounds, [(argv, "")], 1)[0].values()
        waits = pinger.end()
        stall, which = slowest(redis)
        wall, cpu = (median(run[what] for run in runs) for what in ("wall", "cpu"))
        rows.append([f"`{name}`", f"{wall:.0f}", f"{cpu:.0f}", f"{max(run['rss'] for run in runs) / 1024:.1f}",
                     f"{stall:.2f} ({which})", f"{percentile(waits, 99):.2f}", f"{max(waits):.1f}"])
        report.figure(f"status {name}", wall)
        report.figure(f"stall {name}", stall)
    report.text(f"""{count:,} locks held on one Redis (each about {size:.0f} bytes there), up to {rounds} runs of each
        command, its output thrown away; for --all, as many jobs that have ended. The stall is the longest single command that Redis saw (SLOWLOG); beside it how
        long another client waited for a PING meanwhile, over a unix socket.""")
    report.table(["command", "ms", "CPU ms", "MiB", "longest stall, ms", "PING p99, ms", "PING most, ms"], rows)
