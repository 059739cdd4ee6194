#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Let each call that dlock makes of the system fail in turn, and see what comes of it.

    inject.py --library inject.so --servers SOCKET,... [--port N] [--step N] SCENARIO...

A scenario is one dlock command.  For each kind of fault the 1st, 2nd, 3rd ... call fails, one in each
run, until a run makes no more of them; --step N tries one in N.  Whatever fails, all of this holds:

- dlock ends, by itself: no crash, no hang, and no process of its own or of COMMAND's outlives it;
- its exit status is the one that it would have had, or one of FAILED that says why: a line on standard
  error that begins with "dlock: ".  What that status says is what Redis shows;
- COMMAND only ever ran while a majority of the nodes held DLOCK_TOKEN;
- no lock is left behind: it is gone when dlock has ended, or, where dlock could not ask a node to undo
  it, it has the length of a lease at the most to live.

What can be carried on after a fault (an interrupted call, a short write) changes nothing.
"""
import argparse
import ctypes
import errno
import mmap
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

import redis

from scenarios import PATIENCE_S, SCENARIOS, TTL_MS, Broken, must

BROKEN_MOST = 100 # then it is enough
FAILED = (69, 71)  # no quorum, the system refused
LOADED = 0x1D10C
WAITING = re.compile(r"dlock: \S+: (waiting[;,]|got it after) ")

MEMORY = "malloc calloc realloc"
DESCRIPTORS = "open open64 fopen fopen64 pipe2 eventfd timerfd_create signalfd"
BLOCKING = "read write recv send poll ppoll waitpid sigtimedwait"
REFUSED = (
    "timer_create timer_settime prctl setsockopt getsockopt fcntl64 ioctl timerfd_settime setpgid sched_setscheduler"
    " getrandom gethostname rename fstat64 stat64 realpath"
)


class Fault:
    """Calls that fail, and how.

    Harmless: it changes nothing.  Loses words: a request or a reply may be lost.
    """

    def __init__(self, calls, how, harmless=False, loses_words=False):
        self.calls, self.harmless, self.loses_words = calls, harmless, loses_words
        self.how = how if how == "short" else str(getattr(errno, how))
        self.name = how


FAULTS = {
    "memory": Fault(MEMORY + " setenv getaddrinfo", "ENOMEM", loses_words=True),
    "process": Fault("vfork clone posix_spawn posix_spawnp", "EAGAIN"),
    "exec": Fault("execvp execve", "EACCES"),
    "thread": Fault("pthread_create", "EAGAIN"),
    "socket": Fault("socket", "EMFILE"),
    "connect": Fault("connect", "ECONNREFUSED"),
    "write": Fault("write send", "EPIPE", loses_words=True),
    "read": Fault("read recv", "ECONNRESET", loses_words=True),
    "poll": Fault("poll ppoll", "ENOMEM"),
    "descriptors": Fault(DESCRIPTORS, "EMFILE"),
    "refused": Fault(REFUSED, "EPERM"),
    "interrupted": Fault(BLOCKING, "EINTR", harmless=True),
    "short": Fault("read write recv send", "short", harmless=True),
}


class Ledger:
    """What the library counts; see inject.c."""

    def __init__(self, folder):
        self.path = os.path.join(folder, "ledger")
        with open(self.path, "wb") as file:
            file.write(bytes(44))
        with open(self.path, "r+b") as file:
            self.map = mmap.mmap(file.fileno(), 44)

    def clear(self):
        self.map[:] = bytes(44)

    def number(self, at):
        return int.from_bytes(self.map[4 * at : 4 * at + 4], sys.byteorder)

    def loaded(self):
        return self.number(0) == LOADED

    def failed(self):
        return self.number(2) > 0

    def function(self):
        return self.map[12:44].split(b"\0")[0].decode()


class Result:
    def __init__(self, status, out, err, ledger):
        self.status, self.out, self.err = status, out, err
        self.function = ledger.function()


class Bench:
    """Where the runs are made, and what they have in common."""

    def __init__(self, options, folder):
        self.folder, self.step, self.port = folder, options.step, options.port
        self.dlock = os.environ["DLOCK"]
        self.library = os.path.abspath(options.library)
        self.sockets = options.servers.split(",")
        self.servers = [redis.Redis(unix_socket_path=path) for path in self.sockets]
        self.ledger = Ledger(folder)
        self.left = self.runs = self.broken = 0
        self.verbose = options.verbose
        # Whoever loses its parent becomes ours.
        must(ctypes.CDLL(None).prctl(36, 1, 0, 0, 0) == 0, "prctl failed")

    def environment(self, fault, nth):
        return {
            **{name: value for name, value in os.environ.items() if not name.startswith("DLOCK_")},
            "LD_PRELOAD": self.library,
            "INJECT_CALLS": fault.calls,
            "INJECT_NTH": str(nth),
            "INJECT_AS": fault.how,
            "INJECT_LEDGER": self.ledger.path,
            # What must go well does so on a busy machine, too; what is lost needn't be waited for for long.
            "DLOCK_RESTART_GUARD": "0",
            "DLOCK_NODE_TIMEOUT": "5s" if fault.harmless else "500ms",
        }

    def leftovers(self):
        """Wait for the orphans; False if one of them doesn't end."""
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            try:
                if os.waitpid(-1, os.WNOHANG)[0] == 0:
                    time.sleep(0.001)
            except ChildProcessError:
                return False
        return True

    def run(self, scenario, fault, nth):
        """One run.  The ledger shows whether it made so many of these calls."""
        for server in self.servers:
            server.flushall()
        self.ledger.clear()
        scenario.prepare()
        self.runs += 1
        environment = self.environment(fault, nth)
        if scenario.urls():
            environment["DLOCK_NODES"] = " ".join(scenario.urls()[1::2])
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            process = subprocess.Popen(
                [self.dlock, *scenario.arguments()],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
            )
            watch = threading.Timer(PATIENCE_S, process.kill)
            watch.start()
            scenario.meanwhile(process)
            status = process.wait()
            watch.cancel()
            out.seek(0)
            err.seek(0)
            result = Result(status, out.read().decode(), err.read().decode(), self.ledger)
        must(self.ledger.loaded(), "the library was not loaded; is dlock linked statically?")
        try:
            self.judge(scenario, fault, result)
        except Broken as broken:
            raise Broken(
                "%s\n  after call %d of these failed, a %s (%s)\n  exit status %d\n  stdout: %s\n  stderr: %s"
                % (broken, nth, result.function, fault.name, status, result.out, result.err)
            ) from None
        if self.verbose:
            print("    %d %s: %d %s" % (nth, result.function, result.status, result.err.strip()), flush=True)

    def judge(self, scenario, fault, result):
        must(result.status != -signal.SIGKILL, "killed: did it hang?")
        must(result.status >= 0, "died of signal", -result.status)
        must(not self.leftovers(), "a process outlived it")
        if fault.harmless:
            must(result.status == scenario.status, "status", scenario.status, "was due")
            err = "".join(line for line in result.err.splitlines(True) if not WAITING.match(line))
            must(err == "", "said something")
        allowed = (scenario.status, *FAILED, *scenario.may_be)
        if "configuration file" in result.err:
            allowed += (78,)
        must(result.status in allowed, "such an exit status is not documented for that")
        lines = result.err.splitlines()
        must(all(line.startswith("dlock: ") for line in lines), "not a message of dlock's")
        must(lines or result.status == scenario.status, "failed without a word")
        scenario.after(result)
        self.look_for_locks(scenario, fault, result)

    def look_for_locks(self, scenario, fault, result):
        may_leave = fault.loses_words or (scenario.may_leave and not fault.harmless)
        end = time.monotonic() + PATIENCE_S / 10
        while True:
            left = [server.pttl(scenario.key) for server in scenario.servers]
            left = [ms for ms in left if ms != -2]
            # A server that is late may still have a request of dlock, and the release behind it, to carry out.
            if not left or may_leave or time.monotonic() > end:
                break
            time.sleep(0.01)
        self.left += len(left)
        must(all(0 <= ms <= 2 * TTL_MS for ms in left), "a lock without an end was left behind:", left)
        must(not left or may_leave, "a lock was left behind:", left)
        if len(left) > scenario.nodes // 2 and result.status == 0:
            must("not released" in result.err, "a lock was left behind, and nothing said so:", left)


def sweep(bench, name):
    """All faults of one scenario."""
    for kind, fault in FAULTS.items():
        scenario = SCENARIOS[name](bench)
        nth, left = 1, bench.left
        if bench.verbose:
            print("  %s" % kind)
        while True:
            try:
                bench.run(scenario, fault, nth)
            except Broken as broken:
                bench.broken += 1
                print("%s: %s" % (name, broken), flush=True)
            if not bench.ledger.failed() or bench.broken >= BROKEN_MOST:
                break
            nth += bench.step
        if bench.left > left:
            print("  %s, %s: %d keys were left to their lease" % (name, kind, bench.left - left), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", required=True)
    parser.add_argument("--servers", required=True)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--step", type=int, default=1)
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("scenario", nargs="+", choices=SCENARIOS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options, folder)
        for name in options.scenario:
            start, runs = time.monotonic(), bench.runs
            sweep(bench, name)
            print("%s: %d runs, %.1f s" % (name, bench.runs - runs, time.monotonic() - start), flush=True)
    return bench.broken > 0


sys.exit(main())
