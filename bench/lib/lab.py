# SPDX-License-Identifier: MIT
"""What a benchmark starts, and that all of it ends: servers, holders, waiters, a temporary folder."""

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

PATIENCE = 120


class Failure(Exception):
    """One line for the user."""


def until(condition, what, patience=PATIENCE):
    end = time.monotonic() + patience
    pause = 0.0005
    while not condition():
        if time.monotonic() > end:
            raise Failure(f"waited in vain for {what}")
        time.sleep(pause)
        pause = min(pause * 1.5, 0.01)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Lab:
    """Everything started here is killed by end(), and by the kernel where Python itself is killed."""

    def __init__(self, spawn, least, load):
        self.spawn, self.least, self.load = spawn, least, load
        # A socket's path has to fit into about 100 bytes.
        base = tempfile.gettempdir()
        self.root = tempfile.mkdtemp(prefix="dlock-bench.", dir=base if len(base) <= 70 else "/tmp")
        self.processes = []
        self.environment = {name: value for name, value in os.environ.items()
                            if not name.startswith("DLOCK_") and name != "REDISCLI_AUTH"}
        # Nobody's own settings count.
        self.environment.update(HOME=self.root, XDG_CONFIG_HOME=self.root, ETCDCTL_API="3", LC_ALL="C")
        # Nodes that have just started grant at once.
        self.environment["DLOCK_RESTART_GUARD"] = "0"

    def path(self, *words):
        return os.path.join(self.root, *words)

    def start(self, argv, **options):
        """A process in the background, with the null device for whatever is not said."""
        options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, **options}
        process = subprocess.Popen([self.spawn, "tie", *argv], env=self.environment, start_new_session=True, **options)
        self.processes.append(process)
        return process

    def finish(self, process, patience=PATIENCE):
        """It has to end by itself and well; its output, if that is a pipe."""
        try:
            output, _ = process.communicate(timeout=patience)
        except subprocess.TimeoutExpired:
            raise Failure(f"{process.args} does not end") from None
        self.processes.remove(process)
        if process.returncode != 0:
            raise Failure(f"{' '.join(process.args[2:])}: exit status {process.returncode}")
        return output

    def kill(self, process):
        process.kill()
        process.communicate()
        if process in self.processes:
            self.processes.remove(process)

    def turns(self, rounds, commands, begin=0, runs=None):
        """spawn's runs of each command, interleaved: a list of {round: figures} in the order of commands.

        A command is (argv, suffix of its separator).  One round more than asked for comes first and is left out.
        With BEGIN rounds that were before, their RUNS are added to.
        """
        argv = [self.spawn, "turns", str(rounds + 1)]
        for words, suffix in commands:
            argv += [f":::{suffix}", *words]
        process = self.start(argv, stdout=subprocess.PIPE, stderr=sys.stderr)
        runs = runs or [{} for _ in commands]
        for line in self.finish(process, 3600).decode().splitlines():
            turn, index, wall, cpu, rss, switches = map(int, line.split())
            if turn > 0:
                runs[index][begin + turn] = {"wall": wall / 1e6, "cpu": cpu / 1e6, "rss": rss, "switches": switches}
        return runs

    def turns_within(self, budget, rounds, commands, batch=40, before=lambda: None, after=lambda: None):
        """The same in batches, with something done before and after each, until the budget's seconds are over."""
        end, runs, done = time.monotonic() + budget, None, 0
        while done < rounds and (done == 0 or time.monotonic() < end):
            before()
            runs = self.turns(min(batch, rounds - done), commands, done, runs)
            after()
            done += batch
        return runs

    def end(self):
        for process in self.processes[::-1]:
            process.kill()
        for process in self.processes:
            process.wait()
        shutil.rmtree(self.root, ignore_errors=True)


class Connection:
    """As much of a Redis client as a benchmark needs."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.stream = self.socket.makefile("rb")

    def call(self, *words):
        self.send(*words)
        return self.reply()

    def send(self, *words):
        words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        self.socket.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words))

    def reply(self):
        line = self.stream.readline()
        kind, rest = line[:1], line[1:-2]
        if kind == b"-":
            raise Failure(f"Redis: {rest.decode()}")
        if kind == b":":
            return int(rest)
        if kind == b"$":
            return None if rest == b"-1" else self.stream.read(int(rest) + 2)[:-2]
        if kind == b"*":
            return [self.reply() for _ in range(int(rest))]
        return rest

    def info(self, section, field):
        found = re.search(rb"^%s:([\d.]+)" % field.encode(), self.call("INFO", section), re.M)
        return float(found[1]) if found else 0

    def close(self):
        self.stream.close()
        self.socket.close()


class Redis:
    """A Redis of our own, without persistence, on a unix socket and a TCP port."""

    count = 0

    def __init__(self, lab, program):
        Redis.count += 1
        self.path = lab.path(f"r{Redis.count}")
        self.port = free_port()
        self.tcp = f"127.0.0.1:{self.port}"
        self.process = lab.start(
            [program, "--port", str(self.port), "--bind", "127.0.0.1", "--unixsocket", self.path, "--dir", lab.root,
             "--save", "", "--appendonly", "no", "--maxclients", "50000"])
        self.connection = None
        until(self.answers, program)

    def answers(self):
        if self.process.poll() is not None:
            raise Failure("redis-server did not start")
        if not os.path.exists(self.path):
            return False
        try:
            self.connection = Connection(self.path)
        except OSError:
            return False
        return self.connection.call("PING") == b"PONG"
