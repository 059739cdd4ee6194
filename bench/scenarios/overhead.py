# SPDX-License-Identifier: MIT
"""What a lock around `true` costs: wall, CPU, memory, system calls."""

import contextlib
import glob
import itertools
import os
import re
import shutil
import subprocess
import time

from lib import plot
from lib.report import median, percentile, spread
from lib.waiters import ratios

DEFAULT_ROUNDS, QUICK_ROUNDS = 400, 2
PAIRS = 1000


def system_calls(lab, argv):
    """Of all its processes, or None where nothing can count them."""
    if shutil.which("strace") is None:
        return None
    path = lab.path("strace")
    result = subprocess.run(["strace", "-f", "-qq", "-c", "-o", path, *argv], env=lab.environment, check=False,
                            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if result.returncode != 0:
        return None
    with open(path, encoding="ascii") as f:
        found = re.search(r"^100\.00\s+\S+\s+\S+\s+(\d+)\b.*total$", f.read(), re.M)
    return int(found[1]) if found else None


def server_cpu(lock):
    """Milliseconds of the processor that the lock's servers have used so far."""
    total = 0
    for process in lock.processes:
        for path in glob.glob(f"/proc/{process.pid}/task/*/schedstat"):
            with open(path, encoding="ascii") as f:
                total += int(f.read().split()[0])
    return total / 1e6


def serving(locks, work):
    """What the work takes: seconds, and milliseconds of the CPU of each lock's servers."""
    before, begun = {lock.name: server_cpu(lock) for lock in locks}, time.monotonic()
    work()
    return time.monotonic() - begun, {lock.name: server_cpu(lock) - before[lock.name] for lock in locks}


def server_share(lock, idle, busy, count):
    """What one command cost its servers, without what they do anyway."""
    if lock is None or not lock.processes:
        return "-"
    anyway = idle[1][lock.name] / idle[0] * busy[0]
    return f"{max(busy[1][lock.name] - anyway, 0) / count:.2f}"


@contextlib.contextmanager
def on_one_processor(processes):
    """This process, what it starts, and these others are on one processor."""
    here = os.sched_getaffinity(0)
    tasks = [0, *(int(task) for process in processes for task in os.listdir(f"/proc/{process.pid}/task"))]
    for task in tasks:
        os.sched_setaffinity(task, {max(here)})
    try:
        yield
    finally:
        for task in tasks:
            os.sched_setaffinity(task, here)


def pair(bench, base, lock, locale, count):
    """COUNT turns of flock and a lock around true; of each the 10th percentile, and of each the median."""
    environment, true = bench.lab.environment, shutil.which("true")
    bench.lab.environment = {**environment, "LC_ALL": locale}
    with on_one_processor(lock.processes):
        runs = bench.lab.turns(count, [(base.argv(true), ""), (lock.argv(true), "")])
    bench.lab.environment = environment
    walls = [[run["wall"] for run in mine.values()] for mine in runs]
    return [[percentile(wall, percent) for wall in walls] for percent in (10, 50)]


def pairs(bench, report, base, locks):
    """Each lock and flock in turn, and nothing else: what anybody can repeat."""
    count, rows = bench.options.rounds or (2 if bench.options.quick else PAIRS), []
    for lock, locale in itertools.product(locks, ("C.UTF-8", "C")):
        low, middle = pair(bench, base, lock, locale, count)
        rows.append([lock.name, locale, count, *(f"{ms:.2f}" for ms in (*low, *middle)), f"{low[1] / low[0]:.3f}",
                     f"{middle[1] / middle[0]:.3f}"])
        report.figure(f"pair {locale} {lock.name}", low[1] / low[0])
    report.text(f"""The same in pairs: `{base.name}` and one other in random order, {count} times, nothing else in between, all
        of it and the server on one processor. This is the figure to repeat (`repeat` measures how well): the caches
        are as warm for both, and no wake-up depends on who is on which processor. The 10th percentile is what other work
        changes least. In a UTF-8 locale flock reads the files of the locale (70 system calls); dlock never does. The table above
        is in the locale C.""")
    report.table(["lock", "locale", "pairs", f"{base.name}, p10 ms", "p10 ms", f"{base.name}, median ms", "median ms",
                  "ratio of p10", "of medians"], rows)


def main(bench, report):
    true, locks = shutil.which("true"), bench.peers.all()
    locks += bench.peers.least("run")
    names = ["true", *(lock.name for lock in locks)]
    argvs = [[true], *(lock.argv(true) for lock in locks)]
    rounds = bench.rounds(DEFAULT_ROUNDS, QUICK_ROUNDS)
    every = [1, *(min(lock.every, max(rounds // 2, 1)) for lock in locks)]
    runs = []
    busy = serving(locks, lambda: runs.extend(
        bench.lab.turns_within(bench.budget(60), rounds, list(zip(argvs, every)))))
    idle = serving(locks, lambda: time.sleep(0.1 if bench.options.quick else 3))
    walls = {name: {i: run["wall"] for i, run in mine.items()} for name, mine in zip(names, runs)}
    cpus = {name: {i: run["cpu"] for i, run in mine.items()} for name, mine in zip(names, runs)}
    base = "flock" if "flock" in names else "true"

    rows, bars = [], []
    for name, argv, mine, lock in zip(names, argvs, runs, [None, *locks]):
        wall, cpu = ([run[what] for run in mine.values()] for what in ("wall", "cpu"))
        # What waits makes now one call more, now one less.
        calls = [system_calls(bench.lab, argv) for _ in range(1 if lock and lock.kind == "other" else 5)]
        ratio = ratios(walls[name], walls[base])
        rows.append(["`true`, no lock" if lock is None else name, len(wall), spread(wall), spread(ratio), spread(cpu),
                     f"{median(ratios(cpus[name], cpus[base])):.2f}", server_share(lock, idle, busy, len(wall)),
                     f"{max(run['rss'] for run in mine.values()) / 1024:.1f}",
                     "-" if None in calls else f"{median(calls):.0f}"])
        bars.append((name, lock.kind if lock else "other", percentile(wall, 5), median(wall), percentile(wall, 95)))
        for what, value in (("wall", median(ratio)), ("ms", median(wall)), ("cpu", median(cpu))):
            report.figure(f"{what} {name}", value)
    report.text(f"""Each command once a round, in random order, {len(runs[0])} rounds (slow ones in each 4th or 10th).
        Figures are medians (from the 5th to the 95th percentile); a ratio is that of a round to `{base}` in the same
        round. Times are
        of the whole command, `true` included, from before its start to after its end; CPU and memory (of the largest
        process; 1.4 is the least that can be seen here) count all processes it started; the CPU of its servers comes
        apart, without what they use while nobody asks. "The least" is no lock that anyone should use, but
        `bench/least.c`: a connection, SET NX PX, the command, a script that deletes. What dlock takes beyond it is the
        price of renewal, supervision, fences and waiting; what is below it, no lock over Redis has.""")
    report.table(["command", "runs", "ms", f"ratio to {base}", "CPU ms", "CPU ratio", "server CPU ms", "MiB",
                  "system calls"], rows)
    if bench.peers.has("flock"):
        ours = [bench.peers.dlock(where) for where in ("unix socket", "TCP")]
        pairs(bench, report, bench.peers.get("flock"), [*ours, *bench.peers.least("run")])
    report.plot("overhead", plot.bars("A lock around true", "ms, logarithmic", bars, True),
                "Bars: milliseconds of each command")
