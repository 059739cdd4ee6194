#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Twenty contenders for one lock, and what is done to those who hold it.

    history.py FOLDER SECONDS [ATTACK...]

The contenders run visitor.py, which writes into FOLDER/history that it is inside, all the time that
it is.  Meanwhile holders are attacked in all the ways of ATTACKS, or those that are named, in a
random order, each at least once and until SECONDS are over.  At the end no two holders may have been
inside at the same time, and a later one must have a greater fence.

From the environment: DLOCK, REDIS_SERVER.  The exit status is 0 if the history is a good one.
"""

import os
import random
import signal
import subprocess
import sys
import threading
import time

CONTENDERS = 20
TTL = 0.5
LONG = 3 * TTL  # a visit that is to be attacked
VISITOR = os.path.join(os.path.dirname(os.path.abspath(__file__)), "visitor.py")
PATIENCE = 60

# What is sent to whom, while Redis ("server") runs, hangs, or is dead.  What is stopped goes on when the
# next holder is inside.  A holder whose whole tree is stopped, the guardian too, can't be helped.
ATTACKS = {
    "kill dlock": ("KILL", ["dlock"], None),
    "kill the command": ("KILL", ["command"], None),
    "kill both": ("KILL", ["command", "dlock"], None),
    "stop dlock": ("STOP", ["dlock"], None),
    "stop both": ("STOP", ["command", "dlock"], None),
    "stop the command": ("STOP", ["command"], None),
    "hang Redis": (None, [], "hang"),
    "kill Redis": (None, [], "kill"),
    "hang Redis, stop the command": ("STOP", ["command"], "hang"),
    "hang Redis, stop both": ("STOP", ["command", "dlock"], "hang"),
    "kill Redis, stop dlock": ("STOP", ["dlock"], "kill"),
}


# -- The crowd ---------------------------------------------------------------


class Crowd:
    def __init__(self, folder, seconds, attacks):
        self.folder = folder
        self.attacks = attacks
        self.end = time.monotonic() + seconds
        self.over = False
        self.server = None
        self.environment = dict(os.environ, DLOCK_NODES=f"{folder}/s")
        self.log = open(f"{folder}/log", "ab")
        self.start_server()
        self.threads = [threading.Thread(target=self.contend) for _ in range(CONTENDERS)]

    def start_server(self):
        """What it granted it must know after a restart."""
        self.server = subprocess.Popen(
            [os.environ.get("REDIS_SERVER") or "redis-server", "--port", "0", "--unixsocket", f"{self.folder}/s",
             "--dir", self.folder, "--save", "", "--appendonly", "yes", "--appendfsync", "no"],
            stdout=subprocess.DEVNULL)

    def contend(self):
        argv = [os.environ["DLOCK"], "run", "--ttl", f"{TTL}", "--wait", "20s", "key", "--",
                sys.executable, "-I", "-S", VISITOR, self.folder, str(LONG)]
        while not self.over:
            subprocess.run(argv, env=self.environment, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
                           check=False)
            time.sleep(random.random() * 0.05)

    def inside(self):
        """Fence, dlock, command and length of the last visit."""
        try:
            with open(f"{self.folder}/inside", encoding="ascii") as f:
                fence, dlock, command, seconds = f.read().split()
            return int(fence), int(dlock), int(command), float(seconds)
        except OSError:
            return 0, 0, 0, 0

    def until(self, what, condition):
        end = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > end:
                sys.exit(f"history.py: waited in vain: {what}")
            time.sleep(0.005)

    def attack(self, name):
        sent, whom, server = ATTACKS[name]
        open(f"{self.folder}/linger", "w", encoding="ascii").close()
        self.until(f"somebody to attack ({name})", lambda: self.inside()[3] > TTL)
        os.unlink(f"{self.folder}/linger")
        fence, dlock, command, _ = self.inside()
        pids = {"dlock": dlock, "command": command}
        if server == "hang":
            self.server.send_signal(signal.SIGSTOP)
        elif server == "kill":
            self.server.kill()
            self.server.wait()
        for pid in whom:
            send(pids[pid], sent)
        if server is not None:
            time.sleep(random.uniform(1, 2) * TTL)
        if server == "hang":
            self.server.send_signal(signal.SIGCONT)
        elif server == "kill":
            self.start_server()
        if sent == "STOP" and whom == ["command"] and server is None:
            time.sleep(2 * TTL)  # its lock is renewed all the while
        else:
            self.until(f"the next holder ({name})", lambda: self.inside()[0] > fence)
        if sent == "STOP":
            for pid in whom:
                send(pids[pid], "CONT")
        self.until(f"the next holder ({name})", lambda: self.inside()[0] > fence)

    def run(self):
        for thread in self.threads:
            thread.start()
        count = 0
        try:
            while count == 0 or time.monotonic() < self.end:
                for name in random.sample(self.attacks, len(self.attacks)):
                    self.attack(name)
                    count += 1
        finally:
            self.over = True
            for thread in self.threads:
                thread.join()
            self.server.kill()
        return count


def send(pid, name):
    try:
        os.kill(pid, signal.Signals[f"SIG{name}"])
    except ProcessLookupError:
        pass


# -- The judgement -----------------------------------------------------------


def judge(folder, attacks):
    holders = {}
    with open(f"{folder}/history", encoding="ascii") as f:
        for line in f:
            at, fence = line.split()
            first, last = holders.get(int(fence), (int(at), int(at)))
            holders[int(fence)] = min(first, int(at)), max(last, int(at))
    visits = sorted(holders.values())
    closest = min(after[0] - before[1] for before, after in zip(visits, visits[1:]))
    ordered = [holders[fence] for fence in sorted(holders)] == visits
    print(f"{attacks} attacks, {len(visits)} holders, the closest two {closest / 1000:.1f} ms apart, "
          f"fences {'in' if ordered else 'OUT OF'} order")
    return closest > 0 and ordered and len(visits) > attacks


def main():
    folder, seconds = sys.argv[1:3]
    attacks = Crowd(folder, float(seconds), sys.argv[3:] or list(ATTACKS)).run()
    sys.exit(0 if judge(folder, attacks) else 1)


main()
