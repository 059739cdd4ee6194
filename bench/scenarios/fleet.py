# SPDX-License-Identifier: MIT
"""A fleet at the full minute: many hosts that start the same jobs, each of which one of them shall run"""

import re
import subprocess
import threading
import time

from lib.lab import Redis
from lib.waiters import instant
from scenarios.overhead import server_cpu
from scenarios.server import load

JOBS, HOSTS, SIMULATED = 50, 1000, 10000
MIN_HOLD = "30s"


class Servers:
    """Some Redis, empty, and what they have done so far."""

    def __init__(self, bench, count):
        self.redis = [Redis(bench.lab, bench.redis) for _ in range(count)]
        self.processes = [redis.process for redis in self.redis]

    def flush(self):
        for redis in self.redis:
            redis.connection.call("FLUSHALL")

    def scripts(self):
        text = self.redis[0].connection.call("INFO", "commandstats")
        return sum(int(calls) for calls in re.findall(rb"^cmdstat_eval:calls=(\d+)", text, re.M))

    def held(self):
        return sum(self.redis[0].connection.call("EXISTS", f"job:{i}") for i in range(JOBS))


def pace(stream, count, seconds):
    """A byte for each, at even distances."""
    begun = time.monotonic()
    try:
        for i in range(count):
            time.sleep(max(begun + seconds * i / count - time.monotonic(), 0))
            stream.write(b"\n")
        stream.close()
    except OSError:
        pass  # it was killed


def processes(bench, servers, hosts):
    """Real ones, started by bench/spawn within a second if the machine can: seconds, slowest in ms, locks taken."""
    lab = bench.lab
    words = [bench.dlock, "run", "-q", "-E", "0", "--min-hold", MIN_HOLD,
             *(word for redis in servers.redis for word in ("--node", redis.path))]
    script = f'exec {" ".join(words)} "job:$((N % {JOBS}))" /bin/true'
    process = lab.start([lab.spawn, "many", str(hosts), "/bin/sh", "-c", script], stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE, bufsize=0)
    pacer = threading.Thread(target=pace, args=(process.stdin, hosts, 1))
    pacer.start()
    pacer.join()
    process.stdin = None
    output = lab.finish(process)
    return ((instant(output, "ended") - instant(output, "begun")) / 1e9, instant(output, "slowest") / 1e6,
            servers.held())


def simulated(bench, servers, hosts):
    granted, seconds, slowest = load(bench.lab, "fleet", servers.redis[0].path, hosts, JOBS, 1000)
    return seconds, slowest, granted


def main(bench, report):
    few = bench.options.quick
    hosts, many = (60, 200) if few else (HOSTS, SIMULATED)
    rows = []
    for what, count, work, number in (
            ("processes", 1, processes, hosts), ("processes", 5, processes, hosts), ("simulated", 1, simulated, many)):
        servers = Servers(bench, count)
        for redis in servers.redis:  # Redis has the scripts
            subprocess.run([bench.dlock, "run", "--node", redis.path, "first", "true"], env=bench.lab.environment,
                           check=True)
        servers.flush()
        scripts, cpu = servers.scripts(), server_cpu(servers)
        seconds, slowest, granted = work(bench, servers, number)
        cpu, scripts = (server_cpu(servers) - cpu) / count, servers.scripts() - scripts
        rows.append([f"{number:,}", what, count, f"{seconds:.2f}", granted, scripts, f"{cpu:.0f}",
                     f"{cpu * 1000 / number:.0f}", f"{number / cpu * 1000:,.0f}", f"{slowest:.0f}"])
        report.figure(f"fleet cpu {what} {count}", cpu * 1000 / number)
        report.figure(f"fleet slowest {what} {count}", slowest)
        for process in servers.processes:
            bench.lab.kill(process)
    report.text(f"""Hosts that come within a second, at even distances, each with `dlock run -q -E 0 --min-hold {MIN_HOLD}`
        of one of {JOBS} jobs: one host runs each job, the others are refused. Processes are real ones, on unix sockets;
        this machine may need longer than a second to start them. Simulated hosts are connections of `bench/load`, which
        sends the same requests; each of five nodes would see the same of them. Scripts are those that one server ran. CPU is
        that of one server, with its connections; from it follows how many hosts would keep it busy for a second. The slowest
        is the longest that one host needed, from its start or from its connect(2).""")
    report.table(["hosts", "which", "nodes", "seconds", "granted", "scripts", "CPU ms", "µs per host", "hosts per second",
                  "slowest, ms"], rows)
