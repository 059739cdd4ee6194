# SPDX-License-Identifier: MIT
"""Slots and shared locks beside an exclusive lock."""

import os
import time

from lib.lab import Redis, until
from lib.locks import Dlock
from lib.report import median, percentile, spread
from lib.waiters import Crowd, Holder, wait_for

DEFAULT_ROUNDS, QUICK_ROUNDS = 200, 2
SLOTS, WAITERS, READERS = 4, 200, 100


class Mode(Dlock):
    """dlock run with options, on a key of its own."""

    def __init__(self, program, servers, options, wait=(), key="key"):
        super().__init__(" ".join(options) or "exclusive", program, servers)
        self.options, self.wait, self.key = options, wait, key

    def argv(self, *command):
        return [*self.words("run"), *self.options, *self.wait, self.key, *command]


def modes():
    """What is measured, and the locks that others hold meanwhile."""
    slots, shared = ("--slots", str(SLOTS)), ("--shared",)
    return [("exclusive", (), 0), (f"a slot of {SLOTS}, all free", slots, 0),
            (f"a slot of {SLOTS}, the only free one", slots, SLOTS - 1), ("the first reader", shared, 0),
            ("a reader that joins another", shared, 1)]


def costs(bench, count, rounds):
    """Of each mode over COUNT nodes: milliseconds and their ratio to the exclusive lock, and requests to each node."""
    lab, servers = bench.lab, [Redis(bench.lab, bench.redis) for _ in range(count)]
    locks, holders, names = [], [], []
    for i, (name, options, others) in enumerate(modes()):
        locks.append(Mode(bench.dlock, servers, options, key=f"key{i}"))
        names.append(name)
        holders += [Holder(lab, locks[-1]) for _ in range(others)]
    runs = lab.turns_within(bench.budget(30), rounds, [(lock.argv("/bin/true"), "") for lock in locks])
    rows = []
    for name, lock, mine in zip(names, locks, runs):
        heard = []
        for _ in range(min(rounds, 20)):
            stop = lock.listen()
            lab.finish(lab.start(lock.argv("/bin/true")))
            heard.append(stop() / count)
        walls = [run["wall"] for run in mine.values()]
        ratios = [mine[turn]["wall"] / runs[0][turn]["wall"] for turn in mine]
        rows.append([name, count, len(mine), f"{median(walls):.2f}", spread(ratios),
                     f"{median([run['cpu'] for run in mine.values()]):.2f}", f"{sum(heard) / len(heard):.2f}"])
    for holder in holders:
        holder.let_go()
        holder.end()
    return rows


def crowd(bench, redis, options, held, count, rounds):
    """Milliseconds for each of COUNT waiters, from the end of the first holder to that of the last waiter; requests."""
    lock, times = Mode(bench.dlock, [redis], options, ("--wait", "forever")), []
    for turn in range(rounds + 1):
        holders = [Holder(bench.lab, lock) for _ in range(held)]
        waiters = Crowd(bench.lab, lock, count, ("/bin/sleep", "0.001"))
        wait_for(lock, count)
        stop = lock.listen() if turn == rounds else None
        for holder in holders:
            holder.let_go()
        _, ended = waiters.end()
        begun = min(holder.end() for holder in holders)
        if stop:
            return times, stop() / count
        times.append((ended - begun) / 1e6 / count)


def lines(path):
    return os.path.getsize(path) if os.path.exists(path) else 0


def readers(bench, redis, count):
    """Milliseconds from the end of the writer's command until all readers are in the lock, and until their commands run."""
    writer = Mode(bench.dlock, [redis], ())
    reader = Mode(bench.dlock, [redis], ("--shared",), ("--wait", "forever"))
    holder, came, path = Holder(bench.lab, writer), bench.lab.path("came"), bench.lab.path("stay")
    os.mkfifo(path)
    stay = os.open(path, os.O_RDWR)
    waiters = Crowd(bench.lab, reader, count, ("/bin/sh", "-c", f"echo >>{came}; read word <{path}"))
    wait_for(reader, count)
    holder.let_go()
    until(lambda: redis.connection.call("ZCARD", "{key}:dlock:holds") >= count, "the readers")
    inside = time.monotonic_ns()
    until(lambda: lines(came) >= count, "their commands")
    begun = time.monotonic_ns()
    os.write(stay, b"\n" * count)
    waiters.end()
    freed = holder.end()
    os.close(stay)
    os.unlink(came)
    os.unlink(path)
    return (inside - freed) / 1e6, (begun - freed) / 1e6


def main(bench, report):
    rounds = bench.rounds(DEFAULT_ROUNDS, QUICK_ROUNDS)
    quick = bench.options.quick
    report.text("""`dlock run` of `true`, each mode once a round, in random order; the ratio is to the exclusive lock of the
        same round. Requests are those that each node gets for one run, counted by MONITOR in runs that are not timed.
        Others hold their slots, or the lock as readers, all the time.""")
    report.table(["lock", "nodes", "runs", "ms", "ratio to exclusive", "CPU ms", "requests to a node"],
                 [row for count in (1, 5) for row in costs(bench, count, rounds)])
    redis, count, rows = Redis(bench.lab, bench.redis), 8 if quick else WAITERS, []
    for name, options, held in (("exclusive", (), 1), (f"{SLOTS} slots", ("--slots", str(SLOTS)), SLOTS)):
        times, requests = crowd(bench, redis, options, held, count, 1 if quick else 5)
        rows.append([name, count, len(times), f"{median(times):.2f}", f"{max(times):.2f}", f"{requests:.2f}"])
    report.text("""A crowd that all waits while the lock, or each slot, is held, each for a command of a millisecond: the
        time from the end of the first holder's command to the end of the last waiter, for each waiter; and the requests
        that each made from then on.""")
    report.table(["lock", "waiters", "runs", "ms each", "most", "requests each"], rows)
    count = 8 if quick else READERS
    times = [readers(bench, redis, count) for _ in range(1 if quick else 10)]
    inside, begun = zip(*times)
    report.text("""Readers that all wait behind a writer, from the end of its command: until all of them are in the lock, as
        its server sees it, and until the commands of all run, which this machine has to start.""")
    report.table(["readers", "runs", "all in the lock, ms", "p95", "all commands run, ms", "p95"],
                 [[count, len(times), f"{median(inside):.1f}", f"{percentile(inside, 95):.1f}", f"{median(begun):.1f}",
                   f"{percentile(begun, 95):.1f}"]])
    report.figure("readers in the lock", median(inside))
