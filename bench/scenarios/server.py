# SPDX-License-Identifier: MIT
"""What acquire and release cost the server: its CPU, and how many of them it carries."""

import os
import random
import subprocess

from lib.lab import Failure, Redis
from lib.report import median
from scenarios.overhead import server_cpu

DEFAULT_ROUNDS, QUICK_ROUNDS = 9, 1
CONNECTIONS = (50, 500)
FORMS = {
    "redis-py": "redis-py: SET NX PX, EVALSHA of a script that deletes",
    "dlock": "dlock",
    "evalsha": "dlock's scripts by EVALSHA",
    "least": "the least: fence and metadata",
    "packed": "the least, in one string",
    "fence": "a fence only",
}


def load(lab, *words):
    """What bench/load says at its end: a count, seconds, and the milliseconds of the slowest."""
    process = lab.start([lab.load, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    output, errors = process.communicate()
    lab.processes.remove(process)
    if process.returncode != 0:
        raise Failure(errors.decode().strip() or "bench/load failed")
    _, count, ns, slowest = output.decode().splitlines()[-1].split()
    return int(count), int(ns) / 1e9, int(slowest) / 1e6


class Server:
    """A Redis of its own, alone on a processor where there are several."""

    def __init__(self, bench):
        self.redis = Redis(bench.lab, bench.redis)
        self.processes = [self.redis.process]
        processors = sorted(os.sched_getaffinity(0))
        if len(processors) > 1:
            os.sched_setaffinity(self.redis.process.pid, processors[:1])


def pairs(lab, server, form, connections, ms):
    """Pairs a second, and microseconds of the server's CPU for each."""
    before = server_cpu(server)
    count, seconds, _ = load(lab, "pairs", form, server.redis.path, connections, ms)
    return count / seconds, (server_cpu(server) - before) * 1000 / count


def main(bench, report):
    server, rounds = Server(bench), bench.rounds(DEFAULT_ROUNDS, QUICK_ROUNDS)
    ms, rows = 50 if bench.options.quick else 1000, []
    for connections in CONNECTIONS:
        runs = {form: [] for form in FORMS}
        for form in FORMS:
            pairs(bench.lab, server, form, connections, ms // 2)
        for _ in range(rounds):
            for form in random.sample(list(FORMS), len(FORMS)):
                runs[form].append(pairs(bench.lab, server, form, connections, ms))
        for form, what in FORMS.items():
            speed, cpu = (list(column) for column in zip(*runs[form]))
            base = [[run[i] for run in runs["redis-py"]] for i in range(2)]
            slower, dearer = (median(map(lambda a, b: b / a, speed, base[0])),
                              median(map(lambda a, b: a / b, cpu, base[1])))
            rows.append([connections, what, rounds, f"{max(speed):,.0f}", f"{1 / slower:.2f}", f"{min(cpu):.1f}",
                         f"{dearer:.2f}"])
            report.figure(f"server time {connections} {form}", slower)
            report.figure(f"server cpu {connections} {form}", dearer)
        for what in ("time", "cpu"):
            report.figure(f"server {what} {connections} limit",
                          min(report.figures[f"server {what} {connections} {form}"] for form in ("least", "packed")))
    report.text(f"""`bench/load` in one process, a lock for each connection, which is acquired and released again and
        again: with the requests of `dlock run`, and with those of redis-py's lock. {rounds} rounds of {ms} ms each, in
        random order, the server on a processor of its own. The most pairs of acquire and release in a second, and the
        least CPU time of the server for a pair; a ratio is the median of those to redis-py's form in the same round.
        The forms below dlock are not what it does. Its scripts by EVALSHA tell what it costs that each request brings
        its script. "The least" is the smallest pair of scripts, sent by EVALSHA, that stores what correctness and
        `dlock status` need (token, a fence that grows, owner, label, times, the mark of a released token), without
        history, queue, re-entry and restart guard (`bench/scripts.h`): a lock with fence and metadata hardly costs its
        server less, in a hash or in one string. The last form stores only a counter beside the lock.""")
    report.table(["connections", "form", "runs", "pairs/s", "ratio", "server CPU µs", "ratio"], rows)
