# SPDX-License-Identifier: MIT
"""Many that want one lock: time, requests at the server, order."""

import math
import resource

from lib import plot
from lib.locks import OnRedis
from lib.report import median
from lib.waiters import drain, herd, in_turn, order, ratios, requests
from scenarios.idle import memory

DEFAULT_ROUNDS, QUICK_ROUNDS = 20, 1
SAMPLE = 100
# A waiter has two connections, and the server keeps some descriptors for itself.
DESCRIPTORS_EACH, DESCRIPTORS_SPARE = 2, 100


def contest(bench, report, count, rounds, budget):
    """One row for each lock, and its milliseconds for each acquisition."""
    locks = [lock for lock in [*bench.peers.all(), *bench.peers.least("wait")] if lock.most >= count]
    herds = in_turn(locks, rounds, budget / 3, lambda lock: herd(bench.lab, lock, count))
    drains = in_turn(locks, rounds, budget / 3, lambda lock: drain(bench.lab, lock, count))
    rows, each = [], {}
    for lock in locks:
        cells = []
        for what, times in (("herd", herds), ("drain", drains)):
            mine, base = times[lock.name], times.get("flock", times[locks[0].name])
            ratio = median(ratios(mine, base))
            cells += [f"{median(mine.values()):.1f}", f"{ratio:.2f}"]
            report.figure(f"{what} {count} {lock.name}", ratio)
        asked = requests(bench.lab, lock, count)
        if asked is not None:
            report.figure(f"requests {count} {lock.name}", asked)
        rows.append([count, lock.name, len(drains[lock.name]), *cells,
                     "-" if asked is None else f"{asked:.2f}", f"{order(bench.lab, lock, count):+.2f}"])
        each[lock.name] = median(drains[lock.name].values()) / count
        report.figure(f"each {count} {lock.name}", each[lock.name])
    return rows, each


def occupied(lock, crowd):
    """KiB: proportional memory of a waiter's process, of some that stand for all; and all memory of the server."""
    pids = crowd.pids()
    found = [memory([pid])[1] for pid in pids[::max(len(pids) // SAMPLE, 1)]]
    server = lock.servers[0].connection.info("memory", "used_memory") / 1024 if isinstance(lock, OnRedis) else 0
    return [f"{median(found):.0f}" if found else "-", f"{server:,.0f}" if server else "-"]


def possible(counts):
    """Those that the server can serve, and a sentence about the others."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    fit = [n for n in counts if n * DESCRIPTORS_EACH + DESCRIPTORS_SPARE <= most]
    rest = ", ".join(f"{n:,}" for n in counts if n not in fit)
    return fit, f" Not measured: {rest} waiters, since a process here may have {most:,} descriptors." if rest else ""


def crowds(bench, report, counts, rounds, budget):
    """Rows of the largest crowds, which only wait."""
    locks = ([bench.peers.get("flock")] if bench.peers.has("flock") else []) + [
        bench.peers.dlock(where) for where in ("unix socket", "TCP")]
    rows, each = [], {}
    for count in counts:
        used = {}
        drains = in_turn(locks, rounds, budget * count / sum(counts),
                         lambda lock, n=count, kept=used: drain(
                             bench.lab, lock, n, look=lambda crowd: kept.update({lock.name: occupied(lock, crowd)})))
        for lock in locks:
            mine = drains[lock.name]
            each.setdefault(lock.name, {})[count] = median(mine.values()) / count
            rows.append([count, lock.name, len(mine), f"{median(mine.values()):.0f}",
                         f"{median(ratios(mine, drains[locks[0].name])):.2f}", f"{each[lock.name][count]:.2f}", *used[lock.name]])
    for name, mine in each.items():
        for count in counts[1:]:
            report.figure(f"flat {count} {name}", mine[count] / mine[counts[0]])
    return rows, each


def main(bench, report):
    counts = bench.options.contenders or ([2, 3] if bench.options.quick else [2, 10, 50, 200, 500])
    rounds = bench.rounds(DEFAULT_ROUNDS, QUICK_ROUNDS)
    rows, points, share = [], {}, bench.budget(270) / (len(counts) + 2)
    for count in counts:
        bench.say(f"contend: {count}")
        # The more there are, the less chance there is in one round, and the longer it takes.
        more, each = contest(bench, report, count, max(math.ceil(rounds * min(1, 20 / count)), min(rounds, 3)), share)
        rows += more
        for name, value in each.items():
            points.setdefault(name, []).append((count, value))
    report.text("""So many commands (`sleep 0.001`) want the lock once each. herd: they are started at once and the lock
        is free; milliseconds from the first start to the last end. drain: all wait, then the holder's command ends;
        milliseconds from there to the last end. Requests at a server (at each of five) for each
        acquisition, in a herd, with those of its release and of waiting. tau: Kendall's, of coming one by one and being
        served, +1 is first come, first served. A ratio is the median of those to flock in the same round. "The
        least" is `bench/least.c`, as in the hand-off: what it costs over Redis without any safety.""")
    report.table(["contenders", "lock", "runs", "herd ms", "ratio", "drain ms", "ratio", "requests each", "tau"], rows)
    report.plot("contend", plot.lines("Time for each acquisition while others wait", "contenders", "ms, logarithmic",
                                      list(points.items()), (True, True)), "Lines: milliseconds for each acquisition")

    counts = bench.options.waiting or ([3, 6] if bench.options.quick else [200, 500, 2000])
    counts, missing = possible(counts)
    bench.say(f"contend: waiting {counts}")
    rows, _ = crowds(bench, report, counts, min(rounds, 3), 2 * share)
    report.text(f"""Large crowds that all wait when the holder's command ends, as drain above; KiB proportional of one
        waiter's process, and KiB of all that the server keeps (used_memory) while they wait.{missing}""")
    report.table(["waiting", "lock", "runs", "drain ms", "ratio", "ms for each", "KiB each", "KiB of the server"],
                 rows)
