# SPDX-License-Identifier: MIT
"""Acquire and release over one to nine nodes, healthy and not."""

import os
import shutil
import signal
import socket
import subprocess

from lib import plot
from lib.lab import Failure, Redis, until
from lib.locks import PEERS, Dlock
from lib.report import median, percentile, spread

DEFAULT_ROUNDS, QUICK_ROUNDS = 240, 2
BATCH = 40


class Refused:
    """A socket that nobody listens to."""

    process = None

    def __init__(self, lab, name):
        self.path = self.tcp = lab.path(name)
        with socket.socket(socket.AF_UNIX) as s:
            s.bind(self.path)


def hang(servers):
    for server in servers:
        server.process.send_signal(signal.SIGSTOP)


def recover(servers):
    """Now and then they work off what came, lest their queue of connections is full and they refuse."""
    for server in servers:
        server.process.send_signal(signal.SIGCONT)
        until(lambda s=server: s.connection.info("clients", "connected_clients") == 1, "a node to recover")


def settings(lab, redis):
    """The troubled nodes come first, where a client that asks one by one would meet them."""
    healthy = [Redis(lab, redis) for _ in range(9)]
    hung = [Redis(lab, redis) for _ in range(3)]
    refused = [Refused(lab, f"refused{i}") for i in range(2)]
    names = {
        "one node": healthy[:1],
        "one node, again": healthy[1:2],
        "three nodes": healthy[:3],
        "five nodes": healthy[:5],
        "seven nodes": healthy[:7],
        "nine nodes": healthy,
        "five, one hung": hung[:1] + healthy[:4],
        "five, two hung": hung[1:] + healthy[:3],
        "five, one refused": refused[:1] + healthy[:4],
        "five, two refused": refused + healthy[:3],
    }
    return names, hung


def measure(lab, program, nodes, hung, rounds, budget):
    """Milliseconds of acquire and of release on the wall, and of the CPU for both, by setting and round."""
    commands = []
    for name, servers in nodes.items():
        lock = Dlock(name, program, servers)
        commands += [([*lock.words("acquire"), "key"], ""), ([*lock.words("release"), "key"], "+")]
    runs = lab.turns_within(budget, rounds, commands, BATCH, lambda: hang(hung), lambda: recover(hung))
    times = {}
    for name, first, second in zip(nodes, runs[::2], runs[1::2]):
        times[name] = {turn: (first[turn]["wall"], second[turn]["wall"], first[turn]["cpu"] + second[turn]["cpu"])
                       for turn in first}
    return times


def redlock(bench, report, nodes, hung, rounds):
    """The same of node-redlock, in one process that keeps its connections; it is cut off after a while."""
    rows = []
    for name in ["one node", *(name for name in nodes if name.startswith("five"))]:
        hang(hung)
        process = bench.lab.start([shutil.which("node"), os.path.join(PEERS, "redlock-nodes.js"), str(rounds),
                                   *(server.path for server in nodes[name])], stdout=subprocess.PIPE)
        try:
            mine = [float(word) for word in bench.lab.finish(process, 20).split()]
            rows.append([name, len(mine), spread(mine)])
        except Failure:
            bench.lab.kill(process)
            rows.append([name, 0, "none within 20 s"])
        recover(hung)
    report.text("node-redlock in one process that keeps its connections, which is no command and so stands apart:")
    report.table(["nodes", "runs", "ms of acquire and release"], rows)


def main(bench, report):
    rounds = bench.rounds(DEFAULT_ROUNDS, QUICK_ROUNDS)
    nodes, hung = settings(bench.lab, bench.redis)
    times = measure(bench.lab, bench.dlock, nodes, hung, rounds, bench.budget(50))
    totals = {name: {i: sum(three[:2]) for i, three in mine.items()} for name, mine in times.items()}
    rows, bars = [], []
    for name, mine in times.items():
        total = list(totals[name].values())
        one, five = ([totals[name][i] / totals[base][i] for i in mine] for base in ("one node", "five nodes"))
        halves_and_cpu = [f"{median(column):.2f}" for column in zip(*mine.values())]
        rows.append([name, len(total), spread(total), *halves_and_cpu, spread(one),
                     spread(five) if name.startswith("five") else "-"])
        bars.append((name, "base" if name == "one node" else "ours", percentile(total, 5), median(total),
                     percentile(total, 95)))
        report.figure(f"to one: {name}", median(one))
        report.figure(f"to five: {name}", median(five))
    report.text("""`dlock acquire` and `dlock release`, two processes, on unix sockets, in every setting once a round,
        in random order. A hung node is stopped (SIGSTOP), a refused one a socket that nobody listens to. Medians (from
        the 5th to the 95th percentile); a ratio is that of a round.""")
    report.table(["nodes", "runs", "ms of both", "acquire", "release", "CPU of both", "ratio to one node",
                  "ratio to five healthy"], rows)
    report.plot("quorum", plot.bars("dlock acquire and dlock release", "ms", bars), "Bars: ms of each setting")
    if bench.peers.has("node-redlock"):
        redlock(bench, report, nodes, hung, min(rounds, 100))
