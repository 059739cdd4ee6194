# SPDX-License-Identifier: MIT
"""How long a lock takes from one command to the next."""

import random
import subprocess
import time

from lib import plot
from lib.report import median, percentile, spread
from lib.waiters import Holder, in_turn, instant, ratios, wait_for

DEFAULT_ROUNDS, QUICK_ROUNDS = 150, 2


def latency(lab, lock):
    """Milliseconds from the end of the holder's command to the begin of the waiter's."""
    holder = Holder(lab, lock)
    waiter = lab.start(lock.argv(lab.spawn, "stamp"), stdout=subprocess.PIPE)
    wait_for(lock, 1)
    # Whoever polls is met at any moment between two looks.
    time.sleep(random.uniform(0, 0.3) if lock.polls else random.uniform(0.005, 0.01))
    holder.let_go()
    begun = instant(lab.finish(waiter), "begun")
    return (begun - holder.end()) / 1e6


def main(bench, report):
    locks = [*bench.peers.all(), *bench.peers.least("wait")]
    rounds = bench.rounds(DEFAULT_ROUNDS, QUICK_ROUNDS)
    times = in_turn(locks, rounds, bench.budget(90), lambda lock: latency(bench.lab, lock))
    base = times.get("flock", times[locks[0].name])
    rows, bars = [], []
    for lock in locks:
        mine = list(times[lock.name].values())
        ratio = ratios(times[lock.name], base)
        rows.append([lock.name, len(mine), f"{median(mine):.2f}", f"{percentile(mine, 95):.2f}", f"{max(mine):.2f}",
                     spread(ratio)])
        bars.append((lock.name, lock.kind, percentile(mine, 5), median(mine), percentile(mine, 95)))
        report.figure(f"handoff {lock.name}", median(ratio))
        report.figure(f"handoff ms {lock.name}", median(mine))
    report.text("""One holds the lock, one waits. Milliseconds from the end of the holder's command to the first act
        of the waiter's: the holder's wrapper has to notice the end and release, the waiter's to wake and to start its
        command. The lock is let go at a random moment. "The least" is `bench/least.c`: a waiter is blocked on a list,
        to which the script that releases pushes, and then tries again; no fence, no queue, and a holder that dies
        leaves all of them blocked.""")
    report.table(["lock", "runs", "median", "p95", "most", f"ratio to {locks[0].name}"], rows)
    report.plot("handoff", plot.bars("From the end of one command to the begin of the next", "ms, logarithmic", bars,
                                     True), "Bars: milliseconds of each hand-over")
