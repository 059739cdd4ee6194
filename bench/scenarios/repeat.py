# SPDX-License-Identifier: MIT
"""How well the pairs can be repeated: the same table several times, each time with new servers."""

import time

from lib.lab import Redis
from lib.locks import Dlock, Least
from lib.report import median
from scenarios.overhead import PAIRS, pair

DEFAULT_TIMES, QUICK_TIMES, LEAST_TIMES = 3, 2, 2
LOCALE = "C.UTF-8"


def fresh(bench):
    """The locks, over servers that nobody has used."""
    def server():
        return Redis(bench.lab, bench.redis)
    places = [("unix socket", False), ("TCP", True)]
    return [*(Dlock(f"dlock, {where}", bench.dlock, [server()], tcp) for where, tcp in places),
            *(Least(f"the least, {where}", bench.lab.least, "run", server(), tcp) for where, tcp in places)]


def end(bench, lock):
    for server in lock.servers:
        server.connection.close()
        bench.lab.kill(server.process)


def measure(bench, times, count, budget):
    """The ratios of each lock: {name: [(of 10th percentiles, of medians)...]}, of fewer tables where time is short."""
    over, found = time.monotonic() + budget, {}
    for i in range(times):
        if i >= LEAST_TIMES and time.monotonic() > over:
            break
        for lock in fresh(bench):
            (base_low, low), (base_middle, middle) = pair(bench, bench.peers.get("flock"), lock, LOCALE, count)
            found.setdefault(lock.name, []).append((low / base_low, middle / base_middle))
            end(bench, lock)
    return found


def spread(values):
    """From the smallest to the largest, in percent of the median."""
    return (max(values) - min(values)) / median(values) * 100


def main(bench, report):
    times = bench.options.times or (QUICK_TIMES if bench.options.quick else DEFAULT_TIMES)
    count = bench.options.rounds or (2 if bench.options.quick else PAIRS)
    if not bench.peers.has("flock"):
        report.text("Not measured: a ratio to flock needs flock.")
        return
    rows = []
    for name, ratios in measure(bench, times, count, bench.budget(90)).items():
        cells = []
        for values in zip(*ratios):
            cells += [", ".join(f"{value:.3f}" for value in values), f"{spread(values):.1f}"]
        rows.append([name, len(ratios), *cells])
        report.figure(f"spread {name}", spread([low for low, _ in ratios]))
    report.text(f"""The pairs of `overhead` ({count} of each, locale {LOCALE}), several times, each time with Redis
        started anew. The ratio to flock of each time, and the spread: the largest less the smallest, in percent of
        their median. A difference between two versions of dlock that is smaller than the spread tells nothing.""")
    report.table(["lock", "times", "ratios of p10", "spread %", "ratios of medians", "spread %"], rows)
