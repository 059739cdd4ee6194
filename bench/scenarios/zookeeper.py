# SPDX-License-Identifier: MIT
"""A lock on three servers: dlock on ZooKeeper, and its peers."""

import shutil

from lib.ensembles import DlockOnEnsemble, EtcdCluster, KazooOnEnsemble, ZooKeeper
from lib.report import median, spread
from lib.waiters import drain, in_turn, ratios
from scenarios.handoff import latency
from scenarios.idle import alone

DEFAULT_ROUNDS, QUICK_ROUNDS = 200, 2
WAITERS, QUICK_WAITERS = 50, 3


def contenders(bench):
    """All locks, the one that the ratios are to first."""
    peers, lab = bench.peers, bench.lab
    servers = ZooKeeper(lab)
    locks = [EtcdCluster(lab)] if peers.has("etcdctl") else []
    locks.append(DlockOnEnsemble(servers, bench.dlock))
    if peers.has("kazoo"):
        locks.append(KazooOnEnsemble(servers, peers.python))
    locks.append(peers.dlock("TCP"))
    return locks + ([peers.get("flock")] if peers.has("flock") else [])


def walls(bench, locks, rounds):
    """Milliseconds of a lock around `true`, by lock and round."""
    true = shutil.which("true")
    runs = bench.lab.turns_within(bench.budget(60), rounds, [
        (lock.argv(true), min(lock.every, max(rounds // 2, 1))) for lock in locks])
    return {lock.name: {i: run["wall"] for i, run in mine.items()} for lock, mine in zip(locks, runs)}


def cells(times, lock, base, report, what):
    """Median and ratio of one measurement."""
    mine, ratio = times[lock.name], ratios(times[lock.name], times[base.name])
    report.figure(f"zookeeper {what} {lock.name}", median(ratio) if ratio else 0)
    report.figure(f"zookeeper {what} ms {lock.name}", median(mine.values()))
    return [f"{median(mine.values()):.2f}", spread(ratio) if ratio else "-"]


def main(bench, report):
    if not bench.peers.has("zookeeper"):
        report.text(f"Not measured: {dict(bench.peers.skipped)['zookeeper']}.")
        return
    locks = contenders(bench)
    base, rounds = locks[0], bench.rounds(DEFAULT_ROUNDS, QUICK_ROUNDS)
    count = QUICK_WAITERS if bench.options.quick else WAITERS
    wall = walls(bench, locks, rounds)
    handoff = in_turn(locks, max(rounds // 2, 2), bench.budget(60), lambda lock: latency(bench.lab, lock))
    line = in_turn(locks, max(rounds // 20, 2), bench.budget(60), lambda lock: drain(bench.lab, lock, count))
    used = {lock.name: alone(bench.lab, lock, 1 if bench.options.quick else 3)[0] for lock in locks}
    rows = []
    for lock in locks:
        rss, pss, _ = used[lock.name]
        report.figure(f"zookeeper rss {lock.name}", rss)
        report.figure(f"zookeeper pss {lock.name}", pss)
        rows.append([lock.name, len(wall[lock.name]), *cells(wall, lock, base, report, "wall"),
                     *cells(handoff, lock, base, report, "handoff"), *cells(line, lock, base, report, "line"), rss, pss])
    report.text(f"""Three servers of ZooKeeper and three of etcd, all on this machine, which write to one disk as they do
        in production; Redis and flock for comparison. `true` under the lock; from the end of one command to the start of
        the next; {count} that wait, from the end of the holder's command to the last one's end. Milliseconds, medians;
        a ratio is that of a round to `{base.name}` in the same round. Memory of a holder that has renewed its lease, in
        KiB: resident of the largest process, proportional of all.""")
    report.table(["lock", "runs", "`true` ms", "ratio", "hand-off ms", "ratio", f"{count} in line ms", "ratio", "RSS",
                  "PSS"], rows)
