# SPDX-License-Identifier: MIT
"""What it costs to hold a lock, and to wait for one: memory, CPU, wake-ups, requests."""

import os
import time

from lib import plot
from lib.waiters import Holder, wait_for

DEFAULT_SECONDS, QUICK_SECONDS = 30, 1
TICK = os.sysconf("SC_CLK_TCK")


def read(*words):
    with open(os.path.join("/proc", *words), encoding="utf-8", errors="replace") as f:
        return f.read()


def family(root, spared):
    """The process and what descends from it, but the command under the lock."""
    parents = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            parents[pid] = read(pid, "stat").rsplit(")", 1)[1].split()[1]
        except OSError:
            pass
    found = [str(root)]
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return [pid for pid in found if not is_command(pid, spared)]


def is_command(pid, spared):
    try:
        return read(pid, "cmdline").split("\0")[:2] == spared
    except OSError:
        return True


def activity(pids):
    """Nanoseconds of the CPU and wake-ups so far, of all threads; and the CPU of children that ended."""
    cpu = wakes = 0
    for pid in pids:
        try:
            ended = read(pid, "stat").rsplit(")", 1)[1].split()[13:15]
            cpu += sum(map(int, ended)) * 1000000000 // TICK
            for thread in os.listdir(f"/proc/{pid}/task"):
                cpu += int(read(pid, "task", thread, "schedstat").split()[0])
                wakes += int(read(pid, "task", thread, "status").split("\nvoluntary_ctxt_switches:")[1].split()[0])
        except OSError:
            pass
    return cpu, wakes


def memory(pids):
    """KiB: resident of the largest process, proportional and private dirty of all of them."""
    found = []
    for pid in pids:
        try:
            fields = dict(line.split()[:2] for line in read(pid, "smaps_rollup").splitlines()[1:])
            found.append([int(fields[name]) for name in ("Rss:", "Pss:", "Private_Dirty:")])
        except OSError:
            pass
    return [max(f[0] for f in found), sum(f[1] for f in found), sum(f[2] for f in found)]


def alone(lab, lock, seconds):
    """The memory of a holder that has renewed its lease, and of a waiter, while no other lock shares their pages."""
    if seconds > 1:
        lock.lease = 3
    holder = Holder(lab, lock)
    lock.lease = None
    waiter = lab.start(lock.argv("/bin/true"))
    wait_for(lock, 1)
    time.sleep(seconds)
    found = (memory(family(holder.process.pid, [lab.spawn, "hold"])), memory(family(waiter.pid, ["/bin/true"])))
    holder.let_go()
    holder.end()
    lab.finish(waiter)
    return found


class Watched:
    """A process of a lock that does nothing but hold or wait."""

    def __init__(self, lock, process, spared):
        self.lock, self.process, self.spared = lock, process, spared
        self.busy = self.bursts = 0
        self.awake = False

    def begin(self):
        self.stop = self.lock.listen()
        self.before = self.last = activity(family(self.process.pid, self.spared))

    def sample(self):
        now = activity(family(self.process.pid, self.spared))
        before, self.awake = self.awake, now[1] != self.last[1]
        self.busy += self.awake
        # A renewal at the turn of a second is in both of them.
        self.bursts += self.awake and not before
        self.last = now

    def end(self):
        self.pids = family(self.process.pid, self.spared)
        self.requests = self.stop()
        self.cpu, self.wakes = (b - a for a, b in zip(self.before, self.last))


def watch(watched, seconds):
    time.sleep(0.2 if seconds == 1 else 2)  # whoever has yet to fall asleep does, which would count as one
    for one in watched:
        one.begin()
    begun = time.monotonic()
    for i in range(seconds):
        time.sleep(max(begun + i + 1 - time.monotonic(), 0))
        for one in watched:
            one.sample()
    for one in watched:
        one.end()


def row(report, what, one, used, others, seconds):
    """OTHERS: requests of the holder, which its waiter's server hears as well."""
    requests = None if one.requests is None else max(one.requests - others, 0) / one.lock.nodes
    for name, value in (("rss", used[0]), ("pss", used[1]), ("bursts", one.bursts), ("requests", requests)):
        report.figure(f"{what} {name} {one.lock.name}", value)
    return [what, one.lock.name, len(one.pids), *used, f"{one.wakes / seconds:.2f}", one.busy,
            "-" if requests is None else f"{requests:.0f}", f"{one.cpu / 1e6 / seconds:.2f}"]


def observe(lab, locks, seconds):
    """First all hold, then one more of each waits."""
    handles = [Holder(lab, lock) for lock in locks]
    holders = [Watched(lock, handle.process, [lab.spawn, "hold"]) for lock, handle in zip(locks, handles)]
    watch(holders, seconds)
    waiters = [Watched(lock, lab.start(lock.argv("/bin/true")), ["/bin/true"]) for lock in locks]
    for lock in locks:
        wait_for(lock, 1)
    watch(waiters, seconds)
    for handle in handles:
        handle.let_go()
        handle.end()
    for one in waiters:
        lab.finish(one.process)
    return holders, waiters


def main(bench, report):
    seconds = bench.options.seconds or (QUICK_SECONDS if bench.options.quick else DEFAULT_SECONDS)
    locks = [*bench.peers.all(), *bench.peers.least("hold")]
    used = [alone(bench.lab, lock, seconds if bench.options.quick else 1.5) for lock in locks]
    holders, waiters = observe(bench.lab, locks, seconds)
    rows = [row(report, "holding", one, mine[0], 0, seconds) for one, mine in zip(holders, used)]
    rows += [row(report, "waiting", two, mine[1], one.requests or 0, seconds)
             for one, two, mine in zip(holders, waiters, used)]
    report.text(f"""Memory: one holds the lock and one waits for it, and no other lock of the kind is there; the
        holders of dlock and of the least have renewed their leases. KiB resident of the largest process, proportional
        and private dirty of all, without the command under the lock. Activity: the same for {seconds} s each, with
        what is the default (dlock renews every 10 s). Wake-ups are switches of context that a process asked for;
        "busy" counts the seconds in which there were any; requests are those to one server. CPU in ms per second.
        "The least" is `bench/least.c`, which does nothing but SET NX PX, a thread that renews, and a wait for the
        child, or for an element of a list: what a process with the C library takes for a lock over Redis before it
        does anything for safety.""")
    report.table(["state", "lock", "processes", "RSS", "PSS", "dirty", "wake-ups/s", "busy s", "requests", "CPU ms/s"],
                 rows)
    bars = [(f"{cells[1]}, {cells[0]}", one.lock.kind, cells[4], cells[4], cells[4])
            for cells, one in sorted(zip(rows, [*holders, *waiters]), key=lambda pair: pair[0][1])]
    report.plot("idle", plot.bars("Memory of a lock that is held or waited for", "KiB proportional, logarithmic", bars,
                                  True), "Bars: proportional memory")
